"""Paired comparison of two systems on the same sentences.

The p-value is that of a bootstrap. A resample takes n sentences out of n with replacement. As
metrics are functions of sums, a resample is a row of counts c (how often each sentence was
sampled), and the metric of all resamples is computed together as f(C X), with C [r, n] the counts
and X [n, s] the statistics. Koehn (2004), Statistical Significance Tests for Machine Translation
Evaluation, https://aclanthology.org/W04-3250.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import nan, sqrt
from statistics import NormalDist

import numpy as np
from jaxtyping import Float

from regard.metrics.intervals import (
    MAX_CELLS,
    Interval,
    is_share_of_examples,
    jackknife_error,
    leave_one_out,
    student_quantile,
)
from regard.metrics.tally import Tally, metric_value


@dataclass(frozen=True)
class Comparison:
    """The difference between two systems, first minus second, on the same sentences."""

    name: str
    difference: float
    low: float
    """The lower end of the interval of the difference; NaN if there is none."""
    high: float
    p_value: float
    n: int
    signature: str = ""
    missing: str = ""
    """Why there is no interval, or ""."""

    def __str__(self) -> str:
        ends = "" if self.missing else f" [{self.low:+.4g}, {self.high:+.4g}]"
        return (
            f"{self.name} difference {self.difference:+.4g}{ends}, p = {self.p_value:.3g} "
            f"(n = {self.n:,})"
        )


def compare(
    first: Tally, second: Tally, *, confidence: float = 0.95, resamples: int = 1000, seed: int = 0
) -> Comparison:
    """The difference of two systems, with its interval and the p-value of a paired bootstrap.

    The p-value is the share of resampled differences which, centred on their own mean, are at
    least as far from zero as the observed one (two-sided; Riezler & Maxwell 2005,
    https://aclanthology.org/W05-0908).
    """
    if first.name != second.name or len(first) != len(second):
        raise ValueError(
            "a paired comparison needs one metric over the same sentences, got "
            f"{first.name} of {len(first)} sentences and {second.name} of {len(second)}"
        )
    differences = [
        first.formula(counts @ first.statistics) - second.formula(counts @ second.statistics)
        for counts in resample_counts(first, resamples, seed)
    ]
    observed = metric_value(first) - metric_value(second)
    low, high, missing = difference_interval(first, second, confidence)
    return Comparison(
        name=first.name,
        difference=observed,
        low=low,
        high=high,
        p_value=two_sided_p_value(differences, observed),
        n=len(first),
        signature=first.signature,
        missing=missing,
    )


def difference_interval(first: Tally, second: Tally, confidence: float = 0.95) -> Interval:
    """The interval of a difference between two systems on the same examples.

    Shares of examples take that of Agresti & Min (2005, https://doi.org/10.1002/sim.1781), which
    adds half an example to each of the four outcomes of a pair; other metrics take a jackknife
    interval of the difference.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    n, quantile = len(first), (1 + confidence) / 2
    if is_share_of_examples(first) and is_share_of_examples(second):
        gains = first.statistics[:, 0] - second.statistics[:, 0]
        total, net = n + 2, float(gains.sum())
        error = sqrt(np.count_nonzero(gains) + 1 - net**2 / total) / total
        margin = NormalDist().inv_cdf(quantile) * error
        return Interval(max(-1.0, net / total - margin), min(1.0, net / total + margin))
    needed = max(first.min_examples, second.min_examples)
    if n < needed:
        return Interval(nan, nan, f"{n} example{'s' * (n != 1)}: an interval needs {needed}")
    without = leave_one_out(first) - leave_one_out(second)
    if not np.isfinite(without).all():
        return Interval(nan, nan, "its value is undefined")
    error = jackknife_error(without)
    if error <= 1e-12:
        return Interval(nan, nan, "all examples give the same difference")
    difference, margin = (
        metric_value(first) - metric_value(second),
        student_quantile(quantile, n - 1) * error,
    )
    return Interval(difference - margin, difference + margin)


def resample_counts(tally: Tally, resamples: int, seed: int) -> Iterator[Float[np.ndarray, "r n"]]:
    """How often each sentence is sampled, some resamples at a time so that memory stays flat."""
    if resamples < 1:
        raise ValueError(f"the bootstrap needs at least one resample, got {resamples}")
    n = len(tally)
    if n == 0:
        return
    generator = np.random.default_rng(seed)
    at_once = max(1, MAX_CELLS // n)
    for done in range(0, resamples, at_once):
        r = min(at_once, resamples - done)
        sampled = generator.integers(0, n, size=(r, n))
        cells = (sampled + n * np.arange(r)[:, None]).ravel()
        yield np.bincount(cells, minlength=r * n).reshape(r, n).astype(np.float64)


def two_sided_p_value(differences: list[np.ndarray], observed: float) -> float:
    """How often chance alone makes a difference as large as the observed one."""
    values: np.ndarray = np.concatenate([np.empty(0), *differences])
    known = values[~np.isnan(values)]  # undefined where a count came out as zero
    if known.size == 0:
        return nan
    rounding = 1e-12 * max(1.0, abs(observed))
    as_far = np.count_nonzero(np.abs(known - known.mean()) >= abs(observed) - rounding)
    return float((as_far + 1) / (known.size + 1))
