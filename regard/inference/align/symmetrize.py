"""Symmetrization: one alignment from two of opposite directions.

Och & Ney (2003), https://aclanthology.org/J03-1002; grow-diag-final-and: Koehn et al. (2005),
Edinburgh System Description, https://aclanthology.org/2005.iwslt-1.8. These combine links;
`agree` combines weights, before links are extracted.
"""

from collections.abc import Callable, Collection, Mapping

import numpy as np
from jaxtyping import Float

Link = tuple[int, int]
Links = set[Link]

NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))
"""Steps to the neighbours of a link: beside it first, then diagonal."""


def intersect(forward: Collection[Link], backward: Collection[Link]) -> Links:
    """The links of both directions."""
    return set(forward) & set(backward)


def union(forward: Collection[Link], backward: Collection[Link]) -> Links:
    """The links of either direction."""
    return set(forward) | set(backward)


def grow_diag_final_and(forward: Collection[Link], backward: Collection[Link]) -> Links:
    """The intersection, grown towards the union.

    *grow-diag*: add links of the union that are neighbours of a link, diagonals included, if their
    source word or their target word has no link yet; repeat until nothing is added.
    *final-and*: then add links of the forward, then of the backward alignment, if neither of their
    words has a link yet.

    >>> sorted(grow_diag_final_and({(0, 0), (1, 1), (3, 3)}, {(0, 0), (1, 2), (4, 3)}))
    [(0, 0), (1, 1), (1, 2), (3, 3)]
    """
    either = set(forward) | set(backward)
    order = sorted(either)
    links = set(forward) & set(backward)
    sources, targets = {s for s, _ in links}, {t for _, t in links}

    def add(link: Link) -> None:
        links.add(link)
        sources.add(link[0])
        targets.add(link[1])

    # The result depends on the order: links of the union are visited by source, then target word,
    # and a link that was just added is grown from in the same pass if it lies ahead.
    grown = True
    while grown:
        grown = False
        for s, t in order:
            for down, right in NEIGHBOURS if (s, t) in links else ():
                neighbour = s + down, t + right
                free = neighbour[0] not in sources or neighbour[1] not in targets
                if free and neighbour in either and neighbour not in links:
                    add(neighbour)
                    grown = True
    for direction in (forward, backward):
        for link in sorted(set(direction) - links):
            if link[0] not in sources and link[1] not in targets:
                add(link)
    return links


def agree(
    forward: Float[np.ndarray, "t s"], backward: Float[np.ndarray, "s t"]
) -> Float[np.ndarray, "t s"]:
    """√(forward · backwardᵀ), entry by entry: a link has weight where both directions give it some.

    Where one direction is undecided, the other decides; this is lost when links are extracted from
    each direction before they are combined. The product of posteriors: Liang et al. (2006),
    Alignment by Agreement, https://aclanthology.org/N06-1014; the root keeps thresholds on the
    scale of weights.

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
"""Ways to combine the links of both directions, by name."""
AGREE = "agree"
"""The name of the symmetrization that combines weights."""
