"""Comparison folders with damaged or crafted files: one line, or made again; never used unseen."""

import json
import shutil

import pytest

import regard
from regard.cli import main
from regard.commands.worker_options import MAX_THREADS
from regard.compare import comparison
from regard.compare.cell_worker import run_cell
from regard.errors import RegardError

ARGUMENTS = {
    "vary": {"pooling": ["sum", "mean"]},
    "width": 8,
    "batch_tokens": 200,
    "budget": "steps=2",
    "seeds": 1,
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with data and a finished comparison."""
    place = tmp_path_factory.mktemp("compare")
    lines = [f"the {w} film {i} {w}\t{w}" for i in range(60) for w in ("good", "bad")]
    (place / "texts.tsv").write_text("text\tlabel\n" + "\n".join(lines) + "\n", "utf-8")
    run(place)
    return place


@pytest.fixture
def finished(place, tmp_path):
    """The comparison, as it was before the test; its path is a part of its plan."""
    shutil.copytree(place / "c", tmp_path / "whole")
    yield place
    shutil.rmtree(place / "c")
    shutil.copytree(tmp_path / "whole", place / "c")


def run(place, trained=None):
    """Compare, or resume the comparison."""

    def run_cells(folder, cells, finished):
        for cell in cells:
            if trained is not None:
                trained.append(cell.name)
            finished(cell, run_cell(folder, cell.name))

    data = str(place / "texts.tsv")
    return regard.compare("classify", data, out=place / "c", run_cells=run_cells, **ARGUMENTS)


def record_of(finished):
    return min(finished.glob("c/cells/*-seed-1.json"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("label", 5),
        ("error", [1, 2]),
        ("metric", 0.5),
        ("metric", {"name": "accuracy", "unit": "share", "value": "high"}),
        ("resampled", [[[1]]]),
        ("resampled", None),
        ("by_length", {"0–10": 1}),
        ("by_length", {"0–10": {"value": "x"}}),
        pytest.param("parameters", 10**400, id="parameters-huge"),
        ("examples", -1),
        ("seconds", "long"),
        ("constant", "0.5"),
    ],
)
def test_a_record_that_no_worker_writes_is_named(name, value, finished):
    path = record_of(finished)
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: value}))
    with pytest.raises(RegardError, match=rf"{path.name}: is damaged: restore it from a copy"):
        run(finished)


def test_records_of_other_sentences_are_not_compared(finished):
    path = record_of(finished)
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | {"resampled": record["resampled"][:7]}))
    with pytest.raises(RegardError, match="tested on different sentences"):
        run(finished)


@pytest.mark.parametrize("damage", ["changed", "missing", "added"])
def test_damaged_data_is_not_used_for_further_trainings(damage, finished):
    test = finished / "c" / "data" / "test.jsonl"
    if damage == "changed":
        test.write_text(test.read_text().replace("film", "f1lm"))
    elif damage == "missing":
        test.unlink()
    else:
        (test.parent / "other.jsonl").write_text("{}\n")
    with pytest.raises(RegardError, match=r"c/data: is damaged: .* remove it to make it again"):
        run(finished)


def test_prepared_data_that_is_damaged_is_prepared_again(finished, monkeypatch):
    """It is only measured, but a damaged corpus can end the process."""
    arrow = next(finished.glob("c/prepared/*/train.arrow"))
    content = arrow.read_bytes()
    arrow.write_bytes(content[:200] + b"\xff" * 200 + content[400:])
    timed = []
    estimate = comparison.estimate_seconds
    monkeypatch.setattr(
        comparison, "estimate_seconds", lambda *given: timed.append(estimate(*given)) or timed[-1]
    )
    record_of(finished).unlink()
    shutil.rmtree(finished / "c" / "runs")
    trained = []
    run(finished, trained)
    assert len(trained) == 1
    assert timed[0] > 0
    assert arrow.read_bytes() == content


def test_threads_have_a_bound(capsys):
    command = ["predict", "example:sentiment", "--input", "a.txt", "--output", "b", "--jobs", "1"]
    assert main([*command, "--threads", str(MAX_THREADS + 1)]) == 2
    assert "--threads: expected a whole number from 1 to 1,024" in capsys.readouterr().err
