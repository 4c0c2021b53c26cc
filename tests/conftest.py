"""Shapes in signatures are checked in all tests: beartype reads them through jaxtyping's hook."""

import os

# Products of bf16 matrices die of an illegal instruction on virtual machines that announce AMX but
# do not allow it; oneDNN reads this once, when torch is imported.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings
from jaxtyping import config, install_import_hook

# A slow machine is no mistake of the code: no property may fail for taking long.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# No test writes into the user's cache of prepared data.
_cache = tempfile.TemporaryDirectory(prefix="regard-cache-")
os.environ["XDG_CACHE_HOME"] = _cache.name

install_import_hook("regard", "beartype.beartype")
torch.set_num_threads(1)  # workers of pytest-xdist share the cores

SLOW = (
    "attack/test_damage.py",
    "attack/test_pretrained_folders.py",
    "attack/test_run_folders.py",
    "attack/test_served_links.py",
    "attack/test_server.py",
    "attack/test_writers.py",
    "attention/test_additive_native.py",
    "browser",
    "commands/test_demo.py",
    "commands/test_predict.py",
    "commands/test_run_management.py",
    "compare/test_comparison.py",
    "devices/test_standin.py",
    "docs/test_guide_code.py",
    "docs/test_homework.py",
    "docs/test_notebooks.py",
    "docs/test_readme.py",
    "experiments/test_every_experiment.py",
    "experiments/test_trained.py",
    "inference",
    "layers/test_checked.py",
    "models/test_configs.py",
    "models/test_overfits.py",
    "pretrained/test_decoders.py",
    "pretrained/test_encoders.py",
    "pretrained/test_import_command.py",
    "pretrained/test_imported_runs.py",
    "pretrained/test_imported_translators.py",
    "pretrained/test_served_imports.py",
    "pretrained/test_translators.py",
    "serve",
    "show/test_runs_shown.py",
    "tasks",
    "training",
)
"""What `make quick` leaves out: modules that train, build many models or start other programs."""


def is_slow(path: Path) -> bool:
    """Whether a test module is in `SLOW`."""
    name = path.relative_to(Path(__file__).parent).as_posix()
    return any(name == slow or name.startswith(f"{slow}/") for slow in SLOW)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    tests = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(tests) and is_slow(item.path):
            item.add_marker("slow")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    # Importing the slow modules would take longer than many fast tests.
    slow = collection_path.is_relative_to(Path(__file__).parent) and is_slow(collection_path)
    return True if slow and config.option.markexpr == "not slow" else None


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture
def shapes_unchecked() -> Iterator[None]:
    """For tests of our own error messages: the check of shapes would answer before them."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)
