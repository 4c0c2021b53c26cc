"""A metric by length: does quality fall as sentences grow?"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from regard.metrics.measurement import Measurement, measure
from regard.metrics.tally import Tally, same_count


class Bucket(NamedTuple):
    """Lengths from `shortest` to `longest`, both included; no upper end is None.

    >>> print(Bucket(11, 20), Bucket(21, None), sep=" | ")
    11–20 | over 20
    """

    shortest: int
    longest: int | None

    def __str__(self) -> str:
        if self.longest is None:
            return f"over {self.shortest - 1}"
        return f"{self.shortest}–{self.longest}"


def by_length(
    tally: Tally,
    lengths: Sequence[int] | np.ndarray,
    edges: Sequence[int] = (10, 20, 30, 40, 50),
    *,
    confidence: float = 0.95,
) -> dict[Bucket, Measurement]:
    """A metric for each bucket of lengths that holds a sentence, shortest first.

    An edge is the greatest length of its bucket; a last bucket takes whatever is longer.
    """
    same_count(statistics=tally.statistics, lengths=lengths)
    if list(edges) != sorted(set(edges)):
        raise ValueError(f"edges must increase, got {tuple(edges)}")
    place = np.searchsorted(np.asarray(edges), np.asarray(lengths, dtype=np.int64), side="left")
    starts = [0, *(edge + 1 for edge in edges)]
    buckets = map(Bucket, starts, [*edges, None])
    return {
        bucket: measure(tally[place == i], confidence=confidence)
        for i, bucket in enumerate(buckets)
        if np.any(place == i)
    }


def even_edges(lengths: Sequence[int] | np.ndarray, buckets: int = 5) -> tuple[int, ...]:
    """Edges that put about as many sentences in each bucket (fewer buckets where lengths tie).

    >>> even_edges([1, 2, 3, 4, 5, 6, 7, 8], buckets=4)
    (2, 4, 6)
    """
    if buckets < 1:
        raise ValueError(f"at least one bucket is needed, got {buckets}")
    if len(lengths) == 0:
        return ()
    inner = np.arange(1, buckets) / buckets
    edges = np.quantile(np.asarray(lengths), inner, method="inverted_cdf")
    return tuple(int(edge) for edge in np.unique(edges) if edge < np.max(lengths))
