"""The lectures' worked sentence, with vectors small enough to follow by hand.

The six words stand in a space of four features — article, quality, creature, action — and the
projections make a query that asks for qualities and actions of what it belongs to. The lectures
leave "bird" out of its own keys and do not scale; here it is among them, and scores are scaled by
1/√4, as in the transformer.
"""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


class Example(NamedTuple):
    """Words, their vectors, and the three projections W_Q, W_K, W_V."""

    words: tuple[str, ...]
    vectors: Float[Tensor, "t w"]
    to_query: Float[Tensor, "w d"]
    to_key: Float[Tensor, "w d"]
    to_value: Float[Tensor, "w d"]

    def project(self) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value of every word."""
        vectors = self.vectors
        return vectors @ self.to_query, vectors @ self.to_key, vectors @ self.to_value


def early_bird() -> Example:
    """The early bird catches the worm.

    >>> query, key, value = early_bird().project()
    >>> (query[2] @ key.T / 4**0.5).tolist()
    [0.0, 1.5, 0.5625, 1.25, 0.0, 0.25]
    """
    return Example(
        words=("The", "early", "bird", "catches", "the", "worm"),
        vectors=torch.tensor(
            [
                [1.0, 0.0, 0.0, 0.0],
                [0.0, 1.5, 0.0, 0.0],
                [0.0, 0.0, 1.0, 0.5],
                [0.0, 0.0, 0.0, 2.0],
                [1.0, 0.0, 0.0, 0.0],
                [0.0, 0.0, 1.0, 0.0],
            ]
        ),
        to_query=torch.tensor(
            [
                [0.0, 0.0, 1.0, 0.0],
                [0.0, 0.0, 1.0, 0.0],
                [0.0, 2.0, 0.5, 1.0],
                [0.0, 0.0, 0.0, 0.5],
            ]
        ),
        to_key=torch.eye(4),
        to_value=torch.eye(4),
    )


def made_up(words: Sequence[str]) -> Example:
    """Any words, under the same projections, with vectors that mean nothing.

    Each of the four features of a word is one of 0, ½, 1, 1½ and 2, chosen by a hash of its
    letters: the same word has the same vector everywhere, and similar words have nothing in
    common.

    >>> one, other, again = made_up(["worm", "worms", "worm"]).vectors.tolist()
    >>> one == again, one == other
    (True, False)
    """
    digests = [hashlib.sha256(word.encode("utf-8", "replace")).digest()[:4] for word in words]
    vectors = torch.tensor([[byte % 5 / 2 for byte in row] for row in digests]).reshape(-1, 4)
    return early_bird()._replace(words=tuple(words), vectors=vectors)
