"""How sure a score is: bootstrap intervals over sentences, and paired comparison of two systems.

A resample draws n sentences out of n with replacement. As scores are functions of sums, a
resample is a row of counts c (how often each sentence was drawn), and all resamples are scored
together as f(C X), with C [r, n] the counts and X [n, s] the statistics.
Efron & Tibshirani (1993), An Introduction to the Bootstrap; for translation Koehn (2004),
Statistical Significance Tests for Machine Translation Evaluation,
https://aclanthology.org/W04-3250.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import nan

import numpy as np
from jaxtyping import Float

from regard.metrics.tally import Tally, score

CELLS = 1 << 22


@dataclass(frozen=True)
class Measured:
    """A score with its interval, the number of sentences, and how it was computed."""

    name: str
    value: float
    low: float
    high: float
    n: int
    signature: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.value:.4g} [{self.low:.4g}, {self.high:.4g}] (n = {self.n})"


@dataclass(frozen=True)
class Compared:
    """The difference between two systems, first minus second, on the same sentences."""

    name: str
    difference: float
    low: float
    high: float
    p_value: float
    n: int
    signature: str = ""

    def __str__(self) -> str:
        return (
            f"{self.name} difference {self.difference:+.4g} [{self.low:+.4g}, {self.high:+.4g}], "
            f"p = {self.p_value:.3g} (n = {self.n})"
        )


def measure(
    tally: Tally, *, confidence: float = 0.95, resamples: int = 1000, seed: int = 0
) -> Measured:
    """The score of a tally with its percentile bootstrap interval."""
    low, high = interval(tally, confidence=confidence, resamples=resamples, seed=seed)
    return Measured(tally.name, score(tally), low, high, len(tally), tally.signature)


def interval(
    tally: Tally, *, confidence: float = 0.95, resamples: int = 1000, seed: int = 0
) -> tuple[float, float]:
    """The percentile bootstrap interval of a score; the same seed gives the same interval."""
    scores = [tally.formula(counts @ tally.statistics) for counts in draws(tally, resamples, seed)]
    return percentiles(scores, confidence)


def compare(
    first: Tally, second: Tally, *, confidence: float = 0.95, resamples: int = 1000, seed: int = 0
) -> Compared:
    """Paired bootstrap: both systems are scored on the same resamples of the same sentences.

    The p-value is the share of resampled differences which, centred on their own mean, are
    farther from zero than the observed one (two-sided; Riezler & Maxwell 2005,
    https://aclanthology.org/W05-0908).
    """
    if first.name != second.name or len(first) != len(second):
        raise ValueError(
            "a paired comparison needs one metric over the same sentences, got "
            f"{first.name} of {len(first)} sentences and {second.name} of {len(second)}"
        )
    differences = [
        first.formula(counts @ first.statistics) - second.formula(counts @ second.statistics)
        for counts in draws(first, resamples, seed)
    ]
    observed = score(first) - score(second)
    low, high = percentiles(differences, confidence)
    p_value = two_sided(differences, observed)
    return Compared(first.name, observed, low, high, p_value, len(first), first.signature)


def draws(tally: Tally, resamples: int, seed: int) -> Iterator[Float[np.ndarray, "r n"]]:
    """How often each sentence is drawn, for some resamples at a time so that memory stays flat."""
    if resamples < 1:
        raise ValueError(f"the bootstrap needs at least one resample, got {resamples}")
    n = len(tally)
    if n == 0:
        return
    generator = np.random.default_rng(seed)
    at_once = max(1, CELLS // n)
    for done in range(0, resamples, at_once):
        r = min(at_once, resamples - done)
        drawn = generator.integers(0, n, size=(r, n))
        cells = (drawn + n * np.arange(r)[:, None]).ravel()
        yield np.bincount(cells, minlength=r * n).reshape(r, n).astype(np.float64)


def percentiles(scores: list[np.ndarray], confidence: float) -> tuple[float, float]:
    """The ends of the middle part of the scores; NaN where there are none."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence lies between 0 and 1, got {confidence}")
    known = defined(scores)
    if known.size == 0:
        return nan, nan
    tail = (1 - confidence) / 2
    low, high = np.quantile(known, [tail, 1 - tail])
    return float(low), float(high)


def two_sided(differences: list[np.ndarray], observed: float) -> float:
    """How often chance alone makes a difference as large as the observed one."""
    known = defined(differences)
    if known.size == 0:
        return nan
    farther = np.count_nonzero(np.abs(known - known.mean()) > abs(observed))
    return (farther + 1) / (known.size + 1)


def defined(parts: list[np.ndarray]) -> Float[np.ndarray, " r"]:
    """All resampled scores but those that are undefined because a count came out as zero."""
    scores: np.ndarray = np.concatenate([np.empty(0), *parts])
    return np.extract(~np.isnan(scores), scores)
