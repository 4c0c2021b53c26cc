"""The threshold of links, chosen with gold links or by the agreement of both directions."""

from collections.abc import Sequence

import numpy as np

from regard.metrics import GoldLinks, Tally, alignment_metrics
from regard.metrics.tally import metric_value
from regard.tasks.alignment.align_pairs import PairPosteriors

THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(2, 17))


def choose_threshold(
    found: Sequence[PairPosteriors], gold: Sequence[GoldLinks] | None = None
) -> float:
    """The threshold with the lowest AER; without gold links the one with the best cross-agreement.

    Cross-agreement: the mean F1 of the links with those that either direction alone finds most
    likely. Among equally good thresholds the middle one is chosen.
    """
    if gold is not None:
        merits = [
            -metric_value(alignment_metrics([one.links(t) for one in found], gold)["aer"])
            for t in THRESHOLDS
        ]
    else:
        own = [[one.best(side) for one in found] for side in (0, 1)]
        merits = [
            sum(_f1([one.links(t) for one in found], links) for links in own) for t in THRESHOLDS
        ]
    best = [t for t, merit in zip(THRESHOLDS, merits, strict=True) if merit == max(merits)]
    return best[len(best) // 2]


def agreement(found: Sequence[PairPosteriors]) -> Tally:
    """F1 of the most likely links of both directions."""
    counts = [
        (len(one.best(0) & one.best(1)), len(one.best(0)) + len(one.best(1))) for one in found
    ]
    statistics = np.array(counts, np.float64).reshape(len(counts), 2)
    return Tally("agreement", statistics, _share, unit="share")


def _share(sums: np.ndarray) -> np.ndarray:
    shares: np.ndarray = 2 * sums[:, 0] / np.maximum(sums[:, 1], 1)
    return shares


def _f1(one: Sequence[set[tuple[int, int]]], other: Sequence[set[tuple[int, int]]]) -> float:
    both = sum(len(a & b) for a, b in zip(one, other, strict=True))
    return 2 * both / max(1, sum(map(len, one)) + sum(map(len, other)))
