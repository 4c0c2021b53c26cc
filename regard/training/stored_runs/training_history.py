"""The course of training as a table: one record per validation."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.notebook_cards import table
from regard.number_format import format_bare_value, format_count
from regard.training.stored_runs.run_summary import json_lines

COLUMNS = ("step", "epoch", "seconds", "loss", "validation_loss", "learning_rate")


class History(list[dict[str, Any]]):
    """The validations of a run, the earliest first: a list of records.

    The columns are the step, the epoch, the seconds of training, the training loss since the
    validation before, the validation loss, the learning rate, each metric by name, and `average`:
    whether the record is of the average of several checkpoints, which only the last one can be.
    """

    def to_pandas(self) -> Any:
        """A data frame with one row per validation; needs pandas."""
        try:
            import pandas  # type: ignore[import-untyped,unused-ignore]
        except ImportError:
            raise ImportError("History.to_pandas needs pandas: pip install pandas") from None
        return pandas.DataFrame.from_records(list(self))

    def __repr__(self) -> str:
        validations = "validation" if len(self) == 1 else "validations"
        last = f", the last at step {format_count(self[-1]['step'])}" if self else ""
        return f"History({format_count(len(self))} {validations}{last})"

    def _repr_html_(self) -> str:
        head = list(self[0]) if self else list(COLUMNS)
        return table(head, [[_format(record.get(name)) for name in head] for record in self])


def read_history(path: Path) -> History:
    """The history in a file of metrics; an average that was not kept is left out."""
    lines = [line for line in json_lines(path) if isinstance(line.get("step"), int)]
    return History(_record(line) for line in lines if line.get("kept", True))


def _record(line: Mapping[str, Any]) -> dict[str, Any]:
    metrics = line.get("metrics")
    values = metrics.items() if isinstance(metrics, dict) else ()
    return {
        **{name: line.get(name) for name in COLUMNS},
        **{name: metric.get("value") for name, metric in values if isinstance(metric, dict)},
        "average": "averaged" in line,
    }


def _format(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, float):
        return f"{value:.2g}" if 0 < abs(value) < 0.1 else format_bare_value(value)
    return format_count(value) if isinstance(value, int) else ""
