"""Trained runs on every surface: what `regard show` makes of a folder and a text."""

import json
from pathlib import Path

import jsonschema
import pytest

import regard
from regard.cli import main
from regard.trace import Trace
from tests.training.tiny import OPTIONS, write_data

TASKS = ("translation", "language", "classify", "tag")
SCHEMA = json.loads((Path(__file__).parents[2] / "docs/trace.schema.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    made = {}
    for task in TASKS:
        folder = tmp_path_factory.mktemp(task)
        options = OPTIONS[task] | {"steps": 3, "average": 1}
        regard.train(task, write_data(folder, task), out=folder / "run", **options)
        made[task] = folder / "run"
    return made


@pytest.mark.parametrize("task", TASKS)
def test_a_run_is_shown_on_every_surface(task, folders, tmp_path, capsys):
    begin = ["show", str(folders[task]), "--text", "the film was great"]
    assert main(begin) == 0
    printed = capsys.readouterr().out
    assert "film" in printed
    assert "Weights show where the model looked" in printed
    for ending in ("html", "svg", "png", "json"):
        assert main([*begin, "--to", str(tmp_path / f"out.{ending}")]) == 0
    document = (tmp_path / "out.json").read_text("utf-8")
    jsonschema.validate(json.loads(document), SCHEMA)
    assert Trace.from_json(document).task == task
    capsys.readouterr()
    assert main(["show", str(tmp_path / "out.json")]) == 0
    assert capsys.readouterr().out == printed


def test_a_run_without_attention_names_the_option_that_makes_one_attend(tmp_path, capsys):
    options = OPTIONS["tag"] | {"steps": 1, "average": 1, "encoder": "recurrent"}
    regard.train("tag", write_data(tmp_path, "tag"), out=tmp_path / "run", **options)
    begin = ["show", str(tmp_path / "run"), "--text", "the film was great"]
    assert main(begin) == 0
    message = "his model has no attention to draw: train one with --encoder recurrent_self"
    assert message in capsys.readouterr().out
    assert main([*begin, "--to", str(tmp_path / "out.svg")]) == 2
    assert message in capsys.readouterr().err
    assert main([*begin, "--to", str(tmp_path / "out.html")]) == 0
    assert "--encoder recurrent_self" in (tmp_path / "out.html").read_text("utf-8")


def test_a_translation_can_be_given(folders, capsys):
    begin = ["show", str(folders["translation"]), "--text", "the film"]
    assert main([*begin, "--target", "ein haus"]) == 0
    assert "ein haus" in capsys.readouterr().out
    assert main(["show", str(folders["tag"]), "--text", "a", "--target", "b"]) == 2
    assert "a target does not apply to tag runs" in capsys.readouterr().err
