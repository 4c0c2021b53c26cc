"""Evaluations are saved in the run folder and read back."""

import json
from pathlib import Path

import pytest

from regard.cli import main
from regard.errors import RegardError
from regard.inference.evaluations import evaluation_name, saved_evaluations
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
        name = evaluation_name(runs / "test.tsv")
        found = saved_evaluations(RunFolder(Path(run)))[name]
        assert found["data"] == [str((runs / "test.tsv").resolve())]
        assert found["main"] == "accuracy"
        assert 0 <= found["metrics"]["accuracy"]["value"] <= 1
        lines = (Path(run) / "evaluations" / f"{name}.jsonl").read_text().splitlines()
        assert len(lines) == 5
        assert json.loads(lines[0])["text"] == "good"


def test_files_of_one_name_have_an_evaluation_each(runs: Path, tmp_path: Path, monkeypatch) -> None:
    rows = (runs / "test.tsv").read_text().splitlines(keepends=True)
    for folder, count in (("old", 3), ("new", 5)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "sample.tsv").write_text("".join(rows[:count]))
        monkeypatch.chdir(tmp_path / folder)  # the same words on the command line
        assert main(["evaluate", str(runs / "one"), "--data", "sample.tsv"]) == 0
    saved = saved_evaluations(RunFolder(runs / "one")).values()
    sizes = {
        one["data"][0]: one["metrics"]["accuracy"]["n"]
        for one in saved
        if one["name"].startswith("sample")
    }
    paths = [str(tmp_path.resolve() / folder / "sample.tsv") for folder in ("old", "new")]
    assert sizes == {paths[0]: 2, paths[1]: 4}
    assert main(["evaluate", str(runs / "one"), "--data", paths[0]]) == 0  # replaces its own
    assert len(saved_evaluations(RunFolder(runs / "one"))) == len(saved)


def test_a_run_on_built_in_data_has_a_test_set(runs: Path, capsys) -> None:
    assert main(["evaluate", str(runs / "one"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["metrics"]["accuracy"]["n"] == len(found["lines"]) > 100
    assert "built-in" in saved_evaluations(RunFolder(runs / "one"))


def test_what_is_no_evaluation_is_named(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "evaluations").mkdir()
    (tmp_path / "evaluations" / "x.json").write_text("[]")
    with pytest.raises(RegardError, match=r"x.json: not an evaluation"):
        saved_evaluations(RunFolder(tmp_path))
