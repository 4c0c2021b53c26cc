"""A look: one attention matrix that has not yet been drawn."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Look:
    """Which queries looked at which keys, and how much.

    >>> look = from_arrays([[0.9, 0.1]], queries=["chat"], keys=["cat", "the"])
    >>> look.weights.shape
    (1, 2)
    """

    weights: NDArray[np.float64]
    """[q, k], a row a query."""
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    name: str = "attention"
    layer: int | None = None
    head: int | None = None
    asking: str = "queries"
    """The side that looks, by its name in a trace."""
    asked: str = "keys"
    """The side that is looked at."""
    notes: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.weights.shape != (len(self.queries), len(self.keys)):
            raise ValueError(
                f"weights of shape {list(self.weights.shape)} do not fit {len(self.queries)} "
                f"queries and {len(self.keys)} keys"
            )


def from_arrays(
    weights: ArrayLike, queries: Sequence[str], keys: Sequence[str], *, name: str = "attention"
) -> Look:
    """A look from anybody's numbers: weights [q, k] and the words on both sides."""
    return Look(np.asarray(weights, dtype=np.float64), tuple(queries), tuple(keys), name)
