"""The trainings of a comparison in worker processes on this machine."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from regard.atomic_files import open_to_append
from regard.compare.cell_worker import STOPPED
from regard.compare.comparison_folder import ComparisonFolder, failure
from regard.compare.grid import Cell

POLL = 0.1
"""Seconds between two looks at the worker processes."""
GRACE = 60.0
"""Seconds that a worker has to save its state before it is killed."""
Finished = Callable[[Cell, dict[str, Any]], None]


def run_locally(
    folder: ComparisonFolder, cells: Sequence[Cell], jobs: int, finished: Finished
) -> None:
    """Train all cells, `jobs` at a time; an interruption lets the workers save their states."""
    waiting, running = list(cells), list[tuple[Cell, subprocess.Popen[bytes]]]()
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                cell = waiting.pop(0)
                running.append((cell, start_worker(folder, cell.name)))
            for cell, process in [*running]:
                if process.poll() is not None:
                    running.remove((cell, process))
                    finished(cell, collect(folder, cell.name, cell.label, process.returncode))
            time.sleep(POLL)
    finally:
        _stop([process for _, process in running])


def start_worker(folder: ComparisonFolder, name: str) -> "subprocess.Popen[bytes]":
    """Start a worker process in a session of its own: ctrl-C reaches it through its parent."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    with open_to_append(folder.log(name)) as log:
        return subprocess.Popen(
            [sys.executable, "-m", "regard.compare.cell_worker", str(folder.path), name],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,
        )


def collect(folder: ComparisonFolder, name: str, label: str, code: int) -> dict[str, Any]:
    """The record of a worker that has ended; a worker that left none has failed."""
    record = folder.result(name)
    if record is not None and code in (0, 1):
        return record
    record = failure(label, _reason(folder, name, code))
    folder.write(folder.record(name), record)
    return record


def _reason(folder: ComparisonFolder, name: str, code: int) -> str:
    if code < 0:
        number = signal.Signals(-code).name
        memory = ": the machine may have run out of memory" if -code == signal.SIGKILL else ""
        return f"the worker was killed by {number}{memory}"
    if code == STOPPED:
        return "the worker was stopped"
    lines = folder.log(name).read_text("utf-8", "replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f"the worker ended with code {code}: {last or 'no message'}"


def _stop(processes: Sequence["subprocess.Popen[bytes]"]) -> None:
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + GRACE
    for process in processes:
        try:
            process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def unfinished(folder: ComparisonFolder, cells: Sequence[Cell]) -> Iterator[Cell]:
    """Cells without a record, or whose training failed."""
    for cell in cells:
        record = folder.result(cell.name)
        if record is None or "error" in record:
            yield cell
