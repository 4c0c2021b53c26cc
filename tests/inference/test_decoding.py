"""Decoding from the front door and the command line, on translators that have learnt something."""

import copy
import gzip
import io
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regard.cli import main
from regard.data.tokenizers.tokenizer import BOS, PAD
from regard.errors import RegardError
from tests.inference.trained import VARIANTS, backwards, sources, translator

TEXTS = [*sources(30, seed=5), *sources(6, seed=6, longest=14)]
HOSTILE = [
    "",
    " \t",
    "\x00",
    "dog\x00cat",
    "\x1b[31m dog",
    "\u202e dog \u202c",
    "a\rb",
    "\r",
    "dog\u2028cat",
    "\u2029",
    "\x85",
    "\ud800 dog",
    "\udfff",
    "dog " * 10_000,
    "y" * 30_000,
    "\ufeffdog",
    "<unk> <eos> </s>",
    "👩‍👩‍👧 dog",
]


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_translators_have_learnt(variant):
    right = [backwards(text) for text in TEXTS[:30]]
    found = translator(variant)(TEXTS[:30], replace_unknown=True)
    same = np.mean([one == other for one, other in zip(found, right, strict=True)])
    assert same > 0.5, list(zip(found, right, strict=True))[:5]


@pytest.mark.parametrize(
    "options", [{"beam": 1}, {"beam": 4, "nbest": 4}, {"beam": 2, "coverage": 0.1}, {"top_p": 0.9}]
)
@pytest.mark.parametrize("variant", VARIANTS)
def test_no_model_writes_padding_or_a_start(variant, options):
    """Weights are random and those tokens the likeliest of all; what is written has true scores."""
    run = translator(variant)
    model = copy.deepcopy(run.model)
    with torch.no_grad():
        for weights in model.parameters():
            weights.normal_(std=0.3)
        model.words.bias[[PAD, BOS]] += 10
    wild = replace(run, model=model)
    for found in wild.predict(TEXTS[:9], return_tokens=True, **options):
        for one in found.details.get("nbest", [found.details]):
            assert one["tokens"]
            assert not {"<pad>", "<bos>"} & set(one["tokens"])
            assert one["log_probability"] < -5
            assert sum(one["token_log_probabilities"]) == pytest.approx(one["log_probability"])


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("variant", ["luong", "transformer"])
def test_the_batch_changes_nothing(variant, beam):
    run = translator(variant)
    alone, few, many = (
        run.predict(TEXTS, beam=beam, nbest=beam, batch_size=size) for size in (1, 7, 64)
    )
    for other in (few, many):
        for one, two in zip(alone, other, strict=True):
            chances = one.details["log_probability"], two.details["log_probability"]
            # where two candidates are as good as equal, either may be chosen
            assert one.output == two.output or abs(chances[0] - chances[1]) < 1e-5


def test_samples_are_the_same_in_any_batch():
    run = translator("luong")
    options = {"temperature": 1.5, "top_k": 8, "seed": 3}
    whole = run(TEXTS, **options)
    assert whole == run(TEXTS, batch_size=5, **options)
    assert whole[::-1] == run(TEXTS[::-1], **options)
    assert whole != run(TEXTS, **(options | {"seed": 4}))
    assert run(TEXTS[:9], temperature=0.0) == run(TEXTS[:9], beam=1)


@pytest.mark.parametrize("variant", VARIANTS)
def test_scores_of_the_n_best_are_true(variant):
    run = translator(variant)
    for text in TEXTS[::9]:
        found = run.predict([text], beam=4, nbest=4, return_tokens=True)[0].details["nbest"]
        scores = [one["score"] for one in found if one["finished"]]
        assert scores == sorted(scores, reverse=True)
        for one in found:
            if not one["finished"] or "<unk>" in one["tokens"]:
                continue
            truth = run.log_probabilities([text], [one["output"]])[0]
            assert truth.tokens == one["tokens"]
            assert truth.log_probability == pytest.approx(one["log_probability"], abs=1e-4)
            assert one["score"] == pytest.approx(one["log_probability"] / len(one["tokens"]))
            np.testing.assert_allclose(
                truth.token_log_probabilities, one["token_log_probabilities"], atol=1e-5
            )


