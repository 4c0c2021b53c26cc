"""Tiny trained runs of every task behind a real server."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.serve import Server

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "training")]
from asking import TASKS, Client  # noqa: E402
from tiny import OPTIONS, write_data  # noqa: E402

MORE = {
    "language": {"steps": 3, "learning_rate": 0.01},
    "tag": {"steps": 60, "learning_rate": 0.05, "evaluate_every": 20, "dropout": 0.0},
}
"""A language model that knows too little to end its lines, a tagger that has learnt something."""


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A run of each task."""
    made = {}
    for task in TASKS:
        folder = tmp_path_factory.mktemp(f"serve-{task}")
        options = OPTIONS[task] | {"steps": 6, "average": 2} | MORE.get(task, {})
        made[task] = regard.train(
            task, write_data(folder, task), out=folder / f"my-{task}", **options
        )
    return made


@pytest.fixture(scope="session")
def server(runs: dict[str, Any]) -> Iterator[Server]:
    """All of them behind one server, for tests that leave it as it is."""
    told: list[str] = []
    with Server([run.folder.path for run in runs.values()], tell=told.append) as made:
        yield made
    assert told == []


@pytest.fixture(scope="session")
def ask(server: Server) -> Client:
    return Client(server.url)
