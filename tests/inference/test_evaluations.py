"""Evaluations are kept in the run's folder and read back."""

import json
from pathlib import Path

import pytest

from regard.cli import main
from regard.errors import RegardError
from regard.inference.evaluations import kept
from regard.training import RunFolder

SMALL = ["--width", "8", "--steps", "3", "--average", "1"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("evaluated")
    for name, pooling in (("one", "weighted"), ("two", "sum")):
        words = ["train", "classify", "--pooling", pooling, "--out", str(folder / name), *SMALL]
        assert main(words) == 0
    lines = ["good\t1", "bad\t0", "not good\t0", "very good\t1", "not bad\t1"]
    labels = sorted(json.loads((folder / "one" / "data" / "labels.json").read_text()))
    text = "\n".join(lines).replace("\t1", f"\t{labels[-1]}").replace("\t0", f"\t{labels[0]}")
    (folder / "test.tsv").write_text(f"text\tlabel\n{text}\n")
    return folder


def test_two_runs_side_by_side(runs: Path, capsys) -> None:
    one, two = str(runs / "one"), str(runs / "two")
    assert main(["evaluate", one, two, "--data", str(runs / "test.tsv")]) == 0
    table = capsys.readouterr().out.splitlines()
    assert one in table[0]
    assert two in table[0]
    assert table[1].startswith("accuracy")
    assert table[1].count("[") == 2
    for run in (one, two):
        found = kept(RunFolder(Path(run)))["test"]
        assert found["main"] == "accuracy"
        assert 0 <= found["metrics"]["accuracy"]["value"] <= 1
        lines = (Path(run) / "evaluations" / "test.jsonl").read_text().splitlines()
        assert len(lines) == 5
        assert json.loads(lines[0])["text"] == "good"


def test_a_run_on_built_in_data_has_a_test_set(runs: Path, capsys) -> None:
    assert main(["evaluate", str(runs / "one"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["metrics"]["accuracy"]["n"] == len(found["lines"]) > 100
    assert "built-in" in kept(RunFolder(runs / "one"))


def test_what_is_no_evaluation_is_named(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "evaluations").mkdir()
    (tmp_path / "evaluations" / "x.json").write_text("[]")
    with pytest.raises(RegardError, match=r"x.json: not an evaluation"):
        kept(RunFolder(tmp_path))
