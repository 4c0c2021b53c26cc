"""Tiny trained runs of every task, served by a real server."""

from collections.abc import Iterator
from typing import Any

import pytest

import regard
from regard.serve import Limits, Server
from tests.serve.requests import TASKS, Client
from tests.training.tiny import OPTIONS, write_data

TASK_OPTIONS = {
    "language": {"steps": 3, "learning_rate": 0.01, "ngrams": 0},
    "tag": {"steps": 60, "learning_rate": 0.05, "evaluate_every": 20, "dropout": 0.0},
}
"""A language model too weak to end its lines, a tagger that has learned something."""


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A run of each task."""
    runs = {}
    for task in TASKS:
        folder = tmp_path_factory.mktemp(f"serve-{task}")
        options = OPTIONS[task] | {"steps": 6, "average": 2} | TASK_OPTIONS.get(task, {})
        runs[task] = regard.train(
            task, write_data(folder, task), out=folder / f"my-{task}", **options
        )
    return runs


@pytest.fixture(scope="session")
def server(runs: dict[str, Any]) -> Iterator[Server]:
    """One server for all of them, for tests that do not change its state."""
    errors: list[str] = []
    paths = [run.folder.path for run in runs.values()]
    limits = Limits(request_seconds=110.0)  # for machines under load
    with Server(paths, limits=limits, on_error=errors.append) as server:
        yield server
    assert errors == []


@pytest.fixture(scope="session")
def ask(server: Server) -> Client:
    return Client(server.url)
