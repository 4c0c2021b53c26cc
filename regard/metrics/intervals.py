"""Confidence intervals of metrics, and when there is none.

The examples are a sample; the interval is about the metric on all text like it. What kind of
interval a metric has depends on what it is:

- A share of examples, k right out of n, has the exact interval of Clopper & Pearson (1934,
  https://doi.org/10.1093/biomet/26.4.404): it covers the true share at least as often as it claims.
- Any other metric f(Σᵢ xᵢ) has a jackknife interval: with f₍ᵢ₎ the value without example i, the
  squared standard error is (n−1)/n Σᵢ (f₍ᵢ₎ − f̄)², and the interval is g(f) ± t·se on a scale g
  that suits the metric: log(f / (1−f)) where values have two ends (token accuracy, F1, BLEU),
  log f for perplexity, f itself for others. t is Student's with n−1 degrees of freedom.
  Efron & Tibshirani (1993), An Introduction to the Bootstrap, chapter 11.
- If every example is right, or every one wrong, the examples count as n trials of a share.

There is no interval if there are too few examples, or if they do not vary. `tests/metrics/
test_coverage.py` measures how often the intervals cover the true value, `benchmarks/coverage.py`
does so at full size, and docs/metrics.md has the figures.
"""

from collections.abc import Callable
from functools import lru_cache
from math import exp, isfinite, lgamma, log, log1p, nan, sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from regard.metrics.tally import Tally, metric_value

MAX_CELLS = 1 << 22
"""Numbers that are held at once."""
LARGEST = {"share": 1.0, "f1": 1.0, "points": 100.0}
"""The largest value of a metric in each unit that has one; the smallest is 0."""


class Interval(NamedTuple):
    """The ends of an interval; NaN if there is none, and then the reason."""

    low: float
    high: float
    missing: str = ""


def interval(tally: Tally, *, confidence: float = 0.95) -> Interval:
    """The interval of a metric.

    >>> from regard.metrics import accuracy, token_accuracy
    >>> low, high, _ = interval(accuracy(["a"] * 30, ["a"] * 30))
    >>> round(low, 3), high
    (0.884, 1.0)
    >>> interval(token_accuracy([["a", "b"]], [["a", "a"]])).missing
    '1 example: an interval needs 10'
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    value, n = metric_value(tally), len(tally)
    if not isfinite(value):
        return Interval(nan, nan, "its value is undefined")
    if is_share_of_examples(tally):
        return Interval(*exact_binomial(int(tally.statistics[:, 0].sum()), n, confidence))
    if missing := _missing(tally):
        return Interval(nan, nan, missing)
    without = leave_one_out(tally)
    if not np.isfinite(without).all():
        return Interval(nan, nan, "one example decides whether its value is defined")
    error, critical = jackknife_error(without), student_quantile((1 + confidence) / 2, n - 1)
    largest = LARGEST.get(tally.unit)
    if largest is not None and not 0 < value < largest:
        low, high = exact_binomial(n if value > 0 else 0, n, confidence)
        return Interval(largest * low, largest * high)
    if error <= 1e-12 * abs(value):
        return Interval(nan, nan, "all examples give the same value")
    low, high = _interval_on_scale(value, critical * error, largest, tally.log_scale)
    return Interval(low, high)


def is_share_of_examples(tally: Tally) -> bool:
    """Whether a metric is the number of right examples divided by the number of examples."""
    x = tally.statistics
    if tally.unit != "share" or x.shape[1] != 2 or not len(x):
        return False
    return bool((x[:, 1] == 1).all() and ((x[:, 0] == 0) | (x[:, 0] == 1)).all())


def leave_one_out(tally: Tally) -> Float[np.ndarray, " n"]:
    """The metric without each example in turn."""
    x = tally.statistics
    total = x.sum(0)
    at_once = max(1, MAX_CELLS // max(1, x.shape[1]))
    parts = [tally.formula(total - x[i : i + at_once]) for i in range(0, len(x), at_once)]
    return np.concatenate([np.empty(0), *parts])


def jackknife_error(without: Float[np.ndarray, " n"]) -> float:
    """The standard error of a value, from the values without each example."""
    n = len(without)
    return sqrt((n - 1) / n * float(np.square(without - without.mean()).sum()))


def exact_binomial(right: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """The interval of Clopper and Pearson for a share, `right` out of `n`.

    >>> [round(end, 3) for end in exact_binomial(9, 10)]
    [0.555, 0.997]
    """
    tail = (1 - confidence) / 2
    wrong, low, high = float(n - right), 0.0, 1.0
    if right > 0:
        low = _root(lambda p: incomplete_beta(float(right), wrong + 1, p) - tail)
    if wrong > 0:
        high = _root(lambda p: incomplete_beta(right + 1.0, wrong, p) - (1 - tail))
    return low, high


@lru_cache(maxsize=256)
def student_quantile(probability: float, degrees: int) -> float:
    """The quantile of Student's distribution, for probabilities of one half or more.

    >>> round(student_quantile(0.975, 9), 4)
    2.2622
    """
    if degrees > 10_000:
        return NormalDist().inv_cdf(probability)

    def excess(share: float) -> float:  # share = degrees / (degrees + t²), which falls as t grows
        return incomplete_beta(degrees / 2, 0.5, share) - 2 * (1 - probability)

    share = _root(excess)
    return sqrt(degrees * (1 / share - 1))


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function Iₓ(a, b), by its continued fraction.

    Abramowitz & Stegun (1964), Handbook of Mathematical Functions, 26.5.8.
    """
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # the fraction converges quickly on the other side
        return 1 - incomplete_beta(b, a, 1 - x)
    scale = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) / a
    # Lentz's method: numerator and denominator of the convergents, as ratios of successive ones
    above, below = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    fraction = below
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            below = 1 / (1 + term * below)
            above = 1 + term / above
            fraction *= above * below
        if abs(above * below - 1) < 1e-14:
            break
    return scale * fraction


def _interval_on_scale(
    value: float, margin: float, largest: float | None, log_scale: bool
) -> tuple[float, float]:
    """value ± margin, where the margin is first carried over to the scale of the metric."""
    if largest is not None:
        odds, half = value / (largest - value), margin * largest / (value * (largest - value))
        ends = [odds * _exp(sign * half) for sign in (-1, 1)]
        low, high = (largest if not isfinite(o) else largest * o / (1 + o) for o in ends)
        return low, high
    if log_scale and value > 0:
        return value * _exp(-margin / value), value * _exp(margin / value)
    return value - margin, value + margin


def _missing(tally: Tally) -> str:
    n = len(tally)
    if n < tally.min_examples:
        return f"{n} example{'s' * (n != 1)}: an interval needs {tally.min_examples}"
    return "" if tally.obstacle is None else tally.obstacle(tally.statistics)


def _exp(exponent: float) -> float:
    return exp(exponent) if exponent < 700 else float("inf")


def _root(rising: Callable[[float], float]) -> float:
    """Where a rising function on [0, 1] is zero, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return (low + high) / 2
