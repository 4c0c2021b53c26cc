"""Symmetrisation: one alignment out of two, made in opposite directions.

Och & Ney (2003), https://aclanthology.org/J03-1002; grow-diag-final-and: Koehn et al. (2005),
Edinburgh System Description, https://aclanthology.org/2005.iwslt-1.8. Links are joined by these;
weights, before there are any links, by `agree`.
"""

from collections.abc import Callable, Collection, Mapping

import numpy as np
from jaxtyping import Float

Link = tuple[int, int]
Links = set[Link]

NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))
"""The links beside a link, and those at its corners."""


def intersect(forward: Collection[Link], backward: Collection[Link]) -> Links:
    """The links that both directions found."""
    return set(forward) & set(backward)


def union(forward: Collection[Link], backward: Collection[Link]) -> Links:
    """The links that either direction found."""
    return set(forward) | set(backward)


def grow_diag_final_and(forward: Collection[Link], backward: Collection[Link]) -> Links:
    """The intersection, grown towards the union.

    *grow-diag*: as long as there are any, take in those links of the union that stand beside or at
    a corner of a link taken, if their source word or their target word has no link yet.
    *final-and*: then take in links of the forward, then of the backward alignment between two
    words that both have no link yet.

    >>> sorted(grow_diag_final_and({(0, 0), (1, 1), (3, 3)}, {(0, 0), (1, 2), (4, 3)}))
    [(0, 0), (1, 1), (1, 2), (3, 3)]
    """
    either = set(forward) | set(backward)
    order = sorted(either)
    links = set(forward) & set(backward)
    sources, targets = {s for s, _ in links}, {t for _, t in links}

    def take(link: Link) -> None:
        links.add(link)
        sources.add(link[0])
        targets.add(link[1])

    grown = True
    while grown:
        grown = False
        for s, t in order:
            for down, right in NEIGHBOURS if (s, t) in links else ():
                beside = s + down, t + right
                free = beside[0] not in sources or beside[1] not in targets
                if free and beside in either and beside not in links:
                    take(beside)
                    grown = True
    for direction in (forward, backward):
        for link in sorted(set(direction) - links):
            if link[0] not in sources and link[1] not in targets:
                take(link)
    return links


def agree(
    forward: Float[np.ndarray, "t s"], backward: Float[np.ndarray, "s t"]
) -> Float[np.ndarray, "t s"]:
    """√(forward · backwardᵀ), entry by entry: a link has weight where both directions see it.

    What one direction is torn between, the other decides, which links that are joined after each
    was chosen alone can no longer do. The product of posteriors: Liang et al. (2006), Alignment by
    Agreement, https://aclanthology.org/N06-1014; its root keeps thresholds on the scale of weights.

    >>> agree(np.array([[0.5, 0.5], [0.1, 0.9]]), np.array([[0.5, 0.5], [0.02, 0.98]])).round(2)
    array([[0.5 , 0.1 ],
           [0.22, 0.94]])
    """
    product: np.ndarray = np.sqrt(forward * backward.T)
    return product


SYMMETRIZATIONS: Mapping[str, Callable[[Collection[Link], Collection[Link]], Links]] = {
    "grow-diag-final-and": grow_diag_final_and,
    "intersect": intersect,
    "union": union,
}
"""How links of both directions are joined, by name."""
AGREE = "agree"
"""The name of what joins weights."""
