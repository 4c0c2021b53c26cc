"""Pooling: one vector from a set of vectors, as attention with fixed or computed queries.

The lectures' fixed attention has learned parameters θ; they are the *queries* here, and the words
are the keys, over which the weights sum to one.
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention import attend, normalizers, scores
from regard.attention.masks import Mask
from regard.attention.normalizers import Normalizer
from regard.attention.scores import Score
from regard.errors import unknown
from regard.layers.expected_size import expect_size

POOLINGS = ("sum", "mean", "max", "weighted", "fixed")


class PoolingOutput(NamedTuple):
    """One vector per set, and how much of each member is in it."""

    output: Float[Tensor, "*b p"]
    weights: Float[Tensor, "*b n t"]


class Pooling(nn.Module):
    """One vector from many, by one of several kinds of attention.

    - ``sum``: Σᵢ xᵢ, every word alike; ``mean``: the same divided by their number;
    - ``max``: the largest number of each feature; the weight of a word is the share of features
      that it wins;
    - ``weighted``: a weighted mean whose query is computed from the whole set, W mean(x), so that
      one word can change the weight of another;
    - ``fixed``: n learned queries θ, each giving a weighted mean, joined end to end. With the score
      ``dot`` the scores are θᵀx, with ``mlp`` θᵀ tanh(W x + b).

    An empty set gives zeros.

    >>> words = torch.tensor([[1.0, 2.0], [3.0, 6.0], [9.0, 9.0]])
    >>> Pooling(2, "mean")(words, torch.tensor([True, True, False]))
    PoolingOutput(output=tensor([2., 4.]), weights=tensor([[0.5000, 0.5000, 0.0000]]))
    """

    def __init__(
        self,
        width: int,
        kind: str = "mean",
        *,
        queries: int = 1,
        score: str | Score | None = None,
        hidden: int | None = None,
        normalize: str | Normalizer = "softmax",
        max_keys: int = 512,
    ) -> None:
        """Make the queries and the score, where the kind has them.

        Args:
            width: size of the vectors.
            kind: sum, mean, max, weighted or fixed.
            queries: number of fixed queries; the output is that many times as wide.
            score: any score, by name or as a callable, for weighted and fixed (default:
                additive and dot). Queries have the size `width`, except those of "mlp".
            hidden: hidden size of an additive score, or of "mlp", whose fixed queries then have
                it too (default: `width`).
            normalize: any normalizer, for weighted and fixed.
            max_keys: the longest set for the score "location".
        """
        super().__init__()
        if kind not in POOLINGS:
            raise ValueError(unknown("pooling", kind, POOLINGS))
        if queries != 1 and kind != "fixed":
            raise ValueError(f"{kind} pooling has one query; {queries} need the kind 'fixed'")
        if queries < 1:
            raise ValueError(f"pooling needs at least one query; got {queries}")
        self.kind = kind
        self.width, self.size = width, width * queries
        self.score: Score = _all_equal
        self.normalize: Normalizer = normalizers.none if kind == "sum" else normalizers.softmax
        if kind in ("weighted", "fixed"):
            self.normalize = normalizers.normalizer_by_name(normalize)
            if score is None:
                score = "dot" if kind == "fixed" else "additive"
            query_size = hidden or width if (kind, score) == ("fixed", "mlp") else width
            self.score = scores.make_score(
                score, query_size, width, hidden=hidden, max_keys=max_keys
            )
        if kind == "weighted":
            self.context = nn.Linear(width, width)
        if kind == "fixed":
            self.queries = nn.Parameter(torch.empty(queries, query_size))
            nn.init.normal_(self.queries, std=query_size**-0.5)

    def forward(
        self, states: Float[Tensor, "*b t w"], mask: Mask | Tensor | None = None
    ) -> PoolingOutput:
        """Pool each set; `mask` says which members are real: bool [*b, t], or a lazy mask."""
        expect_size("the set", states, self.width)
        if isinstance(mask, Tensor):
            mask = mask.unsqueeze(-2)
        query = self._query(states, mask)
        output, weights = attend(
            query, states, states, mask, score=self.score, normalize=self.normalize
        )
        assert weights is not None  # requested by default
        if self.kind == "max":
            return _largest(states, weights > 0)
        return PoolingOutput(output.flatten(-2), weights)

    @property
    def is_plain(self) -> bool:
        """Whether it is the sum or mean, with weights that nobody changes."""
        usual = normalizers.none if self.kind == "sum" else normalizers.softmax
        return self.kind in ("sum", "mean") and self.normalize is usual

    def _query(self, states: Tensor, mask: Mask | Tensor | None) -> Tensor:
        if self.kind == "fixed":
            return self.queries.expand(*states.shape[:-2], *self.queries.shape)
        nothing = states.new_zeros(*states.shape[:-2], 1, states.shape[-1])
        if self.kind == "weighted":
            mean = attend(nothing, states, states, mask, score=_all_equal).output
            query: Tensor = self.context(mean)
            return query
        return nothing


def _all_equal(query: Tensor, key: Tensor) -> Tensor:
    """A score that is the same for all keys."""
    batch = np.broadcast_shapes(query.shape[:-2], key.shape[:-2])
    return query.new_ones(()).expand(*batch, query.shape[-2], key.shape[-2])


def _largest(states: Float[Tensor, "*b t w"], real: Bool[Tensor, "*b 1 t"]) -> PoolingOutput:
    if states.shape[-2] == 0:
        return PoolingOutput(states.sum(-2), states.new_zeros(real.shape))
    best, where = states.masked_fill(~real.mT, float("-inf")).max(-2)
    wins = torch.zeros_like(states).scatter(-2, where.unsqueeze(-2), 1.0).mean(-1)
    empty = ~real.any(-1)
    return PoolingOutput(best.masked_fill(empty, 0.0), wins.unsqueeze(-2) * real)
