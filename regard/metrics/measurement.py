"""A metric's value with its interval."""

from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from regard.metrics.intervals import interval
from regard.metrics.tally import Tally, metric_value
from regard.number_format import Unit, format_interval, format_value


@dataclass(frozen=True)
class Measurement:
    """A metric's value with its interval, the number of examples, and how it was computed."""

    name: str
    value: float
    low: float
    """The lower end of the interval; NaN if there is none."""
    high: float
    n: int
    signature: str = ""
    unit: Unit = "number"
    """How the value is written for people."""
    missing: str = ""
    """Why there is no interval, or ""."""

    def __str__(self) -> str:
        return f"{self.name} {self.text()} (n = {self.n:,})"

    def text(self) -> str:
        """The value and its interval as people write them, such as 94.8 % [91.2, 97.0]."""
        ends = format_interval(self.low, self.high, self.unit)
        return " ".join(filter(None, [format_value(self.value, self.unit), ends]))

    def record(self) -> dict[str, Any]:
        """All fields as plain values for JSON, with None for what is undefined or infinite."""
        fields = asdict(self)
        numbers = (name for name in fields if isinstance(fields[name], float))
        return fields | {name: fields[name] if isfinite(fields[name]) else None for name in numbers}


def measure(tally: Tally, *, confidence: float = 0.95) -> Measurement:
    """The metric's value with its interval."""
    low, high, missing = interval(tally, confidence=confidence)
    return Measurement(
        tally.name,
        metric_value(tally),
        low,
        high,
        n=len(tally),
        signature=tally.signature,
        unit=tally.unit,
        missing=missing,
    )
