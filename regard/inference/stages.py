"""One row of attention taken apart: the numbers between a query and what it reads.

score(q, kⱼ) → + bias → mask → normalize → Σⱼ aⱼ vⱼ, for one word of the lectures' sentence or for
one word of a text under a trained run, with the run's own numbers.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention import normalizers, scores, steps
from regard.attention.arguments import share_heads
from regard.attention.example import Example, early_bird
from regard.inference.interventions import attentions, twin
from regard.inference.runs import Run
from regard.layers import MultiHead, Pooling, Reading
from regard.looks import Look
from regard.models.lookback import LookBack
from regard.trace import Trace

EXAMPLES = ("scaled_dot", "bilinear", "additive")
CLOSE = 1e-5
"""How far two computations of the same weights may be apart."""


class Stages(NamedTuple):
    """What stands between one query and what it reads."""

    score: str
    query: Float[Tensor, "d"]
    """The query as the score compares it with keys: q, q W or W q + b."""
    keys: Float[Tensor, "k d"]
    """The keys in the same place: k, or U k."""
    outer: Float[Tensor, "d"] | None
    """w of an additive score, w · tanh(query + key)."""
    products: Float[Tensor, "k"] | None
    scale: float | None
    scores: Float[Tensor, "k"]
    biased: Float[Tensor, "k"]
    allowed: Bool[Tensor, "k"]
    normalize: str
    weights: Float[Tensor, "k"]
    values: Float[Tensor, "k v"]
    output: Float[Tensor, "v"]


@torch.no_grad()
def example(word: int, score: str = "scaled_dot", made: Example | None = None) -> Stages:
    """The early bird catches the worm, or another: one of its words looks, by one of three scores.

    `bilinear` compares the vectors of the words themselves, with W = W_Q W_Kᵀ, so that its scores
    are the products of `scaled_dot`, before they are scaled. `additive` adds the query to the key
    and asks of each feature whether both have it: tanh(2 (W_Q e + k) - 5).
    """
    made = made or early_bird()
    query, key, value = made.project()
    chosen: scores.Score
    if score == "bilinear":
        chosen = scores.Bilinear(4, 4)
        chosen.weight.copy_(made.to_query @ made.to_key.mT)
        query = key = made.vectors
    elif score == "additive":
        chosen = scores.Additive(4, 4)
        chosen.query.weight.copy_(2 * torch.eye(4))
        chosen.query.bias.fill_(-5.0)
        chosen.key.weight.copy_(2 * torch.eye(4))
        chosen.weight.fill_(1.0)
    else:
        chosen = scores.named(score)
    allowed = torch.ones(len(made.words), dtype=torch.bool)
    return _stages(query[word], key, value, allowed, None, chosen, normalizers.softmax)


def run_stages(
    run: Run, text: str, name: str, layer: int | None, head: int | None, row: int, **options: Any
) -> tuple[Trace, Look, Stages]:
    """The stages of one row of one look that a run takes at a text; `options` are `Run.trace`'s.

    The row is found again by its weights as the run reads the text a second time, with a hand in
    each of its attentions. Where no attention has made them, that is a ValueError.
    """
    trace = run.trace(text, **options)
    places = [one for one in trace.looks if (one.name, one.layer, one.head) == (name, layer, head)]
    if not places:
        known = ", ".join(sorted({one.name for one in trace.looks})) or "none"
        raise ValueError(f"no look {name!r} at this layer and head; there are: {known}")
    look = places[0]
    if not 0 <= row < len(look.queries):
        raise ValueError(f"row {row} of a look with {len(look.queries)} rows")
    network = twin(run.model)
    matrix = torch.from_numpy(np.array(look.weights, dtype=np.float64))
    found = [_Witness(part, matrix, row, head) for part in attentions(network)]
    with torch.no_grad(), _watched(found):
        replace(run, model=network).trace(text, **options)
    told = [witness for witness in found if witness.stages is not None]
    if not told:
        raise ValueError(f"{name} is not made of a score and a sum that could be shown")
    most = max(len(witness.seen) for witness in told)
    same = [witness for witness in told if len(witness.seen) == most]
    best = same[min(layer or 0, len(same) - 1)]
    assert best.stages is not None
    return trace, look, best.stages


@dataclass
class _Witness:
    """Sees the calls of one attention, and keeps the row whose weights are those it looks for."""

    part: nn.Module
    matrix: Float[Tensor, "q k"]
    row: int
    head: int | None
    seen: set[int] = field(default_factory=set)
    stages: Stages | None = None
    call: tuple[Tensor, Tensor] | None = None
    values: Tensor | None = None
    normalize: normalizers.Normalizer = normalizers.softmax

    def look(self, given: Tensor, mask: Tensor | None, raw: Tensor, weights: Tensor) -> None:
        """Compare the rows of one call with those of the look."""
        if self.call is None or self.values is None:
            return
        query, key = self.call
        heads = isinstance(self.part, MultiHead)
        if heads and weights.shape[-3] <= (self.head or 0):
            return
        here = (..., self.head or 0, slice(None), slice(None)) if heads else (...,)
        shape = weights.shape
        rows = _rows(weights[here], self.matrix.shape[1])
        if rows is None:
            return
        same = (rows[:, None] - self.matrix).abs().amax(-1) <= CLOSE
        self.seen |= set(same.any(0).nonzero()[:, 0].tolist())
        hits = same[:, self.row].nonzero()[:, 0].tolist()
        if not hits or self.stages is not None:
            return
        at = _place(hits[0], weights[here].shape[:-1])

        def one(tensor: Tensor, tail: int) -> Tensor:
            """The member of the batch, and of the heads, that was found."""
            full = tensor.expand(*shape[:-2], *tensor.shape[-tail:])
            return full[here][at[:-1]]

        allowed = torch.ones(shape[-1], dtype=torch.bool)
        if mask is not None:
            allowed = one(mask.expand(shape), 2)[at[-1]]
        bias = one(given.expand(shape) - raw.expand(shape), 2)[at[-1]]
        self.stages = _stages(
            one(query, 2)[at[-1]],
            one(key, 2),
            one(self.values, 2),
            allowed,
            bias if bool(bias.abs().max() > 0) else None,
            self.inner,
            self.normalize,
        )

    @property
    def inner(self) -> scores.Score:
        """The score as it was before it was watched."""
        watched = self.part.score
        assert isinstance(watched, _Watched)
        return watched.inner


class _Watched(nn.Module):
    """A score that tells what it was asked."""

    def __init__(self, inner: scores.Score, tell: Callable[[Tensor, Tensor], None]) -> None:
        super().__init__()
        self.inner, self.tell = inner, tell

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """The same scores."""
        self.tell(query, key)
        return self.inner(query, key)


@contextmanager
def _watched(witnesses: list[_Witness]) -> Iterator[None]:
    """A twin whose attentions are seen; it is thrown away, so nothing needs to be undone."""
    for witness in witnesses:
        _watch(witness)
    yield


def _watch(witness: _Witness) -> None:
    part: Any = witness.part

    def asked(query: Tensor, key: Tensor) -> None:
        witness.call = query, key

    if isinstance(part, MultiHead):
        read, group = part.read, part.heads // part.key_heads

        def reading(query: Tensor, cache: Any, *more: Any, **named: Any) -> Any:
            witness.values = share_heads(cache.value, group)
            return read(query, cache, *more, **named)

        part.read = reading  # type: ignore[method-assign]
    else:
        part.register_forward_pre_hook(
            lambda _part, given, named: setattr(witness, "values", _values(part, given, named)),
            with_kwargs=True,
        )
    inner = part.score
    del part.score  # may be a module or not, and has to become one
    part.score = _Watched(inner, asked)
    witness.normalize = normalizers.named(part.normalize)

    def seen(given: Tensor, mask: Tensor | None) -> Tensor:
        weights = witness.normalize(given, mask)
        if witness.call is not None:
            witness.look(given, mask, inner(*witness.call), weights)
        return weights

    part.normalize = seen


def _values(part: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> Tensor | None:
    """What an attention reads, from the arguments of its call."""
    if isinstance(part, Reading):
        value: Tensor = (given[1] if len(given) > 1 else named["memory"]).value
        return value
    if isinstance(part, Pooling):
        states: Tensor = given[0]
        return states
    assert isinstance(part, LookBack)
    new, past = given[0], given[1] if len(given) > 1 else named["past"]
    memory = torch.cat([past, new], 1)
    if part.parts is None:
        return memory
    split: tuple[Tensor, ...] = part.parts(memory).chunk(3, -1)
    return split[1]


def _rows(weights: Tensor, keys: int) -> Float[Tensor, "n k"] | None:
    """All rows of a call, as wide as the look; None where they reach beyond it."""
    flat = weights.detach().double().flatten(0, -2)
    if flat.shape[-1] > keys and bool((flat[:, keys:] != 0).any()):
        return None
    wide = flat.new_zeros(len(flat), keys)
    wide[:, : flat.shape[-1]] = flat[:, :keys]
    return wide


def _place(number: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(number, tuple(shape)))


def _stages(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    allowed: Tensor,
    bias: Tensor | None,
    score: scores.Score,
    normalize: normalizers.Normalizer,
) -> Stages:
    made = steps(
        query[None],
        key,
        value,
        allowed[None],
        score=score,
        normalize=normalize,
        bias=None if bias is None else bias[None],
    )
    scale, outer, left, right = None, None, query[None], key
    if scores.is_dot(score):
        left, right, scale = score.factors(query[None], key)
    elif scores.is_additive(score):
        (left, right), outer = score.project(query[None], key), score.weight
    return Stages(
        _name(score),
        left[0],
        right,
        outer,
        None if made.products is None else made.products[0],
        scale,
        made.scores[0],
        made.biased[0],
        allowed,
        getattr(normalize, "__name__", type(normalize).__name__),
        made.weights[0],
        value,
        made.output[0],
    )


def _name(score: scores.Score) -> str:
    if isinstance(score, scores.ScaledDot):
        return "dot" if score.scale == 1.0 else "scaled_dot"
    if isinstance(score, scores.KeyedAdditive):
        return "additive"
    return type(score).__name__.lower()
