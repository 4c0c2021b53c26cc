"""Language modelling from a label or a vector, and with word vectors from a file."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

import regard
from regard.cli import main
from regard.data.corpus import Corpus
from regard.data.tokenizers.tokenizer import EOS
from regard.training.tensor_files import read_tensors
from tests.tasks.tasks_data import write

SMALL = ["--width", "16", "--steps", "2", "--average", "1", "--dropout", "0", "--tokenizer", "word"]
LEARNT = ["--steps", "200", "--patience", "99", "--batch-tokens", "30"]
LEARNT += ["--learning-rate", "0.03", "--warmup", "1"]


def trained(folder: Path, data: list[str], *options: str) -> Path:
    out = folder / "run"
    assert main(["train", "language", "--data", *data, *SMALL, *options, "--out", str(out)]) == 0
    return out


@pytest.mark.parametrize("model", ["recurrent", "transformer"])
def test_texts_are_written_from_a_label(model, tmp_path, capsys):
    data = write(tmp_path, "condition")
    options = ["--model", model, "--layers", "1", "--condition", "label", "--valid", *data]
    run = trained(tmp_path, data, *options, *LEARNT)
    assert "labels      2 (" in capsys.readouterr().err
    loaded = regard.load(run)
    for label, word in (("pos", "good"), ("neg", "bad")):
        for seed in range(3):
            (text,) = loaded([label], tokens=20, seed=seed)
            assert text.endswith(word), text
            (text,) = loaded([f"{label}\tthe film"], tokens=20, seed=seed)
            assert text.startswith("the film")
    (tmp_path / "in.txt").write_text("pos\nneg\tthe plot\n")
    assert main(["predict", str(run), "--input", str(tmp_path / "in.txt")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    (tmp_path / "in.txt").write_text("poss\n")
    assert main(["predict", str(run), "--input", str(tmp_path / "in.txt")]) == 2
    assert "unknown label 'poss': did you mean 'pos'?" in capsys.readouterr().err


def test_perplexity_given_the_label_is_that_of_the_models_own_words(tmp_path, capsys):
    data = write(tmp_path, "condition")
    run = regard.load(trained(tmp_path, data, "--condition", "label"))
    capsys.readouterr()
    assert main(["evaluate", str(run.folder.path), "--data", *data, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    rows = [line.split("\t") for line in Path(data[0]).read_text().splitlines()[1:]]
    total, tokens, words, size = 0.0, 0, 0, 0
    for text, label in rows:
        ids = [*run.task.tokenizer.ids([text])[0], EOS]
        state = run.model.start(1, label=torch.tensor([run.task.labels.number(label)]))
        before = EOS
        for token in ids:
            with torch.no_grad():
                output, state = run.model(torch.tensor([[before]]), state)
            total -= float(output.logits[0, 0].double().log_softmax(-1)[token])
            before = token
        tokens += len(ids)
        words += len(text.split()) + 1
        size += len(text.encode()) + 1
    for unit, count in (("token", tokens), ("word", words), ("byte", size)):
        expected = math.exp(total / count)
        assert found["metrics"][f"perplexity_per_{unit}"]["value"] == pytest.approx(expected, 1e-4)
    summed = sum(line["log_probability"] for line in found["lines"])
    assert summed == pytest.approx(-total, 1e-4)
    assert found["lines"][1]["condition"] == "pos"


def test_texts_are_written_from_a_vector(tmp_path, capsys):
    data = write(tmp_path, "condition vectors")
    vectors = str(tmp_path / "v.npy")
    options = ["--condition", vectors, "--valid", *data, vectors]
    run = trained(tmp_path, data, *options, *LEARNT)
    assert "texts from vectors of 2 numbers" in capsys.readouterr().err
    loaded = regard.load(run)
    given = [np.array([1.0, 0.5]), f"{vectors}[0]", f"{vectors}[1]\tthe film"]
    texts = [found.output for found in loaded.task.predict(loaded.model, given, tokens=20)]
    assert [text.split()[-1] for text in texts] == ["good", "bad", "good"]
    assert main(["evaluate", str(run), "--data", *data, vectors]) == 0
    assert "perplexity per word" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--data", "{text}", "--condition", "label"], "plain text has no column 'label'"),
        (["--data", "{table}", "--condition", "lable"], "did you mean 'label'?"),
        (["--data", "{text}", "--condition", "{short}"], "short.npy: no vector for"),
        (
            ["--data", "{text}", "--condition", "{v}", "--valid", "{other}"],
            "no vectors for this file",
        ),
        (["--data", "{text}", "--condition", "{cube}"], "cube.npy: shape [24, 1, 2]"),
        (["--condition", "label"], "--condition: requires data"),
        (
            ["--vectors", "{v}", "--tokenizer", "bpe"],
            "--vectors: requires tokenizer word",
        ),
        (["--data", "{text}", "--normalize", "sofmax"], "did you mean 'softmax'"),
        (["--data", "{text}", "--model", "transformer", "--cell", "gruu"], "did you mean 'gru'"),
    ],
)
def test_bad_conditions_are_one_line(options, words, tmp_path, capsys):
    (table,) = write(tmp_path, "condition")
    (text,) = write(tmp_path, "condition vectors")
    np.save(tmp_path / "short.npy", np.zeros((3, 2)))
    np.save(tmp_path / "cube.npy", np.zeros((24, 1, 2)))
    (tmp_path / "other.txt").write_text("a b\nc d\n")
    names = {"table": table, "text": text, "v": tmp_path / "v.npy", "other": tmp_path / "other.txt"}
    names |= {"short": tmp_path / "short.npy", "cube": tmp_path / "cube.npy"}
    given = [option.format(**names) for option in options]
    out = tmp_path / "run"
    assert main(["train", "language", *SMALL, *given, "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert not out.exists()


@pytest.mark.parametrize("tied", ["--tied", "--no-tied"])
def test_word_vectors_of_another_size_than_the_states(tied, tmp_path, capsys):
    (tmp_path / "v.txt").write_text("film 1 2 3\ngood 4 5 6\n")
    options = ["--vectors", str(tmp_path / "v.txt"), "--freeze", "--warmup", "1", tied]
    run = trained(tmp_path, write(tmp_path, "language"), *options)
    assert "2 of 11 words have vectors of 3 numbers" in capsys.readouterr().err
    film = regard.load(run).task.tokenizer.ids(["film"])[0][0]
    table = read_tensors(run / "model.safetensors")[0]["embedding.words.weight"]
    torch.testing.assert_close(table[film] * 3**0.5, torch.tensor([1.0, 2.0, 3.0]))
    assert len(regard.load(run)(["the film"], tokens=3)) == 1


def test_running_text_is_cut_once_to_validate_with_its_end(tmp_path, capsys):
    lines = [f"line {number} of a long story" for number in range(60)]
    (tmp_path / "text.txt").write_text("\n".join(lines))
    run = trained(tmp_path, [str(tmp_path / "text.txt")])
    assert "the last 3 lines were held out for validation" in capsys.readouterr().err
    assert list(Corpus(run / "data" / "train.arrow").column("text")) == lines[:57]
    assert list(Corpus(run / "data" / "valid.arrow").column("text")) == lines[57:]
