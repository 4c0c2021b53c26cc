"""Every experiment runs at a tiny size and keeps its result; lists and reports show all."""

import ast
import json
import os
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from regard.cli import main
from regard.errors import RegardError
from regard.experiments import EXPERIMENTS, Finding, experiment_table
from regard.experiments.claims import (
    TOPICS,
    Experiment,
    Measured,
    Setting,
    clearly_above,
    over_seeds,
)
from regard.experiments.experiment_results import report_all, run_experiment, verdict
from regard.experiments.two_processes import processor_seconds, share_out
from regard.plugins import Table

NAMES = list(EXPERIMENTS)


@pytest.mark.parametrize("name", NAMES)
def test_runs_at_a_tiny_size(name, tmp_path):
    finding = run_experiment(name, tmp_path / name, "tiny")
    record = json.loads((tmp_path / name / "result.json").read_text("utf-8"))
    assert record["held"] is finding.held
    assert finding.numbers
    assert finding.summary.endswith(".")
    assert {name: table["rows"] for name, table in record["tables"].items()} == {
        name: table.rows for name, table in finding.tables.items()
    }
    assert finding.pictures
    for picture, svg in finding.pictures.items():
        assert ElementTree.fromstring(svg).tag.endswith("svg")
        assert (tmp_path / name / f"{picture}.svg").exists()
    page = (tmp_path / name / "report.html").read_text("utf-8")
    assert EXPERIMENTS[name].source in page.replace("&amp;", "&")


@pytest.mark.parametrize("name", NAMES)
def test_is_one_readable_file(name):
    path = Path(sys.modules[EXPERIMENTS[name].run.__module__].__file__)
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= 150
    assert len((ast.get_docstring(ast.parse(text)) or "").splitlines()) >= 4
    assert EXPERIMENTS[name].minutes <= 3
    assert {*EXPERIMENTS[name].row.split(", ")} <= {*TOPICS}


def test_a_claim_that_fails_is_reported_as_failed():
    failed = Finding(False, "it was not so.", {"x": over_seeds([1.0, 2.0])})
    assert verdict(failed) == "The claim did not hold: it was not so."
    experiment = Experiment("x", "It is so.", "nobody", "A1", 1, lambda setting: failed)
    page = report_all([(experiment, failed)], {"y": "no memory"})
    assert "did not hold" in page
    assert "failed to run" in page


def test_intervals_over_seeds():
    measured = over_seeds([1.0, 2.0, 3.0])
    assert (measured.mean, measured.n) == (2.0, 3)
    assert measured.low == pytest.approx(2 - 4.302653 / 3**0.5)  # Student's t with two degrees
    assert clearly_above(measured, -1)
    assert not clearly_above(measured, 0)
    assert clearly_above(Measured(1.0, float("nan"), float("nan"), 1), 0.5)
    assert Setting("large", Path()).pick(1, 2, 3) == 3


def test_the_command(capsys, tmp_path):
    assert main(["experiment", "--list"]) == 0
    listed = " ".join(capsys.readouterr().out.split())
    for one in EXPERIMENTS.values():
        assert one.name in listed
        assert f"{one.claim} ({one.source}; {one.topics})" in listed
    assert "A4 heads and positions" in listed
    assert "reweigh 0.1 Self-attention without weights" in listed
    assert main(["experiment", "permutaton"]) == 2
    assert "did you mean 'permutation'?" in capsys.readouterr().err
    assert main(["experiment"]) == 2
    assert "name one, or all" in capsys.readouterr().err
    words = ["experiment", "permutation", "--size", "tiny", "--out", str(tmp_path), "--quiet"]
    assert main(words) == 0
    said = capsys.readouterr()
    assert "The claim held" in said.out
    assert said.err == ""


@pytest.mark.parametrize("kind", ["page", "pipe", "folder", "link", "dangling link"])
def test_all_experiments_replace_no_report_of_somebody_else(kind, tmp_path, capsys):
    out, mine = tmp_path / "out", tmp_path / "mine.html"
    out.mkdir()
    path = out / "report.html"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif "link" in kind:
        path.symlink_to(mine)
    else:
        path.write_text("<title>My experiments</title>", "utf-8")
    if kind == "link":
        mine.write_text("<title>My experiments</title>", "utf-8")
    status = path.lstat()
    assert main(["experiment", "all", "--size", "tiny", "--out", str(out)]) == 2
    said = capsys.readouterr()
    assert said.err == f"regard: {path}: was not written by Regard: choose another --out\n"
    assert said.out == ""
    assert os.path.samestat(path.lstat(), status)
    assert path.lstat().st_mtime_ns == status.st_mtime_ns
    assert list(out.iterdir()) == [path]
    assert mine.exists() is (kind == "link")


def test_all_experiments_leave_other_files_as_they_are(tmp_path, capsys, monkeypatch):
    rows = {
        name: f"regard.experiments.untrained.{name}:EXPERIMENT" for name in ("distance", "masking")
    }
    monkeypatch.setattr(experiment_table, "EXPERIMENTS", Table("experiment", "none", rows))
    mine = [tmp_path / "notes.txt", tmp_path / "distance" / "report.html"]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text("my own words", "utf-8")
    command = ["experiment", "all", "--size", "tiny", "--out", str(tmp_path)]
    for _ in range(2):  # the second replaces the results of the first
        assert main(command) == 1
        assert "distance could not be run" in capsys.readouterr().err
        assert [path.read_text("utf-8") for path in mine] == ["my own words"] * 2
        assert {path.name for path in tmp_path.iterdir()} == {
            "notes.txt", "distance", "masking", "report.html"
        }  # fmt: skip
        assert [path.name for path in (tmp_path / "distance").iterdir()] == ["report.html"]


def test_halves_of_the_work_in_two_processes(tmp_path):
    jobs = [("a", 1), ("b", 2), ("c", 3)]
    setting = Setting("default", tmp_path, device="cpu")
    before = processor_seconds()
    found = share_out(setting, describe_job, jobs)
    assert [one[:3] for one in found] == [["default", str(tmp_path), [*job]] for job in jobs]
    assert found[0][3] == found[2][3] != found[1][3]
    assert os.getpid() not in [one[3] for one in found]
    assert processor_seconds() > before
    here = share_out(Setting("tiny", tmp_path), describe_job, jobs)
    assert [one[3] for one in here] == 3 * [os.getpid()]
    with pytest.raises(RegardError, match=r"^a process of the experiment failed: .*by zero$"):
        share_out(setting, divide, [(1, 0)])


def describe_job(setting, *job):
    return [setting.size, str(setting.folder), [*job], os.getpid()]


def divide(setting, a, b):
    return a / b
