"""Intervals and tests of metrics over random seeds *and* test sentences.

A system is trained with S seeds and evaluated on the same N sentences each time. Its mean metric
varies for two reasons, and both count:

    V = s² / S + J

s² is the variance of the metric over seeds, J the variance of the mean over seeds when the
sentences are resampled (bootstrap). The difference of two systems has

    V = s₁² / S₁ + s₂² / S₂ + J₁₂

where J₁₂ resamples the same sentences for both: a *paired* bootstrap (Koehn 2004,
https://aclanthology.org/W04-3250), times N / (N−1), since resamples vary less than new sentences.
The difference divided by √V is compared with Student's distribution, whose degrees of freedom are
those of Welch and Satterthwaite (Welch 1947, https://doi.org/10.1093/biomet/34.1-2.28); J has N−1.
A system that is right (or wrong) everywhere does not vary in resamples; its J is the one that its
exact interval implies. As s² contains a part of the noise of the sentences,
the test is rather too careful than too bold. Several tests at once are corrected after Holm (1979).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite, nan, sqrt

import numpy as np
from jaxtyping import Float

from regard.metrics.intervals import exact_binomial, incomplete_beta, student_quantile

CONFIDENCE = 0.95
NORMAL_QUANTILE = 1.96
"""Half the width of a normal distribution's interval of 95 %, in standard errors."""
POWER = 0.8
"""How often a difference of the size that a test claims to see is found."""


@dataclass(frozen=True)
class SystemValues:
    """The metric of one system: one value per seed, and values on resampled test sentences."""

    values: Float[np.ndarray, " s"]
    resampled: Float[np.ndarray, "s r"]
    """Row by seed, column by resample; the same column is the same resample in every system."""
    least_error: float = 0.0
    """A standard error that the sentences cannot be below, for metrics that do not vary: a system
    that gets all 20 sentences right is not perfect for sure."""
    sentences: float = inf
    """Number of test sentences: few say little about how much they vary."""
    ends: tuple[float, float] = (-inf, inf)
    """The ends of the metric's scale."""
    own_interval: tuple[float, float] = (nan, nan)
    """The interval of the metric, where one seed has one: better than that of resamples."""


@dataclass(frozen=True)
class Estimate:
    """A mean with its interval."""

    value: float
    low: float
    high: float
    seed_error: float
    """Standard error of the mean that is due to seeds; NaN with one seed."""
    sentence_error: float
    """Standard error of the mean that is due to the choice of test sentences."""


@dataclass(frozen=True)
class Difference:
    """The difference of two systems, first minus second."""

    value: float
    low: float
    high: float
    p_value: float
    detectable: float
    """The smallest true difference that this test finds four times out of five."""


def estimate(system: SystemValues, confidence: float = CONFIDENCE) -> Estimate:
    """The mean over seeds, with an interval over seeds and sentences."""
    mean, seeds = float(system.values.mean()), _seed_variance(system.values)
    resampled = _resample_variance(system.resampled.mean(0), system.sentences)
    sentences = max(resampled, system.least_error**2)
    low, high = nan, nan
    if isfinite(mean):
        parts = [(seeds, len(system.values) - 1.0), (sentences, system.sentences - 1)]
        margin = student_quantile((1 + confidence) / 2, _degrees(parts)) * sqrt(seeds + sentences)
        low, high = max(mean - margin, system.ends[0]), min(mean + margin, system.ends[1])
    if len(system.values) == 1 and isfinite(sum(system.own_interval)):
        low, high = system.own_interval
    seed_error = sqrt(seeds) if len(system.values) > 1 else nan
    return Estimate(mean, low, high, seed_error, sqrt(sentences))


def paired_difference(
    first: SystemValues, second: SystemValues, confidence: float = CONFIDENCE
) -> Difference:
    """The difference of two systems on the same sentences, with its interval and p-value."""
    difference = float(first.values.mean() - second.values.mean())
    if first.resampled.shape[1] != second.resampled.shape[1]:
        raise ValueError("a paired test needs the same resamples of the same sentences")
    sentences = min(first.sentences, second.sentences)
    resampled = _resample_variance(first.resampled.mean(0) - second.resampled.mean(0), sentences)
    uncertain = first.least_error**2 + second.least_error**2
    if resampled == 0:
        uncertain = max(uncertain, _unseen_error(sentences, first.ends) ** 2)
    parts = [(_seed_variance(one.values), len(one.values) - 1.0) for one in (first, second)]
    parts += [(resampled + uncertain, sentences - 1)]
    variance = sum(part for part, _ in parts)
    if not isfinite(difference):
        return Difference(difference, nan, nan, nan, nan)
    if variance <= 1e-24 * max(1.0, abs(difference)) ** 2:
        p_value = 1.0 if abs(difference) < 1e-12 else 0.0
        return Difference(difference, difference, difference, p_value, 0.0)
    error, degrees = sqrt(variance), _degrees(parts)
    critical = student_quantile((1 + confidence) / 2, degrees)
    statistic = difference / error
    p_value = incomplete_beta(degrees / 2, 0.5, degrees / (degrees + statistic**2))
    return Difference(
        difference,
        difference - critical * error,
        difference + critical * error,
        p_value,
        (critical + student_quantile(POWER, degrees)) * error,
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for their number (Holm 1979); undefined ones stay so and do not count.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    known = sorted((p, i) for i, p in enumerate(p_values) if isfinite(p))
    adjusted, largest = [nan] * len(p_values), 0.0
    for rank, (p, i) in enumerate(known):
        largest = max(largest, min(1.0, p * (len(known) - rank)))
        adjusted[i] = largest
    return adjusted


def _seed_variance(values: Float[np.ndarray, " s"]) -> float:
    """The squared standard error of the mean over seeds; 0 with one seed, which shows none."""
    return float(values.var(ddof=1) / len(values)) if len(values) > 1 else 0.0


def _resample_variance(values: Float[np.ndarray, " r"], sentences: float) -> float:
    """The variance of resamples, without their bias: n resampled sentences vary n−1 parts in n."""
    finite = values[np.isfinite(values)]
    bias = 1 - 1 / sentences if sentences > 1 else 1.0
    return float(finite.var(ddof=1)) / bias if len(finite) > 1 else 0.0


def _unseen_error(sentences: float, ends: tuple[float, float]) -> float:
    """A standard error where two systems do not differ on any sentence: they may on others."""
    if not isfinite(sentences) or not isfinite(ends[1] - ends[0]):
        return 0.0
    low, high = exact_binomial(0, int(sentences), CONFIDENCE)
    return (ends[1] - ends[0]) * (high - low) / (2 * NORMAL_QUANTILE)


def _degrees(parts: Sequence[tuple[float, float]]) -> int:
    """Degrees of freedom of a sum of variances, each with its own."""
    uncertain = sum(part**2 / degrees for part, degrees in parts if degrees > 0)
    degrees = sum(part for part, _ in parts) ** 2 / uncertain if uncertain > 0 else inf
    return max(1, int(min(degrees, 1e6)))
