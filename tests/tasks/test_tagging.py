"""Tagging from the command line: vectors instead of words, word vectors, label smoothing."""

import json
import math
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
import torch

import regard
from regard.cli import main
from regard.errors import RegardError
from regard.models import Tagger, TaggerConfig
from regard.training.tensor_files import read_tensors
from tests.tasks.tasks_data import write

SMALL = ["--width", "8", "--steps", "2", "--average", "1", "--dropout", "0"]


def trained(folder: Path, data: list[str], *options: str) -> Path:
    out = folder / "run"
    assert main(["train", "tag", "--data", *data, *SMALL, *options, "--out", str(out)]) == 0
    return out


@pytest.mark.parametrize("crf", ["--crf", "--no-crf"])
def test_vectors_are_tagged(crf, tmp_path, capsys):
    data = write(tmp_path, "tag vectors")
    learnt = [
        "--steps",
        "60",
        "--patience",
        "99",
        "--batch-tokens",
        "20",
        "--learning-rate",
        "0.03",
    ]
    learnt += ["--warmup", "1", "--schedule", "constant", "--valid", *data]
    run = trained(tmp_path, data, crf, *learnt)
    capsys.readouterr()
    assert main(["evaluate", str(run), "--data", *data, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["metrics"]["accuracy"]["value"] > 0.9
    assert sum(map(sum, found["report"]["confusion"]["counts"])) == sum(
        len(line["tags"]) for line in found["lines"]
    )
    (tmp_path / "in.txt").write_text(f"{data[0]}[2]\n\n{data[0]}[3]\n")
    assert main(["predict", str(run), "--input", str(tmp_path / "in.txt")]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert lines == [
        " ".join(found["lines"][2]["predicted"]),
        "",
        " ".join(found["lines"][3]["predicted"]),
        "",
    ]


@pytest.mark.parametrize("crf", [True, False])
def test_tags_are_as_probable_as_all_taggings_say(crf):
    """Sum over every tagging that has this tag here, in float64."""
    torch.manual_seed(3)
    allowed = torch.tensor([[True, True, False], [True, True, True], [True, True, True]])
    start = torch.tensor([True, True, False])
    config = TaggerConfig(encoder="none", width=5, characters=0, crf=crf)
    model = Tagger(config, 7, 3, allowed=allowed, allowed_start=start).double().eval()
    if model.crf is not None:
        torch.nn.init.normal_(model.crf.transitions)
    model.requires_grad_(False)
    logits, lengths = torch.randn(2, 4, 3).double() * 2, torch.tensor([4, 3])
    found = model.probabilities(logits, lengths)
    for row, n in enumerate(lengths.tolist()):
        sums, total = torch.zeros(n, 3).double(), 0.0
        for tags in product(range(3), repeat=n):
            score = sum(float(logits[row, t, tag]) for t, tag in enumerate(tags))
            if model.crf is not None:
                steps = list(pairwise(tags))
                if not start[tags[0]] or not all(allowed[a, b] for a, b in steps):
                    continue
                score += sum(float(model.crf.transitions[a, b]) for a, b in steps)
                score += float(model.crf.start[tags[0]] + model.crf.end[tags[-1]])
            total += math.exp(score)
            for t, tag in enumerate(tags):
                sums[t, tag] += math.exp(score)
        torch.testing.assert_close(found[row, :n], sums / total)


@pytest.mark.parametrize("crf", ["--crf", "--no-crf"])
def test_predictions_say_how_sure_each_tag_is(crf, tmp_path):
    run = regard.load(trained(tmp_path, write(tmp_path, "tag"), crf))
    texts = ["the film", "", "film " * 401]
    for text, found in zip(texts, run.predict(texts), strict=True):
        sure, tags = found.details.get("probabilities", []), found.details.get("tags", [])
        assert len(sure) == len(tags) == len(text.split())
        assert all(1 / len(run.task.labels) / 2 < one <= 1 for one in sure)
        others = run.trace(text).alternatives
        for own, tag, row in zip(sure, tags, others, strict=False):
            assert own == pytest.approx({o.text: o.probability for o in row}[tag], abs=1e-5)


def test_sequences_longer_than_a_stretch_have_a_tag_for_each_vector(tmp_path):
    run = regard.load(trained(tmp_path, write(tmp_path, "tag vectors")))
    (found,) = run.task.predict(run.model, [np.ones((1001, 3))])
    assert len(found.output.split()) == 1001


def test_vectors_and_words_are_not_mixed(tmp_path, capsys):
    run = trained(tmp_path, write(tmp_path, "tag vectors"))
    assert main(["evaluate", str(run), "--data", *write(tmp_path, "tag")]) == 2
    assert "words where the training data has vectors" in capsys.readouterr().err


def test_word_vectors_stay_frozen(tmp_path):
    (tmp_path / "v.txt").write_text("film 1 2 3\nplot 4 5 6\n")
    options = ["--vectors", str(tmp_path / "v.txt"), "--freeze", "--warmup", "1"]
    run = trained(tmp_path, write(tmp_path, "tag"), *options)
    film = regard.load(run).task.tokenizer.encode_words(["film"]).ids[0]
    table = read_tensors(run / "model.safetensors")[0]["inputs.words.weight"]
    torch.testing.assert_close(table[film] * 3**0.5, torch.tensor([1.0, 2.0, 3.0]))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--normalize", "sparsmax"], "did you mean 'sparsemax'"),
        (["--attention", "scaled"], "did you mean 'scaled_dot'"),
        (["--encoder", "self", "--cell", "lsmt"], "did you mean 'lstm'"),
        (["--freeze"], "--freeze: requires vectors"),
    ],
)
def test_names_are_checked_even_where_unused(options, words, tmp_path, capsys):
    data = write(tmp_path, "tag")
    out = str(tmp_path / "run")
    assert main(["train", "tag", "--data", *data, *options, "--out", out]) == 2
    assert words in capsys.readouterr().err
    assert not Path(out).exists()


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("crf", [True, False])
def test_label_smoothing_spreads_a_share_over_all_tags(crf):
    """With a CRF whose transitions are zero, the same as for each word alone."""
    model = Tagger(TaggerConfig(width=8, crf=crf, dropout=0.0), 11, 5)
    logits = torch.randn(3, 7, 5, dtype=torch.float64)
    tags, lengths = torch.randint(5, (3, 7)), torch.tensor([7, 2, 4])
    expected = 0.0
    for row, n in enumerate(lengths.tolist()):
        for t in range(n):
            chances = logits[row, t].log_softmax(-1)
            wanted = torch.full((5,), 0.3 / 5, dtype=torch.float64)
            wanted[tags[row, t]] += 0.7
            expected -= float((wanted * chances).sum())
    found = model.double().loss(logits, tags, lengths, 0.3)
    assert found.item() == pytest.approx(expected / 13)
    assert model.loss(logits, tags, lengths).item() != pytest.approx(expected / 13)


def test_tags_of_words_among_marks_of_spans_name_their_place(tmp_path):
    (tmp_path / "a.conll").write_text("Paul B-PER\nruns O\n\nAnna B-PER\nsits O\n")
    (tmp_path / "b.conll").write_text("dog NN\nruns VB\n\ncat NN\nsits VB\n")
    data = [str(tmp_path / name) for name in ("a.conll", "b.conll")]
    with pytest.raises(RegardError, match=r"b.conll:\d+: tag 'NN' beside tags such as 'B-PER'"):
        regard.train("tag", data, out=tmp_path / "run", steps=1)
    assert not (tmp_path / "run").exists()
