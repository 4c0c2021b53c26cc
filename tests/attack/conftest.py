"""One tiny translator for all attacks that need a run."""

from pathlib import Path

import pytest

import regard
from tests.training.tiny import OPTIONS, write_data


@pytest.fixture(scope="session")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run; tests that change it work on a copy."""
    folder = tmp_path_factory.mktemp("attacked")
    options = OPTIONS["translation"] | {"steps": 4, "average": 2}
    data = write_data(folder, "translation")
    return regard.train("translation", data, out=folder / "run", **options).folder.path
