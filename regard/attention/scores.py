"""Scores: how well a query and a key fit.

A score is any callable ``(query [*b, q, d], key [*b, k, e]) -> scores [*b, q, k]``. Those whose
scores are a scaled dot product of something also say of what, in `factors`; torch's fused kernel
then serves them all.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeGuard, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.additive import additive_scores
from regard.errors import unknown

Score = Callable[[Tensor, Tensor], Tensor]
Query = Float[Tensor, "... q d"]
Key = Float[Tensor, "... k e"]
Scores = Float[Tensor, "... q k"]


@runtime_checkable
class DotType(Protocol):
    """A score of the form scale · f(query) · g(key)."""

    def factors(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor, float]:
        """(f(query), g(key), scale)."""
        ...


@runtime_checkable
class AdditiveType(Protocol):
    """A score of the form weightᵀ tanh(f(query) + g(key))."""

    @property
    def weight(self) -> Tensor:
        """The vector that sums up the hidden layer."""
        ...

    def project(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """(f(query), g(key))."""
        ...


def _product(score: DotType, query: Tensor, key: Tensor) -> Tensor:
    left, right, scale = score.factors(query, key)
    return (left if scale == 1.0 else left * scale) @ right.mT


@dataclass(frozen=True)
class ScaledDot:
    """q·k · scale, where the scale is 1/√d unless given.

    Vaswani et al., 2017, https://arxiv.org/abs/1706.03762
    """

    scale: float | None = None

    def factors(self, query: Query, key: Key) -> tuple[Tensor, Tensor, float]:
        """(query, key, scale)."""
        _same_size("dot" if self.scale == 1.0 else "scaled_dot", query, key)
        return query, key, query.shape[-1] ** -0.5 if self.scale is None else self.scale

    def __call__(self, query: Query, key: Key) -> Scores:
        """The scores."""
        return _product(self, query, key)


@dataclass(frozen=True)
class Cosine:
    """q·k / (|q| |k|), times a scale; a zero vector has no direction: score 0, gradient 0."""

    scale: float = 1.0

    def factors(self, query: Query, key: Key) -> tuple[Tensor, Tensor, float]:
        """(query / |query|, key / |key|, scale)."""
        _same_size("cosine", query, key)
        return unit(query), unit(key), self.scale

    def __call__(self, query: Query, key: Key) -> Scores:
        """The scores."""
        return _product(self, query, key)


class Bilinear(nn.Module):
    """qᵀ W k, Luong's *general* score.

    Luong, Pham and Manning, 2015, https://arxiv.org/abs/1508.04025
    """

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(query_size, key_size))
        nn.init.xavier_uniform_(self.weight)

    def factors(self, query: Query, key: Key) -> tuple[Tensor, Tensor, float]:
        """(query W, key, 1)."""
        _sizes("bilinear", (query, self.weight.shape[0]), (key, self.weight.shape[1]))
        return query @ self.weight, key, 1.0

    def forward(self, query: Query, key: Key) -> Scores:
        """The scores."""
        return _product(self, query, key)


class MLP(nn.Module):
    """qᵀ tanh(W k + b): keys pass a hidden layer before the dot product; the query has its size.

    With a learned query this is the lectures' fixed MLP attention, θᵀ σ(W x + b).
    """

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(key_size, query_size)

    def factors(self, query: Query, key: Key) -> tuple[Tensor, Tensor, float]:
        """(query, tanh(W key + b), 1)."""
        _sizes("mlp", (query, self.hidden.out_features), (key, self.hidden.in_features))
        return query, self.hidden(key).tanh(), 1.0

    def forward(self, query: Query, key: Key) -> Scores:
        """The scores."""
        return _product(self, query, key)


class Additive(nn.Module):
    """w₂ᵀ tanh(W₁ [q; k] + b), Bahdanau's score, also known as *concat*.

    W₁ [q; k] is a sum of a query part and a key part, so each is projected once, not a pair at a
    time, and the tanh of all pairs is never held in memory.

    Bahdanau, Cho and Bengio, 2015, https://arxiv.org/abs/1409.0473
    """

    def __init__(self, query_size: int, key_size: int, hidden: int | None = None) -> None:
        super().__init__()
        hidden = key_size if hidden is None else hidden
        self.query = nn.Linear(query_size, hidden)
        self.key = nn.Linear(key_size, hidden, bias=False)
        self.weight = nn.Parameter(torch.empty(hidden))
        nn.init.uniform_(self.weight, -(hidden**-0.5), hidden**-0.5)

    def project(self, query: Query, key: Key) -> tuple[Tensor, Tensor]:
        """The query part and the key part of W₁ [q; k] + b."""
        _sizes("additive", (query, self.query.in_features), (key, self.key.in_features))
        return self.query(query), self.key(key)

    def forward(self, query: Query, key: Key) -> Scores:
        """The scores."""
        return additive_scores(*self.project(query, key), self.weight)


@dataclass(frozen=True)
class KeyedAdditive:
    """An additive score whose keys are projected already: for many steps over the same keys."""

    score: Additive

    @property
    def weight(self) -> Tensor:
        """w₂."""
        return self.score.weight

    def project(self, query: Query, key: Key) -> tuple[Tensor, Tensor]:
        """The query part of W₁ [q; k] + b, and the key as it is."""
        _sizes("additive", (query, self.score.query.in_features), (key, self.weight.shape[0]))
        return self.score.query(query), key

    def __call__(self, query: Query, key: Key) -> Scores:
        """The scores."""
        return additive_scores(*self.project(query, key), self.weight)


class Location(nn.Module):
    """(W q)ⱼ: the query alone says where to look; Luong's location-based score."""

    def __init__(self, query_size: int, max_keys: int) -> None:
        super().__init__()
        self.where = nn.Linear(query_size, max_keys, bias=False)

    def forward(self, query: Query, key: Key) -> Scores:
        """The scores."""
        _sizes("location", (query, self.where.in_features))
        if key.shape[-2] > self.where.out_features:
            raise ValueError(
                f"location knows {self.where.out_features} positions, but there are "
                f"{key.shape[-2]} keys of shape {list(key.shape)}: raise max_keys"
            )
        scores: Tensor = self.where(query)[..., : key.shape[-2]]
        batch = np.broadcast_shapes(query.shape[:-2], key.shape[:-2])
        return scores.expand(*batch, *scores.shape[-2:])


