"""What an experiment is: a claim with its source, a function that tests it, and what it found."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import nan, sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Literal, NamedTuple, TypeVar

from regard.devices import AUTO
from regard.metrics.intervals import student_quantile
from regard.show.report_page import Table

Size = Literal["tiny", "default", "large"]
T = TypeVar("T")
TOPICS = {
    "L2": "recurrent cells and their gradients",
    "L3": "attention in language models",
    "L5": "sharing over time",
    "S2": "the bottleneck",
    "S4": "attention in the decoder",
    "S5": "alignment and interpretation",
    "A1": "scores",
    "A2": "query, key and value",
    "A3": "self-attention without weights",
    "A4": "heads and positions",
    "A5": "no recurrence",
    "C1": "sums of word vectors",
    "C2": "weighted means",
    "C3": "fixed attention",
    "C4": "general attention",
    "C5": "masked errors",
    "X1": "mixture of experts",
    "X2": "shortcuts",
    "X3": "memory",
}
"""Topics of the lectures by row of their table."""


class Measured(NamedTuple):
    """A mean over seeds with its 95 % interval; NaN ends with one seed."""

    mean: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        ends = f" [{self.low:.3g}, {self.high:.3g}]" if self.n > 1 else ""
        return f"{self.mean:.3g}{ends} (n = {self.n})"


def over_seeds(values: Sequence[float | int]) -> Measured:
    """The mean of one value per seed, with Student's interval.

    >>> print(over_seeds([1.0, 2.0, 3.0]))
    2 [-0.484, 4.48] (n = 3)
    """
    mean = float(fmean(values))
    if len(values) < 2:
        return Measured(mean, nan, nan, len(values))
    margin = student_quantile(0.975, len(values) - 1) * stdev(values) / sqrt(len(values))
    return Measured(mean, mean - margin, mean + margin, len(values))


def clearly_above(measured: Measured, bound: float | int) -> bool:
    """Whether a value is above a bound by more than chance: its whole interval is."""
    return (measured.low if measured.n > 1 else measured.mean) > bound


@dataclass(frozen=True)
class Setting:
    """How large an experiment is, and where it may keep runs."""

    size: Size
    folder: Path
    vectors: str | None = None
    """A file of word vectors or a run, for experiments that read them."""
    device: str = AUTO
    """Where runs are trained."""

    def pick(self, tiny: T, default: T, large: T) -> T:
        """A value by size."""
        return {"tiny": tiny, "default": default, "large": large}[self.size]


@dataclass(frozen=True)
class Finding:
    """What an experiment found."""

    held: bool
    summary: str
    """What was measured and why the claim held or did not."""
    numbers: Mapping[str, Measured]
    pictures: Mapping[str, str] = field(default_factory=dict)
    """SVG by the name of its file."""
    tables: Mapping[str, Table] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """A claim that can be put to the test."""

    name: str
    claim: str
    source: str
    row: str
    """Rows of the lectures' table of topics, such as A5; `TOPICS` has them in words."""
    minutes: float | int
    """Minutes of the default size on two cores."""
    run: Callable[[Setting], Finding]
    reads_vectors: bool = False
    """Whether it can use the user's word vectors."""

    @property
    def topics(self) -> str:
        """The rows with their topics.

        >>> Experiment("x", "It is so.", "nobody", "A3, C5", 1, lambda setting: None).topics
        'A3 self-attention without weights, C5 masked errors'
        """
        return ", ".join(f"{row} {TOPICS.get(row, '')}".strip() for row in self.row.split(", "))
