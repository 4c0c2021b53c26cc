"""Training on examples in memory is training on a file of the same content."""

import json
from pathlib import Path

import pandas as pd
import pytest

import regard
from regard.cli import main
from regard.errors import RegardError
from tests.training.tiny import OPTIONS, assert_same, everything, write_data


def in_memory(task, files):
    """What the files hold, as a Python user would have it."""
    lines = [Path(file).read_text("utf-8").splitlines() for file in files]
    if task == "translation":
        return list(zip(*lines, strict=True))
    if task == "classify":
        return pd.DataFrame([line.split("\t") for line in lines[0][1:]], columns=["text", "label"])
    if task == "tag":
        blocks = "\n".join(lines[0]).strip().split("\n\n")
        return [[tuple(word.split()) for word in block.split("\n")] for block in blocks]
    return iter(lines[0])


@pytest.mark.parametrize("task", OPTIONS)
def test_a_run_on_examples_in_memory_equals_one_on_files(task, tmp_path):
    files = write_data(tmp_path, task)
    options = OPTIONS[task] | {"steps": 3, "average": 1}
    of_files = regard.train(task, files, out=tmp_path / "files", **options)
    of_memory = regard.train(task, in_memory(task, files), out=tmp_path / "memory", **options)
    assert_same(everything(tmp_path / "memory"), everything(tmp_path / "files"))
    texts = ["the film", "not bad"]
    assert of_memory(texts) == of_files(texts)
    expected = of_files.evaluate(files)
    assert of_memory.evaluate(in_memory(task, files)).metrics == expected.metrics
    config = json.loads((tmp_path / "memory/config.json").read_text("utf-8"))
    assert config["data"]["data"][0].startswith("in memory: 30 examples, digest ")


def test_the_same_examples_resume_a_run_and_others_are_refused(tmp_path, capsys):
    pairs = [(f"text number {i}", f"label {i % 3}") for i in range(40)]
    options = OPTIONS["classify"] | {"average": 1}
    valid = (["new text", "other text"], ["label 0", "label 1"])

    def train(steps, data=pairs, valid=valid):
        return regard.train(
            "classify", data, valid=valid, out=tmp_path / "run", **options | {"steps": steps}
        )

    train(2)
    longer = train(4)
    assert everything(tmp_path / "run")["latest.safetensors"]["step"] == 4
    saved = longer.folder.config()["data"]
    assert saved["valid"][0].startswith("in memory: 2 examples, digest ")
    with pytest.raises(RegardError, match=r"contains a different run .*choose another out="):
        train(6, [("other text", "label 0"), *pairs[1:]])
    # The command line resumes it too: the run has read its data.
    config = ["--config", str(tmp_path / "run/config.json"), "--out", str(tmp_path / "run")]
    assert main(["train", "classify", *config, "--steps", "6"]) == 0
    assert everything(tmp_path / "run")["latest.safetensors"]["step"] == 6
    (tmp_path / "run/data/prepared.json").unlink()
    assert main(["train", "classify", *config, "--steps", "8"]) == 2
    assert "these examples were in memory" in capsys.readouterr().err


def test_mistakes_are_refused_before_anything_is_written(tmp_path):
    out = tmp_path / "run"
    for data, message in (
        ([("a", "x"), ("b", "x")], "all examples have the label 'x': two are needed"),
        (["one text", "two texts"], r"data\[0\]: 1 value: expected \(text, label\)"),
        (
            pd.DataFrame({"text": map(str, range(20)), "label": ["x", "y"] * 10}),
            "data: the text is a number in 20 of 20 examples .*choose the columns with text= and ",
        ),
    ):
        with pytest.raises(RegardError, match=message):
            regard.train("classify", data, out=out, steps=1)
        assert not out.exists()
