"""How time, memory and the limits of the machine are measured."""

import contextlib
import ctypes
import gc
import multiprocessing
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

Run = Callable[[], object]


@dataclass(frozen=True)
class Times:
    """Seconds of each repeat, in the order of the rounds."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        if len(self.seconds) < 2:
            return self.median, self.median
        low, _, high = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return low, high


def interleaved(
    runs: Mapping[str, Run], budget: float, least: int = 5, most: int = 200
) -> dict[str, Times]:
    """Times of runs that take turns, in an order shuffled each round.

    Each takes part until it has used `budget` seconds, but at least `least` times. All start with
    one turn that does not count.
    """
    for run in runs.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    order = random.Random(0)
    for turn in range(most):
        names = [name for name in runs if turn < least or sum(seconds[name]) < budget]
        order.shuffle(names)
        for name in names:
            start = time.perf_counter()
            runs[name]()
            seconds[name].append(time.perf_counter() - start)
        if not names:
            break
    return {name: Times(tuple(taken)) for name, taken in seconds.items()}


def ratio(of: Times, to: Times) -> float:
    """How many times longer the one takes, by medians over the rounds that both took part in."""
    rounds = min(len(of.seconds), len(to.seconds))
    return statistics.median(of.seconds[:rounds]) / statistics.median(to.seconds[:rounds])


def peak_growth(warm: Run, run: Run) -> int:
    """Bytes by which the resident memory of this process grows at most while `run` runs.

    `warm` comes first, for libraries that load with the first call; what it leaves free in the
    heap goes back to the system, so that nothing is hidden in it.
    """
    warm()
    gc.collect()
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before = _status("VmRSS")
    result = run()
    growth = _status("VmHWM") - before
    del result
    return growth


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {field}")


def in_fresh_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function returns in a process of its own, or the error it ended with, as text.

    The process is forked from one that has imported the libraries and computed nothing.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "regard"])
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(sender, function, arguments))
    process.start()
    sender.close()
    try:
        answer = receiver.recv()
    except EOFError:
        answer = "the process ended without an answer"
    process.join()
    return answer


def _send(sender: Any, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        sender.send(function(*arguments))
    except Exception as error:
        sender.send(f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")


def multiplications_per_second() -> float:
    """Multiply-adds, counted as two, of a product of large matrices: the limit of dot products."""
    left, right, out = (torch.randn(1024, 1024) for _ in range(3))
    times = interleaved({"gemm": lambda: torch.mm(left, right, out=out)}, 1.0)["gemm"]
    return 2 * 1024**3 / times.median


def tanh_per_second() -> float:
    """Of torch.tanh on numbers that stay in the cache."""
    numbers = torch.randn(torch.get_num_threads() * 2**16)
    out = torch.empty_like(numbers)
    times = interleaved({"tanh": lambda: torch.tanh(numbers, out=out)}, 0.5, most=3000)["tanh"]
    return numbers.numel() / times.median


def kernel_tanh_per_second() -> float | None:
    """Of the C kernel's own tanh on numbers that stay in the cache, on as many threads as torch."""
    from regard.attention import additive_native as native

    if not native.available():
        return None
    tanh, size, calls = native._library().additive_tanh, 2**16, 50

    def work(_: int) -> None:
        numbers, out = torch.randn(size), torch.empty(size)
        for _ in range(calls):
            tanh(numbers.data_ptr(), out.data_ptr(), size)

    threads = torch.get_num_threads()
    with ThreadPoolExecutor(threads) as pool:
        times = interleaved({"tanh": lambda: [*pool.map(work, range(threads))]}, 0.5)["tanh"]
    return threads * size * calls / times.median


def import_seconds(repeats: int) -> tuple[Times, Times]:
    """Of starting Python with `import torch`, and with `import regard`, which imports it too."""
    python = [sys.executable, "-c"]
    times = interleaved(
        {
            name: lambda name=name: subprocess.run([*python, f"import {name}"], check=True)
            for name in ("torch", "regard")
        },
        budget=0.0,
        least=repeats,
    )
    return times["torch"], times["regard"]
