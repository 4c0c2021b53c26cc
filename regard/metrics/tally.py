"""A metric keeps statistics of each sentence; their sums over a corpus give its value.

Nearly every corpus metric is a function of sums: s = f(Σᵢ xᵢ), where the row xᵢ holds the
sufficient statistics of sentence i (matches and totals for BLEU, hits for accuracy). Whoever has
the rows has the value for the corpus, for any part of it and for any resample of it, without
reading a sentence again.
"""

from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass, replace
from math import nan
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from regard.number_format import Unit

Statistics = Float[np.ndarray, "n s"]
Formula = Callable[[Float[np.ndarray, "r s"]], Float[np.ndarray, " r"]]


@dataclass(frozen=True)
class Tally:
    """The sufficient statistics of one metric, one row per sentence, and the formula of their sums.

    The formula maps summed statistics [r, s] to values [r], so that many resamples take one
    call.
    """

    name: str
    statistics: Statistics
    formula: Formula
    signature: str = ""
    unit: Unit = "number"
    """How its values are written for people; shares and F1 go from 0 to 1, points to 100."""
    log_scale: bool = False
    """Whether its values multiply, as those of perplexity do: then so does its interval."""
    min_examples: int = 10
    """With fewer examples it has no interval."""
    obstacle: Callable[[Statistics], str] | None = None
    """Why these statistics allow no interval, or ""."""

    def __len__(self) -> int:
        return len(self.statistics)

    def __getitem__(self, chosen: Any) -> "Tally":
        """The same metric over some of the sentences (a slice, a bool array or indices)."""
        return replace(self, statistics=self.statistics[chosen])


def metric_value(tally: Tally) -> float:
    """The metric over the whole corpus, f(Σᵢ xᵢ); NaN where there is no sentence.

    >>> from regard.metrics import accuracy
    >>> metric_value(accuracy(["good", "bad", "bad"], ["good", "bad", "good"]))
    0.666...
    """
    if len(tally) == 0:
        return nan
    return float(tally.formula(tally.statistics.sum(0, keepdims=True))[0])


def join_tallies(tallies: Sequence[Tally]) -> Tally:
    """One tally from those of several batches, in their order."""
    if not tallies:
        raise ValueError("join_tallies() needs at least one tally")
    shapes = [tally.statistics.shape for tally in tallies]
    if len({tally.name for tally in tallies}) > 1 or len({shape[1] for shape in shapes}) > 1:
        names = [tally.name for tally in tallies]
        raise ValueError(f"cannot join tallies of different metrics: {names} of shapes {shapes}")
    return replace(tallies[0], statistics=np.concatenate([tally.statistics for tally in tallies]))


def ratio(
    numerator: Float[np.ndarray, "*r"], denominator: Float[np.ndarray, "*r"], empty: float = nan
) -> Float[np.ndarray, "*r"]:
    """numerator / denominator, and `empty` where the denominator is zero."""
    result = np.full(np.shape(denominator), empty, dtype=np.float64)
    np.divide(numerator, denominator, out=result, where=denominator != 0)
    return result


def rows(columns: Sequence[ArrayLike]) -> Statistics:
    """Statistics from their columns, each with one number per sentence."""
    return np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=-1)


def same_count(**groups: Sized) -> int:
    """The common number of sentences; a ValueError that names the counts if they differ.

    >>> same_count(predicted=[1, 2], gold=[3])
    Traceback (most recent call last):
    ValueError: one entry per sentence is needed everywhere, but there are: predicted 2, gold 1
    """
    counts = {name: len(group) for name, group in groups.items()}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise ValueError(f"one entry per sentence is needed everywhere, but there are: {listed}")
    return next(iter(counts.values()))


def same_lengths(predicted: Sequence[Sized], gold: Sequence[Sized]) -> None:
    """Check that each sentence has as many predicted tags as gold ones."""
    same_count(predicted=predicted, gold=gold)
    for i, (ours, theirs) in enumerate(zip(predicted, gold, strict=True)):
        if len(ours) != len(theirs):
            raise ValueError(
                f"sentence {i} has {len(ours)} predicted tags but {len(theirs)} gold ones"
            )
