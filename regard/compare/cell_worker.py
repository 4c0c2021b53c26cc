"""One training of a comparison, in a process of its own: train, evaluate, write the record.

`python -m regard.compare.cell_worker FOLDER NAME` is what worker processes and Ray run. A process
of its own gives every training its own peak memory and processor time, and a crash ends only one.
"""

import fcntl
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from regard.atomic_files import open_to_append
from regard.compare.comparison_folder import FORMAT, ComparisonFolder, failure
from regard.errors import RegardError
from regard.inference.load_run import load
from regard.metrics.bootstrap import resample_counts
from regard.metrics.tally import Tally
from regard.tasks.task import OUTPUT_NAMES, Evaluation
from regard.training.loop import Progress
from regard.training.run import train_run

RESAMPLES = 1000
"""Resamples of the test sentences; the same in every training, so that tests can be paired."""
STOPPED = 75
"""Exit code of a worker that was stopped and can resume (EX_TEMPFAIL)."""


def run_cell(
    folder: ComparisonFolder, name: str, stop: Callable[[], bool] = lambda: False
) -> dict[str, Any] | None:
    """Train one cell and write its record; None if it was stopped before its end."""
    job = folder.read(folder.job(name))
    speeds: list[float] = []
    started = time.process_time()

    def report(progress: Progress) -> None:
        speeds.append(progress.tokens_per_second)

    run_folder, position = train_run(
        job["task"],
        job["options"],
        folder.run(name),
        report=report,
        log=_print,
        stop=stop,
        device=job["device"],
    )
    processor = time.process_time() - started
    if not position.done:
        return None
    run = load(run_folder.path, job["device"])
    evaluation = run.evaluate(job["test"])
    record = {
        "format": FORMAT,
        "label": job["label"],
        "parameters": sum(parameter.numel() for parameter in run.model.parameters()),
        "updates": position.step,
        "epochs": position.epoch + 1,
        "ended": position.ended,
        "seconds": position.seconds,
        "processor_seconds": processor,
        "items_per_second": median(speeds) if speeds else None,
        "peak_memory": _peak_memory(),
        **describe_evaluation(evaluation),
    }
    folder.write(folder.record(name), record)
    return record


def describe_evaluation(evaluation: Evaluation) -> dict[str, Any]:
    """The main metric: its value, on resampled sentences too, and by length."""
    main = evaluation.metrics[evaluation.main]
    tally = evaluation.tally
    return {
        "metric": main.record(),
        "higher": evaluation.higher,
        "examples": 0 if tally is None else len(tally),
        "resampled": [] if tally is None else resampled_values(tally),
        "by_length": {name: value.record() for name, value in evaluation.by_length.items()},
        "same_answer": gives_one_answer(evaluation.lines),
        "constant": accuracy_of_one_answer(evaluation),
    }


def accuracy_of_one_answer(evaluation: Evaluation) -> float | None:
    """The accuracy of always giving the most frequent answer; None for other metrics."""
    if evaluation.main != "accuracy" or evaluation.report is None:
        return None
    if (confusion := evaluation.report.confusion) is None:
        return None
    examples = [sum(row) for row in confusion.counts]
    return max(examples) / sum(examples)


def gives_one_answer(lines: Sequence[Mapping[str, Any]]) -> bool:
    """Whether all examples got the same output: a label, a text, or tags that are all the same."""
    outputs = [line[name] for line in lines for name in OUTPUT_NAMES if name in line]
    answers = {part for one in outputs for part in ([one] if isinstance(one, str) else one)}
    return len(outputs) > 1 and len(answers) <= 1


def resampled_values(tally: Tally, resamples: int = RESAMPLES) -> list[float | None]:
    """The metric on resamples of the sentences, which are the same for the same number of them."""
    counts = resample_counts(tally, resamples, seed=0)
    values = np.concatenate([tally.formula(count @ tally.statistics) for count in counts])
    return [float(value) if np.isfinite(value) else None for value in values]


def main(folder: str, name: str) -> int:
    """Train one cell; what goes wrong is written into its record."""
    comparison = ComparisonFolder(Path(folder))
    parent, stopped = os.getppid(), list[int]()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: stopped.append(number))

    def stop() -> bool:  # also where the process that started this one is gone
        return bool(stopped) or os.getppid() != parent

    # A worker whose parent was killed saves its state and ends; its successor waits for it here.
    with open_to_append(comparison.lock(name)) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = comparison.result(name)
        if known is not None and "error" not in known:
            return 0
        try:
            return 0 if run_cell(comparison, name, stop) is not None else STOPPED
        except (RegardError, ValueError, RuntimeError, MemoryError) as error:
            label = comparison.read(comparison.job(name))["label"]
            message = " ".join(str(error).split()) or type(error).__name__
            with suppress(OSError, RegardError):  # on a full disk: whoever started this sees it
                comparison.write(comparison.record(name), failure(label, message))
            with suppress(OSError):
                print(message, file=sys.stderr, flush=True)
            return 1


def _peak_memory() -> int | None:
    """The most memory that this process had, in bytes."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * unit


def _print(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)  # the same in every worker: the same numbers everywhere
    sys.exit(main(*sys.argv[1:3]))