Concat = Additive

dot = ScaledDot(1.0)
scaled_dot = ScaledDot()
cosine = Cosine()

WEIGHTLESS: dict[str, Score] = {"dot": dot, "scaled_dot": scaled_dot, "cosine": cosine}
LEARNED: dict[str, Callable[[int, int, int | None, int], nn.Module]] = {
    "bilinear": lambda query, key, hidden, keys: Bilinear(query, key),
    "general": lambda query, key, hidden, keys: Bilinear(query, key),
    "mlp": lambda query, key, hidden, keys: MLP(query, key),
    "additive": lambda query, key, hidden, keys: Additive(query, key, hidden),
    "concat": lambda query, key, hidden, keys: Additive(query, key, hidden),
    "location": lambda query, key, hidden, keys: Location(query, keys),
}


def is_dot(score: Score) -> TypeGuard[DotType]:
    """Whether a fast path may use the factors of a score instead of calling it.

    Only of ours, as they are: a subclass or a hook may change what a call gives.
    """
    return type(score) in (ScaledDot, Cosine, Bilinear, MLP) and not _hooked(score)


def is_additive(score: Score) -> TypeGuard[AdditiveType]:
    """Whether a fast path may use the projections of a score instead of calling it."""
    if type(score) is KeyedAdditive:
        return not _hooked(score.score)
    return type(score) is Additive and not _hooked(score)


def _hooked(score: Score) -> bool:
    return isinstance(score, nn.Module) and bool(
        score._forward_hooks or score._forward_pre_hooks or score._backward_hooks
    )


def named(score: str | Score) -> Score:
    """The weightless score of that name; a callable stays itself."""
    if not isinstance(score, str):
        if not callable(score):
            raise ValueError(f"a score is a name or a callable; got {score!r}")
        return score
    if score in LEARNED:
        raise ValueError(
            f"score {score!r} has weights of its own: pass a module of regard.attention.scores, "
            f"or scores.make({score!r}, query_size, key_size)"
        )
    if score not in WEIGHTLESS:
        raise ValueError(unknown("score", score, [*WEIGHTLESS, *LEARNED]))
    return WEIGHTLESS[score]


def make(
    score: str | Score,
    query_size: int,
    key_size: int,
    *,
    hidden: int | None = None,
    max_keys: int = 512,
) -> Score:
    """A score for queries and keys of these sizes, with fresh weights if it has any.

    Layers call this with the name that their user gave; a callable stays itself.
    """
    if isinstance(score, str) and score in LEARNED:
        return LEARNED[score](query_size, key_size, hidden, max_keys)
    return named(score)


def keyed(score: Score, key: Float[Tensor, "*b k e"]) -> tuple[Score, Float[Tensor, "*b k a"]]:
    """What remains of a score once its work on the keys is done, and the keys so prepared.

    A decoder attends to the same keys at every step; this does their part once.
    """
    if type(score) is Additive and not _hooked(score):
        key = score.key(key)
    elif type(score) is Bilinear and not _hooked(score):
        key = key @ score.weight.mT
    elif type(score) is MLP and not _hooked(score):
        key = score.hidden(key).tanh()
    return keyed_score(score), key


def keyed_score(score: Score) -> Score:
    """What remains of a score once its work on the keys is done."""
    if type(score) is Additive and not _hooked(score):
        return KeyedAdditive(score)
    return dot if type(score) in (Bilinear, MLP) and is_dot(score) else score


def unit(vector: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """The vector divided by its length; zero, with zero gradient, where it has none."""
    length = torch.linalg.vector_norm(vector, dim=-1, keepdim=True)
    nowhere = length == 0
    return torch.where(nowhere, 0.0, vector / torch.where(nowhere, 1.0, length))


def _same_size(name: str, query: Tensor, key: Tensor) -> None:
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            f"{name} needs query and key of one size; got query {list(query.shape)} and key "
            f"{list(key.shape)}: project one of them, or take bilinear or additive"
        )


def _sizes(name: str, *sides: tuple[Tensor, int]) -> None:
    for side, (tensor, size) in zip(("query", "key"), sides, strict=False):
        if tensor.shape[-1] != size:
            raise ValueError(
                f"{name} was made for a {side} of size {size}; got one of shape "
                f"{list(tensor.shape)}"
            )
