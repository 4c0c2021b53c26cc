"""What a comparison found: a table, tests of all pairs, and a verdict in words."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf, isfinite, nan
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from regard.atomic_files import write_output
from regard.compare.significance import (
    NORMAL_QUANTILE,
    Difference,
    Estimate,
    SystemValues,
    estimate,
    holm,
    paired_difference,
)
from regard.compare.verdict import verdict
from regard.errors import RegardError
from regard.metrics.intervals import LARGEST

LEVEL = 0.05
"""Corrected p-values below this count as a difference."""


@dataclass(frozen=True)
class SystemResult:
    """One system over its seeds."""

    label: str
    seeds: int
    estimate: Estimate
    parameters: int
    items_per_second: float
    """Training speed in what its loss is the mean of: target tokens, or texts with one label."""
    processor_seconds: float
    peak_memory: float
    updates: float
    by_length: Mapping[str, float]
    guesses: bool = False
    """Whether it is not clearly better than always giving the same answer."""


@dataclass(frozen=True)
class Pair:
    """The test of two systems, first minus second."""

    first: str
    second: str
    difference: Difference
    corrected: float
    """The p-value after Holm's correction for the number of pairs."""

    @property
    def differs(self) -> bool:
        """Whether the test sees a difference."""
        return self.corrected < LEVEL


@dataclass(frozen=True)
class ComparisonResult:
    """The systems of a comparison, best first, and the tests of all pairs of them."""

    task: str
    metric: str
    unit: str
    higher: bool
    budget: str
    examples: int
    systems: tuple[SystemResult, ...]
    pairs: tuple[Pair, ...]
    failed: Mapping[str, str]
    """Reasons by the label of the training."""
    impossible: Mapping[str, str]
    """Reasons by the label of the combination."""
    folder: Path | None = None

    @property
    def verdict(self) -> str:
        """One sentence that says what the tests show, and no more."""
        return verdict(self)

    @property
    def table(self) -> list[dict[str, Any]]:
        """One row per system, best first, as plain values."""
        return [
            {
                "system": one.label,
                self.metric: one.estimate.value,
                "low": one.estimate.low,
                "high": one.estimate.high,
                "seeds": one.seeds,
                "parameters": one.parameters,
                "items_per_second": one.items_per_second,
                "processor_seconds": one.processor_seconds,
                "peak_memory_mb": one.peak_memory / 1e6,
                "updates": one.updates,
            }
            for one in self.systems
        ]

    def pair(self, first: str, second: str) -> Pair:
        """The test of two systems by their labels, in either order."""
        for pair in self.pairs:
            if {pair.first, pair.second} == {first, second}:
                return pair
        raise KeyError(f"no test of {first!r} and {second!r}")

    def to_pandas(self) -> Any:
        """The table as a DataFrame of pandas, where that is installed."""
        try:
            import pandas
        except ImportError:
            raise RegardError("to_pandas() needs the package pandas: pip install pandas") from None
        return pandas.DataFrame(self.table).set_index("system")

    def plot(self) -> "Plot":
        """The metric of each system with its interval: an SVG picture that notebooks display."""
        from regard.compare.comparison_report import metric_chart

        return Plot(metric_chart(self))

    def record(self) -> dict[str, Any]:
        """Everything as plain values for JSON."""
        return {
            "task": self.task,
            "metric": self.metric,
            "unit": self.unit,
            "higher": self.higher,
            "budget": self.budget,
            "examples": self.examples,
            "verdict": self.verdict,
            "systems": [_finite(asdict(one)) for one in self.systems],
            "pairs": [_finite(asdict(pair) | {"differs": pair.differs}) for pair in self.pairs],
            "failed": dict(self.failed),
            "impossible": dict(self.impossible),
        }

    def __repr__(self) -> str:
        from regard.compare.comparison_report import terminal_report

        return terminal_report(self)

    def _repr_html_(self) -> str:
        from regard.compare.comparison_report import html_report

        return html_report(self)


