"""Which library multiplies float32 matrices on a CPU while a model is trained: MKL or oneDNN.

torch contains both and leaves float32 to MKL, which uses slower instructions on processors that are
not Intel's. It gives products to oneDNN where less precision is allowed; but on processors without
matrix tiles (AMX) oneDNN does not make use of that, computes in float32 all the same, and can be
twice as fast. So time and error of both are measured, once per machine, and oneDNN is taken only if
it is clearly faster and as exact. The measurement is a process of its own: virtual machines that
announce AMX but do not allow it end a process that tries.
"""

import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import torch

from regard.atomic_files import write_text
from regard.errors import RegardError
from regard.training.stored_runs.data_cache import default_cache
from regard.verified_files import MEBIBYTE, read_json

Library = Literal["mkl", "onednn"]
ENOUGH = 1.2
"""How many times faster oneDNN has to be."""
EXACT = 3e-6
"""Relative error of a product that is computed in float32; with factors in bfloat16 it is 3e-3."""
KEPT_PRODUCTS = 128
"""How many compiled products oneDNN keeps, one for each combination of sizes. More would only take
memory, since few batches have equal sizes; its own limit is 1,024."""
SECONDS = 60
"""How long the measurement may take, with the import of torch."""


@contextmanager
def multiply_by(library: Library) -> Iterator[None]:
    """Multiply float32 matrices on the CPU by this library; it is the same for all threads."""
    if library == "mkl":
        yield
        return
    # oneDNN reads this when it multiplies for the first time
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(KEPT_PRODUCTS))
    settings = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    before = settings.fp32_precision
    settings.fp32_precision = "bf16"
    try:
        yield
    finally:
        settings.fp32_precision = before


def choose_library(device: torch.device, cache: Path | None = None) -> Library:
    """The library for training on this device; measured if no earlier result is in `cache`.

    Args:
        device: where the model is trained.
        cache: the folder of the result (default: the user's cache folder).
    """
    if device.type != "cpu" or not _has_choice():
        return "mkl"
    folder = default_cache() if cache is None else cache
    if folder is None:
        return "mkl"
    path, machine = folder / "matrix_products.json", _machine()
    measured = _read(path)
    if machine not in measured:
        try:
            measured[machine] = "onednn" if _is_better(_measure_apart()) else "mkl"
        except subprocess.TimeoutExpired:  # other programs keep the machine busy: measure later
            return "mkl"
        with suppress(OSError, RegardError):  # then the next run measures again
            write_text(path, json.dumps(measured, indent=1) + "\n")
    return measured[machine]


def measure() -> dict[str, float]:
    """Milliseconds of MKL and oneDNN for products as in training, and the error of oneDNN."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    pairs = [
        (torch.randn(rows, inner), torch.randn(columns, inner))
        for rows, inner, columns in ((256, 256, 2048), (64, 512, 256))
    ]

    def seconds() -> float:
        best = float("inf")
        for _ in range(7):
            began = time.process_time()
            for x, weight in pairs:
                torch.nn.functional.linear(x, weight)
                x.t() @ (x @ weight.t())
            best = min(best, time.process_time() - began)
        return best

    plain = seconds()
    with multiply_by("onednn"):
        fast = seconds()
        x, weight = pairs[0]
        product = torch.nn.functional.linear(x, weight).double()
    exact = x.double() @ weight.double().t()
    error = float((product - exact).norm() / exact.norm())
    return {"mkl": 1000 * plain, "onednn": 1000 * fast, "error": error}


def _is_better(measured: dict[str, float] | None) -> bool:
    """Whether oneDNN is faster, and computes in float32."""
    if measured is None:
        return False
    return measured["mkl"] >= ENOUGH * measured["onednn"] and measured["error"] < EXACT


def _has_choice() -> bool:
    """Whether this torch can be told to use oneDNN for float32 here."""
    return hasattr(torch.backends.mkldnn, "matmul") and (
        torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    )


def _machine() -> str:
    """What the measurement depends on: processor, torch, instructions that are allowed."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        lines = []
    known = {name.strip(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    # Virtual machines name processors by their family: the instructions say more.
    instructions = hashlib.sha256(known.get("flags", "").encode()).hexdigest()[:8]
    model = known.get("model name", platform.processor())
    allowed = os.environ.get("ONEDNN_MAX_CPU_ISA", "")
    return (
        f"{platform.machine()} {model} {instructions} torch {torch.__version__} {allowed}".strip()
    )


def _read(path: Path) -> dict[str, Library]:
    """Earlier results; none if the file cannot be read."""
    try:
        content = read_json(path, MEBIBYTE)
    except (OSError, RegardError):
        return {}
    if not isinstance(content, dict):
        return {}
    return {name: value for name, value in content.items() if value in ("mkl", "onednn")}


def _measure_apart() -> dict[str, float] | None:
    """The measurement in a process of its own; None if that process failed.

    A process that takes too long is `subprocess.TimeoutExpired`, which says nothing about the
    libraries.
    """
    program = f"import json; from {__name__} import measure; print(json.dumps(measure()))"
    try:
        process = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            timeout=SECONDS,
        )
        measured: dict[str, float] = json.loads(process.stdout)
    except subprocess.TimeoutExpired:
        raise
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return measured
