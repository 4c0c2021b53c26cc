"""Scores: how well a query matches a key.

A score is any callable ``(query [*b, q, d], key [*b, k, e]) -> scores [*b, q, k]``. Those whose
scores are a scaled dot product of something also say of what, in `factors`; torch's fused kernel
then serves them all.

`SCORES` has one row per name. A row is one of two things:

- a function, or another callable, is the score itself and has no weights of its own;
- a class makes a score from sizes, with fresh weights for each layer. Its constructor takes, by
  name, those of `query_size`, `key_size`, `hidden` and `max_keys` that it needs::

      class Distance(nn.Module):
          def __init__(self, query_size: int, key_size: int) -> None: ...
          def forward(self, query: Tensor, key: Tensor) -> Tensor: ...

Another package adds rows with entry points in the group "regard.scores". Wherever a score is given
by name, a reference "package.module:name" to such a function or class works as well.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.additive import additive_scores
from regard.attention.attention_tables import SCORES
from regard.attention.deferred_gradients import apply_linear
from regard.plugins import is_reference

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
    """q·k · scale; default: 1/√d.

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

    W₁ [q; k] is a sum of a query part and a key part, so each is projected once, not for every
    pair, and the tanh of all pairs is never held in memory.

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
class PreparedAdditive:
    """An additive score for keys that are already projected: for many steps over the same keys."""

    score: Additive

    @property
    def weight(self) -> Tensor:
        """w₂."""
        return self.score.weight

    def project(self, query: Query, key: Key) -> tuple[Tensor, Tensor]:
        """The query part of W₁ [q; k] + b, and the key as it is."""
        _sizes("additive", (query, self.score.query.in_features), (key, self.weight.shape[0]))
        return apply_linear(self.score.query, query), key

    def __call__(self, query: Query, key: Key) -> Scores:
        """The scores."""
        return additive_scores(*self.project(query, key), self.weight)


class Location(nn.Module):
    """(W q)ⱼ: the query alone decides where to attend; Luong's location-based score."""

    def __init__(self, query_size: int, max_keys: int) -> None:
        super().__init__()
        self.where = nn.Linear(query_size, max_keys, bias=False)

    def forward(self, query: Query, key: Key) -> Scores:
        """The scores."""
        _sizes("location", (query, self.where.in_features))
        if key.shape[-2] > self.where.out_features:
            raise ValueError(
                f"location was made for {self.where.out_features} positions, but there are "
                f"{key.shape[-2]} keys of shape {list(key.shape)}: raise max_keys"
            )
        scores: Tensor = self.where(query)[..., : key.shape[-2]]
        batch = np.broadcast_shapes(query.shape[:-2], key.shape[:-2])
        return scores.expand(*batch, *scores.shape[-2:])


Concat = Additive

dot = ScaledDot(1.0)
scaled_dot = ScaledDot()
cosine = Cosine()


def is_dot(score: Score) -> TypeGuard[DotType]:
    """Whether a fast path may use the factors of a score instead of calling it.

    Only of ours, as they are: a subclass or a hook may change what a call gives.
    """
    return type(score) in (ScaledDot, Cosine, Bilinear, MLP) and not _hooked(score)


def is_additive(score: Score) -> TypeGuard[AdditiveType]:
    """Whether a fast path may use the projections of a score instead of calling it."""
    if type(score) is PreparedAdditive:
        return not _hooked(score.score)
    return type(score) is Additive and not _hooked(score)


def _hooked(score: Score) -> bool:
    return isinstance(score, nn.Module) and bool(
        score._forward_hooks or score._forward_pre_hooks or score._backward_hooks
    )


def score_row(score: str | Score | type[Any]) -> Score | type[Any]:
    """What a name or a reference stands for: a score, or a class that makes one from sizes."""
    row = SCORES.resolve(score) if isinstance(score, str) else score
    if not callable(row):
        raise ValueError(
            f"a score is a name, a function (query, key) -> scores, or a class; got {row!r}"
        )
    return row


def score_by_name(score: str | Score) -> Score:
    """The score of this name, for a caller that has no place for weights; a callable is itself."""
    row = score_row(score)
    if isinstance(row, type):
        name = score if isinstance(score, str) else row.__name__
        raise ValueError(
            f"score {name!r} has weights of its own: pass a module of regard.attention.scores, "
            f"or scores.make_score({name!r}, query_size, key_size)"
        )
    return row