@pytest.mark.parametrize("variant", VARIANTS)
def test_forced_decoding_is_the_model_itself(variant):
    """The score by steps equals that of the whole target at once, as in training."""
    run = translator(variant)
    source, target = "dog sees big tree", "GOD EERT SEES"
    ids, aim = run.task.source.ids([source]), run.task.target.ids([target])[0]
    with torch.no_grad():
        logits = run.model(
            torch.tensor(ids), torch.tensor([4]), torch.tensor([[2, *aim]])
        ).logits.double()
    each = logits.log_softmax(-1)[0, range(4), [*aim, 3]]
    found = run.log_probabilities([source], [target])[0]
    np.testing.assert_allclose(found.token_log_probabilities, each, atol=1e-5)
    assert found.log_probability == pytest.approx(float(each.sum()), abs=1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
def test_attention_under_beam_is_that_of_forced_decoding(variant):
    """Each hypothesis keeps its own looks, through every change of places in the beam."""
    run = translator(variant)
    layers = 2 if variant == "transformer" else 1
    compared = 0
    for text in TEXTS[::5]:
        beam = run.trace(text, beam=5)
        if "<unk>" in beam.output or not beam.prediction["finished"]:
            continue
        told = run.trace(text, beam.output)
        assert len(beam.looks) == len(told.looks) == (1 if layers == 1 else 3 * layers * 2)
        for one, two in zip(beam.looks, told.looks, strict=True):
            names = [(x.name, x.layer, x.head, x.queries, x.keys) for x in (one, two)]
            assert names[0] == names[1]
            np.testing.assert_allclose(one.weights, two.weights, atol=1e-5)
        compared += 1
    assert compared > 2


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_forced_word_appears(variant):
    run = translator(variant)
    forced, free = [], []
    for text in ("dog tree bird house", "big cat sees dog", "tree and bird", "cat house big"):
        words = backwards(text).split()
        for place, word in enumerate(words[1:], 1):
            made = run.force(text, pins={0: [place]})
            for look in made.looks:
                if look.key_side == "source" and look.query_side == "target":
                    assert look.weights[0, place] == pytest.approx(1)
                    # it is free again afterwards
                    assert (look.weights[1:].max(1) < 1).all()
            forced.append(made.output.split()[0] == word)
            free.append(run([text])[0].split()[0] == word)
    assert np.mean(forced) > 0.8
    assert np.mean(free) < 0.2
    made = run.force("dog tree bird house", prefix="GOD EERT", pins={2: [3]})
    assert made.output.startswith("GOD EERT")
    assert made.alternatives[2][0].text == made.output.split()[2] == "ESUOH"
    with pytest.raises(RegardError, match="no source word 4: 'dog tree bird house' has 4 words"):
        run.force("dog tree bird house", pins={0: [4]})


def test_forced_and_prefixed_from_the_command_line(tmp_path, capfdbinary):
    run = translator("bahdanau")
    (tmp_path / "in.txt").write_text("dog tree bird house\n\nbig and cat tree\n")
    (tmp_path / "start.txt").write_text("SEES\n\nTAC\n")
    command = ["predict", str(run.folder.path), "--input", str(tmp_path / "in.txt")]
    assert main([*command, "--force", "0:2"]) == 0
    lines = capfdbinary.readouterr().out.decode().split("\n")
    texts = ["dog tree bird house", "", "big and cat tree"]
    assert lines == [*(run.force(text, pins={0: [2]}).output for text in texts), ""]
    assert lines[0].startswith("DRIB")
    assert main([*command, "--prefix", str(tmp_path / "start.txt")]) == 0
    lines = capfdbinary.readouterr().out.decode().split("\n")
    assert [line.split(" ")[0] for line in lines] == ["SEES", "", "TAC", ""]
    (tmp_path / "start.txt").write_text("SEES\n")
    assert main([*command, "--prefix", str(tmp_path / "start.txt")]) == 2
    assert b"start.txt: 1 lines, but" in capfdbinary.readouterr().err


def test_constraints_without_effect_are_reported(tmp_path, capfdbinary):
    """Pins behind the end of a translation, and prefixes that the model cannot write."""
    run = translator("luong")
    (tmp_path / "in.txt").write_text("dog tree\n\nbig and cat tree\n")
    command = ["predict", str(run.folder.path), "--input", str(tmp_path / "in.txt")]
    assert main([*command, "--force", "1:1 4:0 50:0"]) == 0
    printed = capfdbinary.readouterr()
    lengths = [
        len(run.predict([text], return_tokens=True, force={1: [1], 4: [0]})[0].details["tokens"])
        for text in ("dog tree", "big and cat tree")
    ]
    assert b"--force: token 1 " not in printed.err
    assert (
        f"token 4 was never generated in {sum(n <= 4 for n in lengths)} of 2".encode()
        in printed.err
    )
    assert b"--force: token 50 was never generated in 2 of 2 lines" in printed.err
    assert len(printed.out.split(b"\n")) == 4
    (tmp_path / "start.txt").write_text("TAC\nzork\nTAC quux\n")
    assert main([*command, "--prefix", str(tmp_path / "start.txt")]) == 0
    printed = capfdbinary.readouterr()
    warning = b"start.txt:2: 'zork' is not in the vocabulary of this model (and 1 more line)"
    assert warning in printed.err
    assert printed.out.split(b"\n")[2].startswith(b"TAC <unk>")
    (tmp_path / "start.txt").write_text("TAC\n\nTAC\n")
    assert main([*command, "--prefix", str(tmp_path / "start.txt")]) == 0
    assert capfdbinary.readouterr().err == b""


def test_gzipped_lines_are_read(tmp_path, capfdbinary, monkeypatch):
    run = translator("luong")
    raw = gzip.compress(b"dog tree\n\ncat")
    (tmp_path / "in.txt").write_bytes(raw)
    command = ["predict", str(run.folder.path), "--input"]
    assert main([*command, str(tmp_path / "in.txt")]) == 0
    assert capfdbinary.readouterr().out.decode().split("\n") == [*run(["dog tree", "", "cat"]), ""]
    with open(tmp_path / "in.txt", "rb") as stream:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(stream))
        assert main([*command, "-"]) == 0
        assert capfdbinary.readouterr().out.decode().split("\n")[0] == run(["dog tree"])[0]
    (tmp_path / "in.txt").write_bytes(raw[:-9])
    assert main([*command, str(tmp_path / "in.txt")]) == 2
    assert b"in.txt: broken gzip file" in capfdbinary.readouterr().err


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("plain.tsv", "dog tree\tGOD EERT\n\ncat\tTAC\n"),
        ("headed.tsv", "source\ttarget\ndog tree\tGOD EERT\n\ncat\tTAC\n"),
        ("three.tsv", "source\ttarget\tnote\ndog tree\tGOD EERT\tnote\n\ncat\tTAC\t\n"),
        ("languages.tsv", "de\ten\ndog tree\tGOD EERT\n\ncat\tTAC\n"),
        ("turned.tsv", "target\tsource\nGOD EERT\tdog tree\n\nTAC\tcat\n"),
        ("table.csv", 'source,target\n"dog tree",GOD EERT\n\ncat,TAC\n'),
    ],
)
def test_a_header_is_no_pair(name, text, tmp_path, capfdbinary):
    run = translator("luong")
    (tmp_path / name).write_text(text)
    assert main(["score", str(run.folder.path), "--data", str(tmp_path / name)]) == 0
    lines = capfdbinary.readouterr().out.decode().split("\n")
    found = run.log_probabilities(["dog tree", "cat"], ["GOD EERT", "TAC"])
    assert lines[1::2] == ["", ""]
    assert [float(lines[0]), float(lines[2])] == pytest.approx(
        [one.log_probability for one in found], abs=1e-5
    )


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("dog tree\n", "", "pairs.tsv:1: no column 2 for the target: the first line has 1 column"),
        ("dog\tGOD\ncat\n", "", "pairs.tsv:2: 1 columns where the first line has 2"),
        ("a\tb\ndog\tGOD\n", "--source c", "pairs.tsv:1: unknown column 'c'"),
    ],
)
def test_bad_tables_to_score(text, options, words, tmp_path, capsys):
    run = translator("luong")
    (tmp_path / "pairs.tsv").write_text(text)
    command = ["score", str(run.folder.path), "--data", str(tmp_path / "pairs.tsv")]
    assert main([*command, *options.split()]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def most_attended(details, position):
    """The source word that a written word looks at, by the mean of layers and heads."""
    weights = [
        np.asarray(one, dtype=float).reshape(-1, *np.shape(one)[-2:]).mean(0)
        for name, one in details["weights"].items()
        if name.endswith("source")
    ]
    words = np.array([not word.startswith("<") for word in details["source_tokens"]])
    mean = np.where(words, np.mean(weights, axis=0)[position], -1)
    return details["source_tokens"][int(mean.argmax())]


@pytest.mark.parametrize("variant", VARIANTS)
def test_unknown_words_are_copied_from_where_it_looked(variant):
    run = translator(variant)
    texts = [" ".join(["dog", "sees", rare, "and", "cat"]) for rare in ("kumo", "zanzibar", "oui")]
    texts += [" ".join([rare, "big", "tree"]) for rare in ("kumo", "zanzibar", "oui")]
    copied = []
    for text in texts:
        (looked,) = run.predict([text], weights=True)
        plain, replaced = looked.output, run([text], replace_unknown=True)[0]
        assert "<unk>" not in replaced
        if plain.count("<unk>") == 1:
            before, after = plain.split("<unk>")
            assert replaced.startswith(before)
            assert replaced.endswith(after)
            word = replaced[len(before) : len(replaced) - len(after)]
            position = plain.split().index("<unk>")
            assert word == most_attended(looked.details, position)
            copied.append(word in ("kumo", "zanzibar", "oui"))
    assert len(copied) >= 3
    if (
        variant != "bahdanau"
    ):  # its weights are computed before the word: it may look one word aside
        assert np.mean(copied) > 0.6


def test_json_gives_everything(tmp_path, capfdbinary):
    run = translator("transformer")
    (tmp_path / "in.txt").write_text("dog sees cat\n\n")
    command = ["predict", str(run.folder.path), "--input", str(tmp_path / "in.txt"), "--json"]
    assert main([*command, "--beam", "5", "--nbest", "3", "--weights"]) == 0
    first, empty = map(json.loads, capfdbinary.readouterr().out.decode().splitlines())
    assert empty == {"input": "", "output": "", "truncated": False}
    assert first["output"] == run(["dog sees cat"])[0]
    assert len(first["nbest"]) == 3
    assert first["nbest"][0]["output"] == first["output"]
    assert first["tokens"] == [*first["output"].split(), "<eos>"]
    assert sum(first["token_log_probabilities"]) == pytest.approx(
        first["log_probability"], abs=1e-4
    )
    assert first["source_tokens"] == ["dog", "sees", "cat"]
    weights = np.array(first["weights"]["decoder.1.source"])
    assert weights.shape == (2, len(first["tokens"]), 3)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)


