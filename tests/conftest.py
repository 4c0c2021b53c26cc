"""Shapes in signatures are checked in all tests: beartype reads them through jaxtyping's hook."""

import os

# Products of bf16 matrices die of an illegal instruction on virtual machines that announce AMX but
# do not allow it; oneDNN reads this once, when torch is imported.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

from collections.abc import Iterator

import pytest
import torch
from hypothesis import HealthCheck, settings
from jaxtyping import config, install_import_hook

# A slow machine is no mistake of the code: no property may fail for taking long.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

install_import_hook("regard", "beartype.beartype")
torch.set_num_threads(1)  # workers of pytest-xdist share the cores


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture
def shapes_unchecked() -> Iterator[None]:
    """For tests of our own error messages: the check of shapes would answer before them."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)
