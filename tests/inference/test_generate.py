"""`generate` and `score`: what a language model writes, and thinks of the text of others."""

import copy
import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import regard
from regard.cli import main
from regard.data.tokenizers.tokenizer import BOS, PAD
from tests.training.tiny import OPTIONS, write_data

MODELS = {
    "recurrent": {"attention": "dot"},
    "transformer": {"model": "transformer", "layers": 2, "heads": 2, "attention": "none"},
}
TEXTS = ["the film was great", "", "plot", "✓ naïve not very bad", "🦜 was"]


@pytest.fixture(scope="module", params=MODELS)
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("language")
    options = OPTIONS["language"] | {"steps": 12, "average": 1} | MODELS[request.param]
    return regard.train("language", write_data(folder, "language"), out=folder / "run", **options)


def test_pieces_are_what_predict_adds(run):
    options = {
        "tokens": 12,
        "temperature": 1.3,
        "top_p": 0.95,
        "repetition_penalty": 1.2,
        "seed": 7,
    }
    most = 0
    for text in (text for text in TEXTS if text):
        pieces = list(run.generate(text, **options))
        most = max(most, len(pieces))
        whole = text + "".join(pieces)
        assert run.predict([text], **options)[0].output == " ".join(whole.splitlines())
    assert most > 1


def test_a_prompt_has_the_same_continuation_in_any_company(run):
    options = {"tokens": 8, "temperature": 1.0, "repetition_penalty": 1.5, "seed": 2}
    together = run(TEXTS, **options)
    assert together == [run([text], **options)[0] for text in TEXTS]
    assert together == run(TEXTS, batch_size=2, **options)


def test_no_model_writes_padding_or_a_start(run):
    model = copy.deepcopy(run.model)
    with torch.no_grad():
        for weights in model.parameters():
            weights.normal_(std=0.3)
        model.words.bias[[PAD, BOS]] += 10
    wild = replace(run, model=model)
    for options in ({"temperature": 0.0}, {"temperature": 2.0}, {"top_k": 3}):
        for found in wild.samples("the film", 4, tokens=20, **options):
            assert found.details["tokens"]
            assert not {"<pad>", "<bos>"} & set(found.details["tokens"])
        assert "".join(wild.generate("the film", tokens=20, **options))


def test_samples_differ_and_tell_their_log_probability(run):
    found = run.samples("the film", 4, tokens=6, seed=1)
    assert len({one.output for one in found}) > 1
    for one in found:
        assert one.output.startswith("the film")
        told = one.details["token_log_probabilities"]
        assert sum(told) == pytest.approx(one.details["log_probability"])
        # the same tokens, read at once, have the same log-probabilities
        names = run.task.tokenizer.vocabulary()
        prompt = run.task.tokenizer.ids(["the film"])[0]
        with torch.no_grad():
            ids = run.task.tokenizer.ids([one.output])[0]
            if [names[i] for i in ids[len(prompt) :]] != one.details["tokens"][: len(ids) - 2]:
                continue  # it wrote a text that is cut into other tokens when it is read
            output, _ = run.model(torch.tensor([[3, *ids]]), run.model.start(1))
        each = output.logits[0].log_softmax(-1)[len(prompt) :][range(len(ids) - 2), ids[2:]]
        np.testing.assert_allclose(each, told[: len(ids) - 2], atol=1e-5)


def test_the_likeliest_token_every_time(run):
    found = run.samples("the film", 2, tokens=5, temperature=0.0)
    assert found[0].output == found[1].output
    trace = run.trace("the film", tokens=5, temperature=0.0)
    chosen = [row[0].text for row in trace.alternatives[2:-1]]
    assert chosen == found[0].details["tokens"][: len(chosen)]


def test_generate_from_the_command_line(run, capfdbinary):
    folder = str(run.folder.path)
    command = ["generate", folder, "--prompt", "the film", "--tokens", "6", "--seed", "5"]
    assert main(command) == 0
    printed = capfdbinary.readouterr().out.decode()
    assert printed == "the film" + "".join(run.generate("the film", tokens=6, seed=5)) + "\n"
    assert main([*command, "--samples", "3", "--json"]) == 0
    records = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert len(records) == 3
    assert all(record["output"].startswith(record["prompt"]) for record in records)
    assert all(len(record["tokens"]) <= 6 for record in records)


def test_scores_are_the_models_log_probabilities(run):
    for text, found in zip(TEXTS, run.log_probabilities(TEXTS), strict=True):
        ids = [*run.task.tokenizer.ids([text])[0], 3]
        with torch.no_grad():
            state, total = run.model.start(1), 0.0
            for before, token in zip([3, *ids], ids, strict=False):
                output, state = run.model(torch.tensor([[before]]), state)
                total += float(output.logits[0, 0].double().log_softmax(-1)[token])
        assert found.log_probability == pytest.approx(total, abs=1e-4)
        assert len(found.tokens) == len(ids)
    long = " ".join(["film"] * 700)
    parts = run.log_probabilities([long, *TEXTS])
    assert len(parts[0].tokens) == len(run.task.tokenizer.ids([long])[0]) + 1
    assert math.isfinite(parts[0].log_probability)
    assert parts[1].log_probability == pytest.approx(
        run.log_probabilities(TEXTS)[0].log_probability, abs=1e-4
    )


def test_score_from_the_command_line(run, tmp_path, capfdbinary):
    data = tmp_path / "text.txt"
    data.write_text("\n".join(TEXTS) + "\n", "utf-8")
    command = ["score", str(run.folder.path), "--data", str(data)]
    assert main(command) == 0
    printed = capfdbinary.readouterr()
    found = run.log_probabilities(TEXTS)
    numbers = [float(line) for line in printed.out.split()]
    np.testing.assert_allclose(numbers, [one.log_probability for one in found], atol=1e-5)
    assert b"perplexity" in printed.err
    assert main([*command, "--json"]) == 0
    record = json.loads(capfdbinary.readouterr().out.splitlines()[0])
    assert record["tokens"] == found[0].tokens


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("generate {tag}", "generate does not apply to tag runs"),
        ("score {tag} --data {file}", "score does not apply to tag runs"),
        ("generate {run} --top-p 2", "--top-p: expected more than 0 and at most 1, got 2"),
        ("generate {run} --temperature 1e39", "--temperature: expected 0 or more and at most 1000"),
        (
            "generate {run} --samples 1000000000",
            "--samples: expected a whole number from 1 to 10,000",
        ),
        ("generate {run} --tokens 0", "--tokens: expected 1 or more and at most 100000, got 0"),
        ("score {run} --data {file} {file}", "2 files"),
        ("score {run} --data nowhere.txt", "nowhere.txt: cannot be read"),
        ("predict {run} --nbest 2 --json", "--nbest does not apply to language runs"),
        ("predict {run} --prefix {file}", "--prefix does not apply to language runs"),
    ],
)
def test_wrong_use_is_one_line(command, words, run, tmp_path, capsys):
    tagger = tmp_path / "tag"
    tagger.mkdir()
    options = OPTIONS["tag"] | {"steps": 1, "average": 1}
    if "{tag}" in command:
        regard.train("tag", write_data(tagger, "tag"), out=tagger / "run", **options)
    (tmp_path / "text.txt").write_text("the film\n")
    names = {"run": run.folder.path, "tag": tagger / "run", "file": tmp_path / "text.txt"}
    capsys.readouterr()
    assert main(command.format(**names).split()) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