@dataclass(frozen=True)
class Plot:
    """An SVG picture that displays itself in a notebook."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: Path | str) -> None:
        """Write the picture into a file."""
        write_output(Path(path), lambda stream: stream.write(self.svg.encode("utf-8")))


def make_result(
    records: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    task: str,
    budget: str,
    impossible: Mapping[str, str],
    folder: Path | None = None,
) -> ComparisonResult:
    """The result from the records of all trainings, by the label of their system."""
    failed = {
        record["label"]: record["error"]
        for trained in records.values()
        for record in trained
        if "error" in record
    }
    done = {
        label: [record for record in trained if "error" not in record]
        for label, trained in records.items()
    }
    done = {label: trained for label, trained in done.items() if trained}
    if not done:
        reason = next(iter(failed.values()), "nothing was trained")
        raise RegardError(f"all trainings failed: {reason}")
    first = next(iter(done.values()))[0]
    if len({len(record["resampled"]) for trained in done.values() for record in trained}) > 1:
        raise RegardError(f"{folder}: its trainings were tested on different sentences")
    metric, higher = first["metric"], bool(first["higher"])
    values = {label: system_values(trained) for label, trained in done.items()}
    systems = [_system_result(label, done[label], values[label]) for label in done]
    sign = -1 if higher else 1
    systems.sort(
        key=lambda one: (
            sign * (one.estimate.value if isfinite(one.estimate.value) else -sign * 1e300)
        )
    )
    labels = [one.label for one in systems]
    tests = [
        (a, b, paired_difference(values[a], values[b]))
        for i, a in enumerate(labels)
        for b in labels[i + 1 :]
    ]
    corrected = holm([difference.p_value for _, _, difference in tests])
    return ComparisonResult(
        task=task,
        metric=metric["name"],
        unit=metric["unit"],
        higher=higher,
        budget=budget,
        examples=int(first["examples"]),
        systems=tuple(systems),
        pairs=tuple(Pair(*test, p) for test, p in zip(tests, corrected, strict=True)),
        failed=failed,
        impossible=dict(impossible),
        folder=folder,
    )


def system_values(records: Sequence[Mapping[str, Any]]) -> SystemValues:
    """The metric of one system, from the records of its seeds."""
    values = np.array([_number(record["metric"]["value"]) for record in records])
    resampled = np.array([[_number(v) for v in record["resampled"]] for record in records])
    if resampled.size == 0:
        resampled = values[:, None]
    measured = [record["metric"] for record in records]
    halves = [(_number(m["high"]) - _number(m["low"])) / (2 * NORMAL_QUANTILE) for m in measured]
    # a metric at an end of its scale does not vary in resamples, but its interval says how sure
    ends = (0.0, LARGEST.get(str(measured[0]["unit"]), nan))
    exact = [half for half, value in zip(halves, values, strict=True) if value in ends]
    least = fmean(exact) if len(exact) == len(values) and np.isfinite(exact).all() else 0.0
    return SystemValues(
        values,
        resampled,
        least,
        sentences=float(records[0].get("examples") or inf),
        ends=(0.0, ends[1]) if isfinite(ends[1]) else (-inf, inf),
        own_interval=(_number(measured[0]["low"]), _number(measured[0]["high"])),
    )


def _system_result(
    label: str, records: Sequence[Mapping[str, Any]], values: SystemValues
) -> SystemResult:
    def mean(name: str) -> float:
        known = [float(record[name]) for record in records if record.get(name) is not None]
        return fmean(known) if known else nan

    buckets = dict.fromkeys(name for record in records for name in record["by_length"])
    by_length = {
        bucket: fmean(
            _number(record["by_length"][bucket]["value"])
            for record in records
            if bucket in record["by_length"]
        )
        for bucket in buckets
    }
    measured, constant = estimate(values), records[0].get("constant")
    lost = constant is not None and measured.low <= constant
    return SystemResult(
        label=label,
        seeds=len(records),
        estimate=measured,
        parameters=int(records[0]["parameters"]),
        items_per_second=mean("items_per_second"),
        processor_seconds=mean("processor_seconds"),
        peak_memory=mean("peak_memory"),
        updates=mean("updates"),
        by_length=by_length,
        guesses=lost or all(record.get("same_answer", False) for record in records),
    )


def _number(value: float | int | None) -> float:
    return nan if value is None else float(value)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    return None if isinstance(value, float) and not isfinite(value) else value
