"""Several runs that differ in their seeds only, and the mean of their metrics."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev

from regard.atomic_files import write_text
from regard.errors import RegardError
from regard.metrics.intervals import student_quantile
from regard.number_format import format_bare_value, format_value
from regard.training.metrics_log import saved_weights
from regard.training.run_folder import CONFIG, RunFolder
from regard.verified_files import MAX_JSON, parse_json, read_bytes

CONFIDENCE = 0.95


@dataclass(frozen=True)
class SeedSummary:
    """The main metric of runs with different seeds, on their validation data."""

    name: str
    """The metric, as people write it."""
    unit: str
    values: dict[str, float]
    """By run, in the order of the seeds."""
    mean: float
    low: float
    """Lower end of the interval of the mean over seeds: Student's, 95 %."""
    high: float

    def __str__(self) -> str:
        """The mean and half the width of its interval."""
        half = format_bare_value((self.high - self.low) / 2, self.unit)
        return f"{self.name} {format_value(self.mean, self.unit)} ± {half}"


def seed_folders(out: Path, first: int, count: int) -> dict[int, Path]:
    """The run folder of each seed; RegardError if `out` is itself a run."""
    if (out / CONFIG).exists():
        raise RegardError(f"{out}: is itself a run: choose another --out for runs of several seeds")
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
    mean, count = fmean(values.values()), len(values)
    margin = float("nan")
    if count > 1:
        quantile = student_quantile((1 + CONFIDENCE) / 2, count - 1)
        margin = quantile * stdev(values.values()) / sqrt(count)
    return SeedSummary(name, unit, values, mean, mean - margin, mean + margin)


def write_seeds(out: Path, summary: SeedSummary) -> Path:
    """Write the summary beside the runs."""
    path = out / "seeds.json"
    write_text(path, json.dumps(asdict(summary), indent=1, ensure_ascii=False) + "\n")
    return path
