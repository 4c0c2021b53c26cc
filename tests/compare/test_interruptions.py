"""A comparison on a full disk, and one that is stopped by ctrl-C: one line, and nothing is lost."""

import errno
import os
import subprocess
import sys
import time
from functools import partial
from types import SimpleNamespace

import pytest

import regard
from regard.cli import main
from regard.compare import cell_worker, comparison, local_jobs
from regard.compare.cell_budget import parse_budget
from regard.compare.cell_worker import run_cell
from regard.compare.comparison_folder import ComparisonFolder
from regard.compare.grid import make_cells, make_grid
from regard.errors import RegardError
from regard.tasks.registry import TASKS

VARY = {"pooling": ["sum", "mean"]}
OPTIONS = {"width": 8, "batch_tokens": 200, "budget": "steps=3", "seeds": 1}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "texts.tsv"
    lines = [f"the {w} film {i} {w}\t{w}" for i in range(60) for w in ("good", "bad")]
    path.write_text("text\tlabel\n" + "\n".join(lines) + "\n", "utf-8")
    return str(path)


def train_here(trained):
    """Trains cells in this process and notes which."""

    def run_cells(folder, cells, finished):
        for cell in cells:
            trained.append(cell.label)
            finished(cell, run_cell(folder, cell.name))

    return run_cells


@pytest.mark.parametrize("passing", [0, 5, 40])
def test_a_full_disk_is_one_line_and_finished_trainings_are_kept(
    passing, data, tmp_path, monkeypatch
):
    left, sync = iter(range(passing)), os.fsync

    def full(handle):
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(handle)

    first, second = [], []
    arguments = {"data": data, "vary": VARY, "out": tmp_path / "c", **OPTIONS}
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(RegardError, match="No space left on device") as error:
            regard.compare("classify", **arguments, run_cells=train_here(first))
    assert "\n" not in str(error.value)
    assert not list(tmp_path.rglob("*.part"))
    kept = [p.name for p in tmp_path.glob("c/cells/*-seed-1.json")]
    found = regard.compare("classify", **arguments, run_cells=train_here(second))
    assert len(second) == 2 - len(kept)
    assert [one.seeds for one in found.systems] == [1, 1]


def test_a_worker_without_space_for_its_record_says_so_in_one_line(
    data, tmp_path, monkeypatch, capsys
):
    folder = ComparisonFolder(tmp_path)
    folder.write(folder.job("one"), {"label": "one", "task": "classify"})

    def full(*given):
        raise RegardError("model.safetensors: cannot be written (No space left on device)")

    monkeypatch.setattr(cell_worker, "run_cell", full)
    monkeypatch.setattr(ComparisonFolder, "write", full)
    assert cell_worker.main(str(tmp_path), "one") == 1
    folder.log("one").write_text(capsys.readouterr().err)
    reason = local_jobs._reason(folder, "one", 1)
    assert reason.endswith(": model.safetensors: cannot be written (No space left on device)")


def test_ctrl_c_is_one_line_that_says_how_to_resume(data, tmp_path, monkeypatch, capsys):
    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(comparison, "run_locally", stop)
    words = f"compare classify --data {data} --vary pooling=sum,mean --width 8 --budget steps=3"
    assert main([*words.split(), "--out", str(tmp_path / "c")]) == 130
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines()[-2:] == [
        "stopped; the same command with the same --out resumes",
        "regard: stopped",
    ]


def test_ctrl_c_lets_the_workers_save_their_states(tmp_path, monkeypatch):
    """A worker gets SIGTERM and the time to save; none of them stays behind."""
    saving = (
        "import pathlib, signal, sys, time\n"
        "def save(*_):\n"
        "    time.sleep(0.2)\n"
        "    pathlib.Path(sys.argv[1]).write_text('saved')\n"
        "    sys.exit(75)\n"
        "signal.signal(signal.SIGTERM, save)\n"
        "pathlib.Path(sys.argv[2]).touch()\n"
        "time.sleep(600)\n"
    )
    started = []

    def start(folder, name):
        files = [str(tmp_path / f"{name}.{end}") for end in ("saved", "ready")]
        started.append(subprocess.Popen([sys.executable, "-c", saving, *files]))
        return started[-1]

    def interrupted(seconds):
        time.sleep(seconds)
        if len(list(tmp_path.glob("*.ready"))) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(local_jobs, "start_worker", start)
    clock = SimpleNamespace(sleep=interrupted, monotonic=time.monotonic)
    monkeypatch.setattr(local_jobs, "time", clock)
    made = make_grid(TASKS["classify"], {}, VARY, parse_budget("steps=3"))
    cells = make_cells(made.systems, 2)
    with pytest.raises(KeyboardInterrupt):
        local_jobs.run_locally(ComparisonFolder(tmp_path), cells, 2, lambda cell, record: None)
    assert len(started) == 2
    assert len(list(tmp_path.glob("*.saved"))) == 2
    assert all(process.poll() == 75 for process in started)


def test_a_stopped_training_resumes_where_it_was_with_the_same_result(data, tmp_path):
    calls = {"whole": 0, "rest": 0}

    def counted(name, end=1000):
        def stop():
            calls[name] += 1
            return calls[name] > end

        return stop

    def uninterrupted(folder, cells, finished):
        for cell in cells:
            finished(cell, run_cell(folder, cell.name, counted("whole")))

    def interrupted(folder, cells, finished):
        for cell in cells:
            stops = iter([False, True])
            assert run_cell(folder, cell.name, partial(next, stops)) is None
            assert folder.result(cell.name) is None
            finished(cell, run_cell(folder, cell.name, counted("rest")))

    found = [
        regard.compare("classify", data, vary=VARY, out=tmp_path / name, run_cells=way, **OPTIONS)
        for name, way in (("whole", uninterrupted), ("parts", interrupted))
    ]
    assert 0 < calls["rest"] < calls["whole"]
    values = [[(one.label, one.estimate.value) for one in each.systems] for each in found]
    assert values[0] == values[1]