def test_penalties_do_what_they_say():
    run = translator("luong")
    texts = sources(20, seed=9, longest=12)
    short = run.predict(texts, length_penalty=0.0, exact=True, return_tokens=True)
    long = run.predict(texts, length_penalty=3.0, exact=True, return_tokens=True)
    for one, two in zip(short, long, strict=True):
        assert len(one.details["tokens"]) <= len(two.details["tokens"])
        assert one.details["score"] == pytest.approx(one.details["log_probability"])
    covered = run.predict(texts, coverage=2.0)
    assert all(
        one.details["score"] <= two.details["score"] + 1e-6
        for one, two in zip(covered, run.predict(texts), strict=True)
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--weights", "--weights: requires --json"),
        ("--json --beam 2 --nbest 3", "--nbest: expected at most 2, the width of the beam"),
        ("--beam 0", "--beam: expected 1 or more and at most 1000, got 0"),
        ("--force 2", 'expected pins such as "2:0,1 5:4"'),
        ("--force 0:9", "in.txt:1: no source word 9: 'dog' has 1 words"),
        ("--length-penalty 400", "--length-penalty: expected -10 or more and at most 10"),
        ("--coverage 1e300", "--coverage: expected 0 or more and at most 1000"),
        ("--input - --prefix -", "standard input (-) can be read only once"),
        ("--top-p 1.5", "--top-p: expected more than 0 and at most 1, got 1.5"),
        ("--temperature nan", "--temperature: expected 0 or more and at most 1000, got nan"),
        ("--temperature inf", "--temperature: expected 0 or more and at most 1000, got inf"),
        ("--temperature 1e39", "--temperature: expected 0 or more and at most 1000, got 1e+39"),
        ("--beam 1000000000", "--beam: expected 1 or more and at most 1000, got 1000000000"),
        ("--temperature -1", "--temperature: expected 0 or more and at most 1000, got -1"),
        ("--repetition-penalty 0", "--repetition-penalty: expected 0.001 or more"),
        ("--prefix nowhere.txt", "nowhere.txt: cannot be read"),
    ],
)
def test_wrong_options_are_one_line(options, words, tmp_path, capsys):
    run = translator("bahdanau")
    (tmp_path / "in.txt").write_text("dog\n")
    command = ["predict", str(run.folder.path), "--input", str(tmp_path / "in.txt")]
    assert main([*command, *options.split()]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_a_truncated_line_changes_the_exit_code(tmp_path, capsys):
    run = translator("bahdanau")
    (tmp_path / "in.txt").write_text("dog\n" + "cat " * 400 + "\n")
    command = ["predict", str(run.folder.path), "--input", str(tmp_path / "in.txt")]
    assert main([*command, "--beam", "1", "--output", str(tmp_path / "out.txt")]) == 3
    assert "1 line is longer than this model reads: truncated" in capsys.readouterr().err
    assert (tmp_path / "out.txt").read_text().count("\n") == 2


@pytest.mark.parametrize("variant", ["bahdanau", "transformer"])
@settings(deadline=None, max_examples=15, suppress_health_check=list(HealthCheck))
@given(
    texts=st.lists(
        st.text(st.characters(categories=["L", "N", "P", "Z", "C", "M", "S"]), max_size=20)
        | st.sampled_from(HOSTILE),
        max_size=4,
    )
)
def test_one_output_for_each_hostile_input(variant, texts):
    run = translator(variant)
    outputs = run(texts, beam=2, replace_unknown=True)
    assert len(outputs) == len(texts)
    for text, output in zip(texts, outputs, strict=True):
        assert len(output.splitlines()) <= 1
        assert text.strip() or output == ""


def test_one_line_for_each_hostile_line(tmp_path):
    run = translator("bahdanau")
    given = [text.encode("utf-8", "replace") for text in HOSTILE]
    (tmp_path / "in.txt").write_bytes(b"\n".join(given) + b"\n")
    lines = len(HOSTILE) + 1  # "a\rb" is two lines, as in training data
    command = ["predict", str(run.folder.path), "--input", str(tmp_path / "in.txt")]
    for options in (["--replace-unknown"], ["--json"], ["--temperature", "2"]):
        assert main([*command, *options, "--output", str(tmp_path / "out.txt")]) == 3
        written = (tmp_path / "out.txt").read_bytes()
        assert written.count(b"\n") == lines
        assert len(written.decode().splitlines()) == lines


def test_the_line_that_cannot_be_predicted_is_named(tmp_path, capsys):
    run = translator("bahdanau")
    (tmp_path / "in.txt").write_text("dog cat bird\n" * 9 + "dog\n" + "cat big tree\n" * 4)
    command = ["predict", str(run.folder.path), "--input", str(tmp_path / "in.txt")]
    assert main([*command, "--beam", "1", "--force", "0:2"]) == 2
    assert "in.txt:10: no source word 2" in capsys.readouterr().err


def test_a_score_does_not_depend_on_the_kind_of_table(tmp_path, capsys):
    run = translator("bahdanau")
    pairs = [("dog cat", "GOD TAC "), ("big", " GIB")]
    (tmp_path / "a.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in pairs))
    (tmp_path / "b.jsonl").write_text(
        "".join(json.dumps({"source": s, "target": t}) + "\n" for s, t in pairs)
    )
    (tmp_path / "c.csv").write_text("source,target\n" + "".join(f"{s},{t}\n" for s, t in pairs))
    found = []
    for name in ("a.tsv", "b.jsonl", "c.csv"):
        assert main(["score", str(run.folder.path), "--data", str(tmp_path / name)]) == 0
        found.append(capsys.readouterr().out)
    assert found[0] == found[1] == found[2]
    assert found[0].count("\n") == 2
