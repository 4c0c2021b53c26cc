"""Language models beside n-grams and with a cache: every command gives the same probabilities."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

import regard
from regard.cli import main
from regard.data.tokenizers.tokenizer import EOS
from regard.tasks.registry import TASKS
from regard.training.run import earlier_options, make_configs

TEXT = "the old dog saw the cat\nthe cat saw a bird\na bird sang\nthe old cat slept\n" * 8
TEST = "the bird saw the old dog\nthe old dog slept\na cat sang\n"
CACHED = ["--cache", "6", "--cache-weight", "0.4", "--cache-sharpness", "3"]
READING = {"cache": 6, "cache_weight": 0.4, "cache_sharpness": 3.0}


@pytest.fixture(params=["recurrent", "transformer"])
def folder(request, tmp_path) -> Path:
    (tmp_path / "text.txt").write_text(TEXT)
    (tmp_path / "test.txt").write_text(TEST)
    out = tmp_path / "run"
    options = ["--model", request.param, "--layers", "1", "--width", "16", "--steps", "12"]
    options += ["--ngrams", "3", "--tokenizer", "word", "--batch-tokens", "60", "--window", "4"]
    data = ["--data", str(tmp_path / "text.txt"), "--window-tokens", "64"]
    assert main(["train", "language", *data, *options, "--out", str(out)]) == 0
    return out


def step_by_step(run, text: str, cached: bool) -> float:
    """The log-probability of lines read token by token from the distributions of all words."""
    state = run.model.start(1)
    if cached:
        cache = run.model.empty_cache(1, size=6, weight=0.4, sharpness=3.0)
        state = state._replace(cache=cache)
    total, before = 0.0, run.model.start_token
    for line in text.splitlines():
        for token in [*run.task.tokenizer.ids([line])[0], EOS]:
            with torch.no_grad():
                output, state = run.model(torch.tensor([[before]]), state)
            chances = output.logits[0, 0].double().exp()
            assert float(chances.sum()) == pytest.approx(1, abs=1e-5)
            total += math.log(float(chances[token]))
            before = token
    return total


@pytest.mark.parametrize("cached", [False, True])
def test_a_line_is_scored_as_it_is_read(folder, cached):
    run = regard.load(folder)
    options = READING if cached else {}
    (scored,) = run.log_probabilities(["the old dog saw a cat"], **options)
    expected = step_by_step(run, "the old dog saw a cat", cached)
    assert scored.log_probability == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("cached", [False, True])
def test_evaluate_and_score_of_running_text_agree(folder, cached, tmp_path, capsys):
    options = CACHED if cached else []
    test = str(tmp_path / "test.txt")
    capsys.readouterr()
    assert main(["evaluate", str(folder), "--data", test, "--json", *options]) == 0
    value = json.loads(capsys.readouterr().out)["metrics"]["perplexity_per_token"]["value"]
    command = ["score", str(folder), "--data", test, "--running", "--json", *options]
    assert main(command) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    values = [value for row in rows for value in row["token_log_probabilities"]]
    assert value == pytest.approx(math.exp(-sum(values) / len(values)), rel=1e-4)


def test_the_weight_is_kept_and_the_mixture_beats_either_part(folder, tmp_path):
    run = regard.load(folder)
    ngrams = run.model.ngrams
    weight = ngrams.network_weight.clone()
    assert ((weight >= 0) & (weight <= 1)).all()
    assert not torch.equal(weight, torch.full_like(weight, 0.5))
    valid = [example["text"] for example in _validation_lines(run)]

    def loss(value) -> float:
        ngrams.network_weight.copy_(value)
        found = run.evaluate({"text": valid}).metrics["perplexity_per_token"].value
        return math.log(found)

    fitted = loss(weight)
    assert fitted <= loss(torch.ones_like(weight)) + 0.02
    assert fitted <= loss(torch.zeros_like(weight)) + 0.02


def _validation_lines(run):
    from regard.data.corpus import Corpus

    texts = Corpus(run.folder.data / "valid.arrow").column("text")
    return [{"text": text} for text in texts]


def test_the_cache_is_a_look_at_the_words_that_followed(folder):
    run = regard.load(folder)
    trace = run.trace("the old dog saw the old dog", **READING)
    look = next(look for look in trace.looks if look.name == "cache")
    weights = look.weights
    assert weights.shape == (8, 8)
    assert weights[0].sum() == 0  # nothing was read that a word followed
    assert weights[1:].sum(1) == pytest.approx(1, abs=1e-3)
    for row in range(8):
        assert weights[row, row + 1 :].sum() == 0
        assert weights[row, : max(1, row - 5)].sum() == 0  # six states back


def test_what_is_written_follows_the_mixture(folder, capsys):
    run = regard.load(folder)
    options = {"tokens": 4, "temperature": 0.0, **READING}
    (written,) = run(["the old dog saw the old"], **options)
    state = run.model.start(1)
    state = state._replace(cache=run.model.empty_cache(1, size=6, weight=0.4, sharpness=3.0))
    ids = run.task.tokenizer.ids(["the old dog saw the old"])[0]
    with torch.no_grad():
        output, _ = run.model(torch.tensor([[run.model.start_token, *ids]]), state)
    best = output.logits[0, -1].clone()
    best[:3] = -math.inf
    following = run.task.tokenizer.decode([*ids, int(best.argmax())])
    assert written.startswith(following)
    assert "".join(run.generate("the old dog saw the old", **options)) == written.removeprefix(
        "the old dog saw the old"
    )


def test_explanations_and_traces_are_of_the_mixture(folder):
    run = regard.load(folder)
    trace = run.explain("the old dog")
    assert trace.attributions
    ids = run.task.tokenizer.ids(["the old dog"])[0]
    read = torch.tensor([[run.model.start_token, *ids]])
    with torch.no_grad():
        output, _ = run.model(read, run.model.start(1))
    best = int(output.logits[0, -1].argmax())
    assert trace.prediction["explained"]["outputs"] == [run.task.tokenizer.vocabulary()[best]]
    lengths = trace.prediction["ngram_context"]
    assert lengths == [1, 2, 2, 2]  # the start stands between lines, too
    weights = run.model.ngrams.network_weight[lengths].tolist()
    assert trace.prediction["network_weight"] == pytest.approx(weights)


@pytest.mark.parametrize(
    ("options", "longest"),
    [
        ({}, 5),
        ({"ngrams": 0}, 0),
        ({"condition": "topic"}, 0),
        ({"pretrained": "elsewhere"}, 0),
    ],
)
def test_ngrams_predict_by_default_where_they_can(options, longest):
    data, _, _ = make_configs(TASKS["language"], {"data": ["text.tsv"], **options})
    assert data.ngrams == longest


def test_a_run_without_the_option_has_no_ngrams(folder):
    config = json.loads((folder / "config.json").read_text("utf-8"))
    assert config["data"].pop("ngrams") == 3
    (folder / "config.json").write_text(json.dumps(config))
    data, _, _ = make_configs(
        TASKS["language"], earlier_options(TASKS["language"]) | config["data"]
    )
    assert data.ngrams == 0


def test_what_is_exported_is_the_network_alone_and_that_is_said(folder, tmp_path, capsys):
    runtime = pytest.importorskip("onnxruntime")
    capsys.readouterr()
    assert main(["export", str(folder), "--out", str(tmp_path / "onnx")]) == 0
    assert "the n-gram model is not exported" in capsys.readouterr().err
    record = json.loads((tmp_path / "onnx" / "export.json").read_text("utf-8"))
    assert any("the network alone" in note for note in record["notes"])
    start, step = (
        runtime.InferenceSession(str(tmp_path / "onnx" / name))
        for name in ("start.onnx", "model.onnx")
    )
    given = dict(
        zip(
            (port.name for port in start.get_outputs()),
            start.run(None, {"batch": np.array([1])}),
            strict=True,
        )
    )
    logits = step.run(["logits"], {**given, "tokens": np.array([[3, 4, 5]])})[0]
    run = regard.load(folder)
    with torch.no_grad():
        alone, _ = run.model(torch.tensor([[3, 4, 5]]), run.model.start(1), alone=True)
    np.testing.assert_allclose(logits, alone.logits.numpy(), atol=1e-4)


def test_what_does_not_fit_is_one_line(folder, tmp_path, capsys):
    capsys.readouterr()
    options = ["--data", str(tmp_path / "text.txt"), "--out", str(tmp_path / "other")]
    assert main(["train", "language", *options, "--ngrams", "1"]) == 2
    assert "expected 2 or more, or 0 for none" in capsys.readouterr().err
    damaged = folder / "data" / "ngrams.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-9])
    assert main(["evaluate", str(folder), "--data", str(tmp_path / "test.txt")]) == 2
