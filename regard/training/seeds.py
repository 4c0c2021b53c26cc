"""Several runs that differ in their seeds only, and the mean of their metrics."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev

from regard.atomic_files import write_text
from regard.errors import RegardError
from regard.metrics.intervals import student_quantile
from regard.number_format import format_bare_value, format_interval, format_value
from regard.training.metrics_log import saved_weights
from regard.training.run_folder import CONFIG, RunFolder
from regard.verified_files import MAX_JSON, parse_json, read_bytes, read_json

SUMMARY = "seeds.json"
CONFIDENCE = 0.95
MIN_SEEDS = 3
"""With two, Student's quantile is 12.7: the interval would say nothing."""


@dataclass(frozen=True)
class SeedSummary:
    """The main metric of runs with different seeds, on their validation data."""

    name: str
    """The metric, as people write it."""
    unit: str
    values: dict[str, float]
    """By run, in the order of the seeds."""
    mean: float
    low: float | None
    """Lower end of the interval of the mean over seeds: Student's, 95 %; None for two seeds."""
    high: float | None

    def __str__(self) -> str:
        """The mean over seeds with its interval, or with the range of the values."""
        count = len(self.values)
        mean = f"{self.name} {format_value(self.mean, self.unit)}"
        if self.low is not None and self.high is not None:
            interval = format_interval(self.low, self.high, self.unit)
            return f"{mean} {interval} over {count} seeds (95 % interval)"
        ends = (min(self.values.values()), max(self.values.values()))
        first, last = (format_bare_value(end, self.unit) for end in ends)
        return f"{mean}, from {first} to {last}: two seeds are too few for an interval"


def seed_folders(out: Path, first: int, count: int) -> dict[int, Path]:
    """The run folder of each seed; RegardError if `out` is itself a run."""
    if (out / CONFIG).exists():
        raise RegardError(f"{out}: is itself a run: choose another --out for runs of several seeds")
    if os.path.lexists(out / SUMMARY) and not _is_summary(out / SUMMARY):
        raise RegardError(f"{out / SUMMARY}: was not written by Regard: choose another --out")
    return {seed: out / f"seed-{seed}" for seed in range(first, first + count)}


def summarize_seeds(folders: Sequence[Path]) -> SeedSummary:
    """The mean over finished runs, with the interval that their spread allows."""
    values: dict[str, float] = {}
    name = unit = ""
    for folder in folders:
        content = read_bytes(RunFolder(folder).metrics, MAX_JSON)
        line = saved_weights(parse_json(text) for text in content.split(b"\n") if text)
        if line is None:
            raise RegardError(f"{folder}: has no validation")
        metric = line["metrics"][line["main"]]
        name, unit = metric["name"], metric.get("unit", "number")
        values[folder.name] = float(metric["value"])
    return SeedSummary(name, unit, values, fmean(values.values()), *_interval(values, unit))


def _interval(values: Mapping[str, float], unit: str) -> tuple[float | None, float | None]:
    """Student's interval of the mean, within the values that the unit allows."""
    mean, count = fmean(values.values()), len(values)
    if count < MIN_SEEDS:
        return None, None
    quantile = student_quantile((1 + CONFIDENCE) / 2, count - 1)
    margin = quantile * stdev(values.values()) / sqrt(count)
    if unit in ("share", "f1"):
        return max(0.0, mean - margin), min(1.0, mean + margin)
    return mean - margin, mean + margin


def _is_summary(path: Path) -> bool:
    try:
        record = read_json(path)
    except (OSError, RegardError):
        return False
    return isinstance(record, dict) and {"name", "values", "mean"} <= record.keys()


def write_seeds(out: Path, summary: SeedSummary) -> Path:
    """Write the summary beside the runs."""
    path = out / SUMMARY
    write_text(path, json.dumps(asdict(summary), indent=1, ensure_ascii=False) + "\n")
    return path
