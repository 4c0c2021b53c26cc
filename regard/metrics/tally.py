"""A metric keeps what it must know of each sentence; the sums over a corpus give its score.

Nearly every corpus metric is a function of sums: s = f(Σᵢ xᵢ), where the row xᵢ holds the
sufficient statistics of sentence i (matches and totals for BLEU, hits for accuracy). Whoever has
the rows has the score, the score of any part of the corpus and of any resample of it, without
looking at a sentence again.
"""

from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass, replace
from math import nan
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

Statistics = Float[np.ndarray, "n s"]
Formula = Callable[[Float[np.ndarray, "r s"]], Float[np.ndarray, " r"]]


@dataclass(frozen=True)
class Tally:
    """The sufficient statistics of one metric, a row a sentence, and the formula of their sums.

    The formula maps summed statistics [r, s] to scores [r], so that many resamples are scored in
    one call.
    """

    name: str
    statistics: Statistics
    formula: Formula
    signature: str = ""

    def __len__(self) -> int:
        return len(self.statistics)

    def __getitem__(self, chosen: Any) -> "Tally":
        """The same metric over some of the sentences (a slice, a bool array or indices)."""
        return replace(self, statistics=self.statistics[chosen])


def score(tally: Tally) -> float:
    """The score of the whole corpus, f(Σᵢ xᵢ); NaN where there is no sentence.

    >>> from regard.metrics import accuracy
    >>> score(accuracy(["good", "bad", "bad"], ["good", "bad", "good"]))
    0.666...
    """
    if len(tally) == 0:
        return nan
    return float(tally.formula(tally.statistics.sum(0, keepdims=True))[0])


def joined(tallies: Sequence[Tally]) -> Tally:
    """One tally from those of several batches, in their order."""
    if not tallies:
        raise ValueError("joined() needs at least one tally")
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
    """Statistics from their columns, each with one number a sentence."""
    return np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=-1)


def same_count(**groups: Sized) -> int:
    """The common number of sentences; a ValueError that names the counts if they differ.

    >>> same_count(predicted=[1, 2], gold=[3])
    Traceback (most recent call last):
    ValueError: one entry a sentence is needed everywhere, but there are: predicted 2, gold 1
    """
    counts = {name: len(group) for name, group in groups.items()}
    if len(set(counts.values())) > 1:
        found = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise ValueError(f"one entry a sentence is needed everywhere, but there are: {found}")
    return next(iter(counts.values()))


def same_lengths(predicted: Sequence[Sized], gold: Sequence[Sized]) -> None:
    """Check that each sentence has as many predicted tags as gold ones."""
    same_count(predicted=predicted, gold=gold)
    for i, (ours, theirs) in enumerate(zip(predicted, gold, strict=True)):
        if len(ours) != len(theirs):
            raise ValueError(
                f"sentence {i} has {len(ours)} predicted tags but {len(theirs)} gold ones"
            )
