"""Tables of n-grams in crafted runs: their digests are right, and their numbers are not."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from jaxtyping import config
from safetensors.numpy import load_file, save

from regard.training.run import train_run
from tests.attack.attacked_runs import answers, change_config, seal
from tests.attack.contained import contained
from tests.attack.tally import count
from tests.training.tiny import OPTIONS, write_data

TABLE = "data/ngrams.safetensors"
Craft = Callable[[Path], object]


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[str, Path]:
    """A classifier by naive Bayes and a Kneser-Ney model, each beside a network."""
    made, before = {}, config.jaxtyping_disable
    config.update("jaxtyping_disable", True)
    for task, option in (("classify", {"word_ngrams": 2}), ("language", {"ngrams": 4})):
        folder = tmp_path_factory.mktemp(task)
        data = {"data": write_data(folder, task)}
        options = OPTIONS[task] | {"steps": 3, "average": 1} | data | option
        train_run(task, options, folder / "run")
        answers(folder / "run")  # imports what forks would import one by one
        made[task] = folder / "run"
    config.update("jaxtyping_disable", before)
    return made


def table(**changes: Callable[[np.ndarray], np.ndarray | None]) -> Craft:
    """Other arrays in the table; none where a change gives none."""

    def craft(run: Path) -> None:
        arrays = dict(load_file(run / TABLE))
        for name, change in changes.items():
            changed = change(arrays.pop(name))
            if changed is not None:
                arrays[name] = np.ascontiguousarray(changed)
        (run / TABLE).write_bytes(save(arrays))

    return craft


def cell(place: int, value: float) -> Callable[[np.ndarray], np.ndarray]:
    def change(array: np.ndarray) -> np.ndarray:
        changed = array.copy()
        changed.flat[place] = value
        return changed

    return change


def instead(make: Craft) -> Craft:
    def craft(run: Path) -> None:
        (run / TABLE).unlink()
        make(run / TABLE)

    return craft


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**34)


ODD: dict[str, Craft] = {
    "a pipe": instead(os.mkfifo),
    "a device": instead(lambda path: path.symlink_to("/dev/zero")),
    "a folder": instead(os.mkdir),
    "16 GB": instead(sparse),
    "nothing": instead(lambda path: path.write_bytes(b"")),
    "no keys": table(keys=lambda a: None),
    "keys out of order": table(keys=lambda a: a[::-1]),
    "negative keys": table(keys=cell(0, -5)),
    "keys around zero": table(keys=lambda a: np.r_[-(2**63), a[1:-1], 2**63 - 1]),
    "one number as keys": table(keys=lambda a: np.array(3)),
    "keys with fractions": table(keys=lambda a: a.astype(float)),
}
CASES: dict[str, dict[str, Craft]] = {
    "classify": ODD
    | {
        "endless counts": table(counts=lambda a: np.full_like(a, np.inf)),
        "enormous counts": table(counts=lambda a: np.full_like(a, 3e38)),
        "one count of NaN": table(counts=cell(0, np.nan)),
        "a negative count": table(counts=cell(0, -1)),
        "counts of float64": table(counts=lambda a: a.astype(np.float64)),
        "counts in a row": table(counts=lambda a: a[:, 0]),
        "10^9 words": lambda run: change_config(run, word_ngrams=10**9),
        "other words": lambda run: change_config(run, word_ngrams=4),
    },
    "language": ODD
    | {
        "a share of NaN": table(shares=cell(0, np.nan)),
        "a share of 2": table(shares=cell(0, 2)),
        "a negative backoff": table(backoffs=cell(0, -1)),
        "fewer words": table(words=lambda a: a[:-1]),
        "keys beyond the rows": table(keys=cell(-1, 2**62)),
        "fewer keys": table(keys=lambda a: a[:-1]),
        "10^9 words": lambda run: change_config(run, ngrams=10**9),
        "other words": lambda run: change_config(run, ngrams=9),
    },
}


@pytest.mark.parametrize(("task", "name"), [(t, name) for t in CASES for name in CASES[t]])
def test_a_crafted_table_is_an_error_of_one_line(task, name, runs, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(runs[task], run)
    CASES[task][name](run)
    if (run / TABLE).is_file() and name != "16 GB":
        seal(run)
    outcome = contained(lambda: answers(run))
    count("crafted tables of n-grams", outcome.kind, outcome.cpu_seconds, outcome.megabytes)
    assert outcome.harmless(), outcome
    assert outcome.kind == "error", outcome
