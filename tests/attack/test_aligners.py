"""Aligners: crafted runs, hostile pairs, sentences that would take all memory."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import regard
from regard.cli import main
from regard.errors import RegardError
from regard.tasks.alignment import task as alignment
from tests.attack.attacked_runs import seal
from tests.attack.contained import contained
from tests.attack.tally import count

LINES = [("the house", "la maison"), ("the blue house", "la maison bleue"), ("a cat", "un chat")]


def write_pairs(folder: Path, pairs: list[tuple[str, str]]) -> list[str]:
    for number, name in enumerate(("p.en", "p.fr")):
        text = "".join(f"{pair[number]}\n" for pair in pairs)
        (folder / name).write_text(text, "utf-8")
    return [str(folder / name) for name in ("p.en", "p.fr")]


@pytest.fixture(scope="module")
def aligner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("align")
    data = write_pairs(folder, LINES * 8)
    run = regard.train("align", data, out=folder / "run", epochs=7)
    run.predict([" ||| ".join(LINES[0])])  # imports what forks would import one by one
    return run.folder.path


def cells(array: np.ndarray) -> Callable[[Path], None]:
    return lambda run: np.save(run / "data/cells.npy", array)


def header(run: Path) -> None:
    """An array of 8 TB, of which the file has nothing."""
    path = run / "data/cells.npy"
    array = np.lib.format.header_data_from_array_1_0(np.zeros(1, np.int64))
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, array | {"shape": (10**12,)})


def pipe(run: Path) -> None:
    (run / "data/cells.npy").unlink()
    os.mkfifo(run / "data/cells.npy")


def words(text: str) -> Callable[[Path], None]:
    def craft(run: Path) -> None:
        (run / "data/source.json").write_text(text)

    return craft


CRAFTED = {
    "8 TB": header,
    "a pipe": pipe,
    "other numbers": cells(np.array([-1.0, 2.0])),
    "a table": cells(np.array([[-1, 2]])),
    "an empty array": cells(np.zeros(0, np.int64)),
    "numbers out of order": cells(np.array([-1, 3, 2])),
    "numbers beyond the words": cells(np.array([-1, 10**12])),
    "fewer cells": cells(np.array([-1, 2])),
    "objects": cells(np.array([-1, 2], np.int32)),
    "no words": words("{}"),
    "words that are numbers": words('{"words": [1, 2]}'),
    "words that are a text": words('{"words": "abc"}'),
    "equal words": words('{"words": ["a", "a"]}'),
    "nested words": words("[" * 200_000),
    "10^5 words": words('{"words": [' + ",".join(f'"w{n}"' for n in range(10**5)) + "]}"),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_aligner_is_an_error_of_one_line(name, aligner, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(aligner, run)
    CRAFTED[name](run)
    if name != "a pipe":
        seal(run)
    outcome = contained(lambda: regard.load(run).predict([" ||| ".join(LINES[0])]))
    count("crafted run folders", outcome.kind, outcome.cpu_seconds, outcome.megabytes)
    assert outcome.harmless(), outcome
    assert outcome.kind == "error", outcome


def test_sentences_too_long_to_align_are_named(aligner, tmp_path, capfd):
    pairs = write_pairs(tmp_path, [LINES[0], ("house " * 10**5, "maison " * 10**5)])
    outcome = contained(lambda: main(["align", str(aligner), "--data", *pairs]))
    assert (outcome.kind, outcome.value) == ("value", 2), outcome
    assert outcome.harmless(), outcome
    error = capfd.readouterr().err
    assert "sentences of 100,000 and 100,000 words: expected at most 2,000 words" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "hostile",
    [
        ("", "la"),
        ("the", ""),
        (" \t ", "la"),
        ("x" * 10**5, "y" * 10**5),
        ("\x1b[2J \u202e", "\ufffe \ud7ff"),
        ("a " * 190, "b " * 190),
    ],
)
def test_hostile_pairs_are_aligned_like_others(hostile, aligner, tmp_path, capfd):
    pairs = write_pairs(tmp_path, [LINES[0], hostile, LINES[1]])
    outcome = contained(lambda: main(["align", str(aligner), "--data", *pairs]))
    assert (outcome.kind, outcome.value) == ("value", 0), outcome
    assert outcome.harmless(), outcome
    lines = capfd.readouterr().out.split("\n")[:-1]
    pairs = write_pairs(tmp_path, LINES[:2])
    assert main(["align", str(aligner), "--data", *pairs]) == 0
    assert [lines[0], *lines[2:]] == capfd.readouterr().out.split("\n")[:-1]


def test_training_counts_the_pairs_of_words_before_it_takes_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(alignment, "MAX_CELLS", 100)
    data = write_pairs(tmp_path, LINES * 8)
    with pytest.raises(RegardError, match=r"pairs of words occur together, more than 100"):
        regard.train("align", data, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
