"""From soft to hard alignments: links from the attention of target words to source words."""

from collections.abc import Callable, Mapping

import numpy as np
from jaxtyping import Float

Links = set[tuple[int, int]]
"""Source word, target word, from 0."""
Weights = Float[np.ndarray, "t s"]


def argmax(weights: Weights, threshold: float = 0.0) -> Links:
    """Each target word with the source word that it attends to most; none if its row is zero.

    >>> sorted(argmax(np.array([[0.7, 0.3], [0.6, 0.4], [0.0, 0.0]])))
    [(0, 0), (0, 1)]
    """
    return {(int(row.argmax()), t) for t, row in enumerate(weights) if row.size and row.max() > 0}


def mutual(weights: Weights, threshold: float = 0.0) -> Links:
    """The links of `argmax` whose weight is also the largest of the source word.

    >>> mutual(np.array([[0.7, 0.3], [0.6, 0.4]]))
    {(0, 0)}
    """
    return {(s, t) for s, t in argmax(weights) if weights[:, s].argmax() == t}


def cover(weights: Weights, threshold: float = 0.1) -> Links:
    """`argmax`, then each source word without a link with the target word that attends to it most.

    The latter only where the weight is at least the threshold.

    >>> sorted(cover(np.array([[0.7, 0.3], [0.6, 0.4]])))
    [(0, 0), (0, 1), (1, 1)]
    """
    links = argmax(weights)
    taken = {s for s, _ in links}
    for s, column in enumerate(weights.T):
        if s not in taken and column.size and column.max() >= max(threshold, 1e-12):
            links.add((s, int(column.argmax())))
    return links


def above(weights: Weights, threshold: float = 0.1) -> Links:
    """All links whose weight is at least the threshold.

    >>> sorted(above(np.array([[0.7, 0.3], [0.6, 0.4]]), 0.4))
    [(0, 0), (0, 1), (1, 1)]
    """
    return {(int(s), int(t)) for t, s in np.argwhere(weights >= max(threshold, 1e-12))}


EXTRACTIONS: Mapping[str, Callable[[Weights, float], Links]] = {
    "argmax": argmax,
    "mutual": mutual,
    "cover": cover,
    "above": above,
}
"""Ways to extract links, by name."""