def make_score(
    score: str | Score | type[Any],
    query_size: int,
    key_size: int,
    *,
    hidden: int | None = None,
    max_keys: int = 512,
) -> Score:
    """A score for queries and keys of these sizes, with fresh weights if it has any.

    Args:
        score: a name in `SCORES`, a reference "package.module:name", a class that makes a score,
            or a callable, which stays itself.
        query_size: size of a query.
        key_size: size of a key.
        hidden: hidden size of a score that has a hidden layer (default: the constructor's own
            default, or `key_size` where it has none).
        max_keys: the largest number of keys, for scores that have weights for each position.
    """
    row = score_row(score)
    if isinstance(row, type):
        sizes = {
            "query_size": query_size,
            "key_size": key_size,
            "hidden": hidden,
            "max_keys": max_keys,
        }
        return _build(score if isinstance(score, str) else row.__name__, row, sizes)
    if isinstance(row, ScaledDot | Cosine) and query_size != key_size:
        name = score if isinstance(score, str) else type(row).__name__
        raise ValueError(
            f"score {name!r} compares vectors of the same size; got queries of size {query_size} "
            f"and keys of size {key_size}: make them equal, or use bilinear or additive"
        )
    if isinstance(score, str) and is_reference(score):
        _check_foreign(score, row, query_size, key_size)
    return row


def _check_foreign(name: str, score: Score, query_size: int, key_size: int) -> None:
    """Refuse a function that is not a score, before a model is built around it."""
    query, key = torch.zeros(1, 2, query_size), torch.zeros(1, 3, key_size)
    try:
        shape = tuple(score(query, key).shape)
    except Exception as error:
        raise ValueError(
            f"{name} is not a score: expected a function (query [*b, q, d], key [*b, k, e]) -> "
            f"scores [*b, q, k], but a call raises {type(error).__name__}: {error}"
        ) from error
    if shape != (1, 2, 3):
        raise ValueError(
            f"{name} is not a score: for a query {list(query.shape)} and a key {list(key.shape)} "
            f"expected scores [1, 2, 3], got {list(shape)}"
        )


def _build(name: str, maker: type[Any], sizes: dict[str, int | None]) -> Score:
    """An instance of a score's class, with those sizes that its constructor names."""
    arguments: dict[str, int | None] = {}
    for parameter in inspect.signature(maker).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        optional = parameter.default is not parameter.empty
        if parameter.name in sizes and parameter.kind is not parameter.POSITIONAL_ONLY:
            size = sizes[parameter.name]
            if size is not None or not optional:
                arguments[parameter.name] = sizes["key_size"] if size is None else size
        elif not optional:
            raise ValueError(
                f"score {name!r}: the constructor of {maker.__name__} needs {parameter.name!r}; a "
                f"score is made from sizes alone, taken by name: {', '.join(sizes)}"
            )
    built: Score = maker(**arguments)
    if not callable(built):
        raise ValueError(
            f"score {name!r}: a {maker.__name__} cannot be called: give it forward or __call__"
        )
    return built


def prepare_keys(
    score: Score, key: Float[Tensor, "*b k e"]
) -> tuple[Score, Float[Tensor, "*b k a"]]:
    """A score for keys that are projected beforehand, and the keys so projected.

    A decoder attends to the same keys at every step; this does the work on them once.
    """
    if type(score) is Additive and not _hooked(score):
        key = score.key(key)
    elif type(score) is Bilinear and not _hooked(score):
        key = key @ score.weight.mT
    elif type(score) is MLP and not _hooked(score):
        key = score.hidden(key).tanh()
    return prepared_score(score), key


def prepared_score(score: Score) -> Score:
    """The score for keys that `prepare_keys` has projected."""
    if type(score) is Additive and not _hooked(score):
        return PreparedAdditive(score)
    return dot if type(score) in (Bilinear, MLP) and is_dot(score) else score


def unit(vector: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """The vector divided by its length; zero, with zero gradient, where it has none."""
    length = torch.linalg.vector_norm(vector, dim=-1, keepdim=True)
    zero = length == 0
    return torch.where(zero, 0.0, vector / torch.where(zero, 1.0, length))


def _same_size(name: str, query: Tensor, key: Tensor) -> None:
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            f"{name} needs query and key of the same size; got query {list(query.shape)} and key "
            f"{list(key.shape)}: project one of them, or use bilinear or additive"
        )


def _sizes(name: str, *sides: tuple[Tensor, int]) -> None:
    for side, (tensor, size) in zip(("query", "key"), sides, strict=False):
        if tensor.shape[-1] != size:
            raise ValueError(
                f"{name} was made for a {side} of size {size}; got one of shape "
                f"{list(tensor.shape)}"
            )
