"""One tiny translator for all attacks that need a run, and a summary of all attacks."""

from pathlib import Path

import pytest

import regard
from tests.attack.tally import FAMILIES
from tests.training.tiny import OPTIONS, write_data


@pytest.fixture(scope="session")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run; tests that change it work on a copy."""
    folder = tmp_path_factory.mktemp("attacked")
    options = OPTIONS["translation"] | {"steps": 4, "average": 2}
    data = write_data(folder, "translation")
    return regard.train("translation", data, out=folder / "run", **options).folder.path


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many attempts there were, and how they ended."""
    for name, family in sorted(FAMILIES.items()):
        terminalreporter.write_line(f"attack: {name}: {family}")
