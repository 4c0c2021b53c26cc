"""What a run says of itself while it goes on: lines of metrics, and event files for TensorBoard."""

import json
from dataclasses import asdict
from typing import Any

from regard.errors import RegardError
from regard.tasks.task import Evaluation
from regard.training.checkpoints import Position
from regard.training.folder import RunFolder, write_text

OFTEN = 10
"""Updates between two points of the training curves in TensorBoard."""


def write_line(folder: RunFolder, line: dict[str, Any], evaluation: Evaluation) -> None:
    """Add a line to the metrics of a run."""
    line = line | {
        "main": evaluation.main,
        "metrics": {name: asdict(found) for name, found in evaluation.metrics.items()},
        "by_length": {name: asdict(found) for name, found in evaluation.by_length.items()},
        "samples": [sample._asdict() for sample in evaluation.samples],
    }
    try:
        with open(folder.metrics, "a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    except OSError as error:
        raise RegardError(f"{folder.metrics}: cannot be written ({error.strerror})") from error


def forget_after(folder: RunFolder, position: Position) -> None:
    """Drop lines of metrics that the run will write again."""
    if not folder.metrics.exists():
        return
    try:
        text = folder.metrics.read_text("utf-8", errors="replace")
    except OSError as error:
        raise RegardError(f"{folder.metrics}: cannot be read ({error.strerror})") from error
    lines = text.split("\n")  # not splitlines: samples may hold other separators of lines
    kept = [line for line in lines if line and _still_true(line, position)]
    if text != (known := "".join(line + "\n" for line in kept)):
        write_text(folder.metrics, known)


def _still_true(line: str, position: Position) -> bool:
    try:
        found = json.loads(line)
        return bool(found["step"] <= position.step) and (
            "averaged" not in found or position.finished
        )
    except (ValueError, KeyError, TypeError):
        return False  # it was being written when the run was ended


class Events:
    """Event files for TensorBoard; nothing where they were not asked for.

    Those of a run that goes on begin after its last saved state, and what was written beyond it
    is marked as void.
    """

    def __init__(self, folder: RunFolder, position: Position, wanted: bool) -> None:
        self._writer: Any = None
        if wanted:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError as error:
                raise RegardError(
                    "option tensorboard: its package is missing: pip install 'regard[tensorboard]'"
                ) from error
            self._writer = SummaryWriter(
                str(folder.path / "tensorboard"), purge_step=position.step + 1
            )

    def update(self, step: int, values: dict[str, float]) -> None:
        """Points of an update, now and then."""
        if self._writer is not None and step % OFTEN == 0:
            for name, value in values.items():
                self._writer.add_scalar(f"training/{name}", value, step)

    def look(self, step: int, evaluation: Evaluation) -> None:
        """Points of a look at the validation data."""
        if self._writer is not None:
            for name, measured in evaluation.metrics.items():
                self._writer.add_scalar(f"validation/{name}", measured.value, step)
            for number, sample in enumerate(evaluation.samples):
                text = f"{sample.given}\n\n→ {sample.predicted}\n\n({sample.expected})"
                self._writer.add_text(f"sample/{number}", text, step)

    def flush(self) -> None:
        """See to it that all points are on disk, before a state that counts on them is."""
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        """No more points."""
        if self._writer is not None:
            self._writer.close()
