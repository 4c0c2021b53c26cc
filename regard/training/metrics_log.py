"""The metrics of a run on disk: lines of JSON, and event files for TensorBoard."""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from regard.atomic_files import open_to_append, write_text
from regard.errors import OptionError, RegardError
from regard.training.run_folder import RunFolder
from regard.verified_files import MEBIBYTE, parse_json, read_bytes

if TYPE_CHECKING:
    from regard.tasks.task import Evaluation
    from regard.training.state import Position

MAX_METRICS = 1024 * MEBIBYTE
EVENT_INTERVAL = 10
"""Number of updates between two points of the training curves in TensorBoard."""


def append_line(folder: RunFolder, line: dict[str, Any], evaluation: "Evaluation") -> None:
    """Append a line with the values of a validation to the metrics of a run."""
    line = line | {
        "main": evaluation.main,
        "higher": evaluation.higher,
        "metrics": {name: metric.record() for name, metric in evaluation.metrics.items()},
        "by_length": {name: metric.record() for name, metric in evaluation.by_length.items()},
        "samples": [sample._asdict() for sample in evaluation.samples],
    }
    try:
        with open_to_append(folder.metrics) as file:
            file.write((json.dumps(line, ensure_ascii=False) + "\n").encode("utf-8"))
    except OSError as error:
        raise RegardError(f"{folder.metrics}: cannot be written ({error.strerror})") from error


def drop_lines_after(folder: RunFolder, position: "Position") -> None:
    """Drop the lines that the run writes again when it resumes from this position.

    Lines are appended before the state that knows of them is saved. A run that is killed in between
    leaves lines beyond its state, the last of them perhaps incomplete.
    """
    content, kept = _lines_before(folder, position)
    if content != kept:
        write_text(folder.metrics, kept.decode("utf-8"))


def saved_weights(lines: Iterable[Any]) -> dict[str, Any] | None:
    """Of the lines of metrics, the one that describes the weights in model.safetensors.

    These are the best weights of a single validation, or the average of several checkpoints if it
    was better. None without a validation.

    >>> first, second = {"step": 5, "best": True}, {"step": 9, "best": False}
    >>> saved_weights([first, second, {"step": 9, "averaged": ["step-5"], "kept": False}])["step"]
    5
    """
    records: list[dict[str, Any]] = [line for line in lines if _is_record(line)]
    averages = [line for line in records if "averaged" in line]
    if averages and averages[-1].get("kept"):
        return averages[-1]
    single = [line for line in records if "averaged" not in line]
    # Runs of earlier versions do not say which of their validations was the best.
    best = [line for line in single if line.get("best")] or single
    return best[-1] if best else None


def describe_weights(line: Mapping[str, Any]) -> str:
    """Which weights a line of metrics is about, in words.

    >>> describe_weights({"step": 1460}), describe_weights({"averaged": ["a", "b"], "step": 9})
    ('the weights of step 1,460', 'the average of the best 2 checkpoints')
    """
    if "averaged" in line:
        return f"the average of the best {len(line['averaged'])} checkpoints"
    return f"the weights of step {line['step']:,}"


def metrics_digest(folder: RunFolder, position: "Position") -> str:
    """The SHA-256 digest of the lines that a run has written up to this position."""
    return sha256(_lines_before(folder, position)[1]).hexdigest()


def verify_metrics(folder: RunFolder, position: "Position", digest: str | None) -> str:
    """A note if the metrics differ from those that the state of the run knows; "" if not.

    Nothing is computed from these lines, so that edited or damaged ones are no obstacle.
    """
    if digest is None or metrics_digest(folder, position) == digest:
        return ""
    return (
        f"{folder.metrics}: is not what the run has written (edited or damaged): lines that cannot "
        f"be read are dropped, the others are kept as they are"
    )


def _lines_before(folder: RunFolder, position: "Position") -> tuple[bytes, bytes]:
    """All metrics of a run, and those that were written before a position was reached."""
    try:
        content = read_bytes(folder.metrics, MAX_METRICS)
    except FileNotFoundError:
        return b"", b""
    lines = content.split(b"\n")  # not splitlines: samples may contain other line separators
    return content, b"".join(line + b"\n" for line in lines if line and _is_before(line, position))


def _is_record(line: Any) -> bool:
    """Whether a line is one that a run writes, and not one that was edited or damaged."""
    return (
        isinstance(line, dict)
        and isinstance(line.get("step"), int)
        and isinstance(line.get("averaged", []), list)
    )


def _is_before(line: bytes, position: "Position") -> bool:
    """Whether a line was written before the position was reached; that of an average comes last."""
    try:
        values = parse_json(line)
        return bool(values["step"] <= position.step) and (
            "averaged" not in values or position.finished
        )
    except (ValueError, KeyError, TypeError):
        return False  # an incomplete line


class Events:
    """Event files for TensorBoard, if they are enabled.

    When a run resumes, the points that were written after its saved state are marked as void
    (`purge_step`), so that TensorBoard shows each point once.
    """

    def __init__(self, folder: RunFolder, position: "Position", *, enabled: bool) -> None:
        self._writer: Any = None
        if enabled:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError as error:
                raise OptionError(
                    "tensorboard", "its package is missing: pip install 'regard[tensorboard]'"
                ) from error
            self._writer = SummaryWriter(
                str(folder.path / "tensorboard"), purge_step=position.step + 1
            )

    def add_update(self, step: int, values: dict[str, float]) -> None:
        """Add points of an update to the training curves, every `EVENT_INTERVAL` updates."""
        if self._writer is not None and step % EVENT_INTERVAL == 0:
            for name, value in values.items():
                self._writer.add_scalar(f"training/{name}", value, step)

    def add_validation(self, step: int, evaluation: "Evaluation", loss: float | None) -> None:
        """Add the metrics, the loss and the samples of a validation."""
        if self._writer is not None:
            if loss is not None:
                self._writer.add_scalar("validation/loss", loss, step)
            for name, metric in evaluation.metrics.items():
                self._writer.add_scalar(f"validation/{name}", metric.value, step)
            for number, sample in enumerate(evaluation.samples):
                text = f"{sample.given}\n\n→ {sample.predicted}\n\n({sample.expected})"
                self._writer.add_text(f"sample/{number}", text, step)

    def flush(self) -> None:
        """Write all points to disk: they must be there before a state that follows them."""
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        """Close the files."""
        if self._writer is not None:
            self._writer.close()
