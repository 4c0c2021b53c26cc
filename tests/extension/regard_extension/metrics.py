"""A metric of texts: how often their lengths differ by one word at most."""

from collections.abc import Sequence

import numpy as np

from regard.metrics import Metric, Tally


def length_within_one(predicted: Sequence[str], gold: Sequence[str]) -> Tally:
    """The proportion of texts whose number of words is right to within one."""
    near = [
        abs(len(ours.split()) - len(theirs.split())) <= 1
        for ours, theirs in zip(predicted, gold, strict=True)
    ]
    statistics = np.stack([np.array(near, dtype=np.float64), np.ones(len(near))], 1)
    return Tally("length within one", statistics, lambda sums: sums[:, 0] / sums[:, 1])


WITHIN_ONE = Metric({"texts": length_within_one})
