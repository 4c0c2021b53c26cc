"""One row of attention step by step: all numbers from a query to its output.

score(q, kⱼ) → + bias → mask → normalize → Σⱼ aⱼ vⱼ, for one word of the lectures' sentence, or for
one token of a text under a trained run, with the run's own numbers.

A trace has the weights of a row, but not the queries, keys and values behind it, and a look does
not say which module computed it: a model may compute it in one call or in one call per generated
token, in a batch of hypotheses, with or without heads. The row is therefore found by its weights.
The run traces the text a second time on a copy of the model in which a `_Witness` observes every
attention module. Each witness compares all rows of each call with the rows of the look, and keeps
the numbers of the first row whose weights are the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention import normalizers, scores, steps
from regard.attention.arguments import share_heads
from regard.attention.worked_attention import Choices, worked_attention
from regard.attention.worked_example import Example, early_bird
from regard.inference.explain.attention_projections import (
    Projections,
    Written,
    head_projections,
    score_projections,
)
from regard.inference.explain.hooks import share_weights
from regard.inference.run import Run
from regard.layers import MemoryAttention, MultiHead, Pooling
from regard.models.past_attention import PastAttention
from regard.tasks.shared.attention_modules import attention_modules
from regard.trace import Trace
from regard.trace.look import Look

EXAMPLES = ("scaled_dot", "bilinear", "additive")
"""Scores that the worked example is computed with."""
SAME_WEIGHTS = 1e-5
"""How far apart two computations of the same weights may be."""


class Stages(NamedTuple):
    """All numbers from one query to its output."""

    score: str
    query: Float[Tensor, "d"]
    """The query as the score compares it with keys: q, q W or W q + b."""
    keys: Float[Tensor, "k d"]
    """The keys as the score compares them with the query: k, or U k."""
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
    temperature: float = 1.0
    """What scores are divided by before they are normalized."""
    projections: Projections | None = None
    """How a model's query, keys and values came about, where it projects them."""


@torch.no_grad()
def example(
    word: int, choices: Choices | str = "scaled_dot", sentence: Example | None = None
) -> Stages:
    """One word of a worked example attends to the words that the mask allows.

    Args:
        word: the word that attends, from 0.
        choices: score, normalizer, mask and position, or the name of a score.
        sentence: words with vectors (default: the early bird catches the worm).
    """
    chosen = Choices(score=choices) if isinstance(choices, str) else choices
    worked = worked_attention(sentence or early_bird(), chosen)
    stages = _stages(
        query=worked.query[word],
        key=worked.key,
        value=worked.value,
        allowed=worked.allowed[word],
        bias=None if worked.bias is None else worked.bias[word],
        score=worked.score,
        normalize=worked.normalize,
    )
    return stages._replace(normalize=chosen.normalize, temperature=chosen.temperature)


def run_stages(
    run: Run, text: str, name: str, layer: int | None, head: int | None, row: int, **options: Any
) -> tuple[Trace, Look, Stages]:
    """The trace of a text, one of its looks, and the stages of one row of this look.

    Args:
        run: a trained run.
        text: one text.
        name: the name of the look.
        layer: its layer, if it has one.
        head: its head, if it has one.
        row: the query, from 0.
        options: those of `Run.trace`.

    Raises:
        ValueError: if there is no such look or row, or no attention module computes it.
    """
    trace = run.trace(text, **options)
    look = _find_look(trace, name, layer, head, row)
    network = share_weights(run.model)
    matrix = torch.from_numpy(np.array(look.weights, dtype=np.float64))
    witnesses = [_Witness(module, matrix, row, head) for module in attention_modules(network)]
    for witness in witnesses:
        _observe(witness)
    with torch.no_grad():
        replace(run, model=network).trace(text, **options)
    stages = _most_convincing(witnesses, layer or 0)
    if stages is None:
        raise ValueError(f"{name} is not computed by a score and a weighted sum")
    return trace, look, stages


def _find_look(trace: Trace, name: str, layer: int | None, head: int | None, row: int) -> Look:
    for look in trace.looks:
        if (look.name, look.layer, look.head) == (name, layer, head):
            if not 0 <= row < len(look.queries):
                raise ValueError(f"row {row} of a look with {len(look.queries)} rows")
            return look
    known = ", ".join(sorted({look.name for look in trace.looks})) or "none"
    raise ValueError(f"no look {name!r} at this layer and head; there are: {known}")


def _most_convincing(witnesses: Sequence["_Witness"], layer: int) -> Stages | None:
    """The stages from the module that computed the look; None where no module did.

    Several modules may have a row with the same weights by chance (a first token can only attend to
    itself in every layer), so the module is taken that computed the most rows of the look. Where
    that leaves several, whole looks are the same, and the modules are in the order of the layers.
    """
    matching = [witness for witness in witnesses if witness.stages is not None]
    if not matching:
        return None
    most = max(len(witness.rows_seen) for witness in matching)
    equal = [witness for witness in matching if len(witness.rows_seen) == most]
    return equal[min(layer, len(equal) - 1)].stages


@dataclass
class _Witness:
    """Observes the calls of one attention module, and keeps the stages of the row it looks for.

    A call passes three points, in this order: the values are recorded when the module is entered,
    query and key when the score is computed, and `compare` gets the rest from the normalizer.
    """

    module: nn.Module
    matrix: Float[Tensor, "q k"]
    """The weights of the look."""
    row: int
    head: int | None
    rows_seen: set[int] = field(default_factory=set)
    """Rows of the look that this module has computed, in any call."""
    stages: Stages | None = None
    query_and_key: tuple[Tensor, Tensor] | None = None
    """Of the current call, as are `values` and `query_input`."""
    values: Tensor | None = None
    query_input: Tensor | None = None
    """What a multi-head attention projects to its queries."""
    written: list[Written] = field(default_factory=list)
    """What it has projected to keys and values in all calls so far."""
    score: scores.Score = scores.scaled_dot
    """The score and normalizer of the module before it was observed."""
    normalize: normalizers.Normalizer = normalizers.softmax

    def compare(self, biased: Tensor, mask: Tensor | None, weights: Tensor) -> None:
        """Compare the weights of one call [..., q, k] with all rows of the look.

        Args:
            biased: the scores with their bias, which the normalizer was called with.
            mask: the mask of the call.
            weights: what the normalizer returned.
        """
        if self.query_and_key is None or self.values is None:
            return
        query, key = self.query_and_key
        has_heads = isinstance(self.module, MultiHead)
        if has_heads and weights.shape[-3] <= (self.head or 0):
            return
        # the index that leaves [..., q, k] of the one head that the look is of
        of_head = (..., self.head or 0, slice(None), slice(None)) if has_heads else (...,)
        shape = weights.shape
        rows = _rows(weights[of_head], self.matrix.shape[1])
        if rows is None:
            return
        same = (rows[:, None] - self.matrix).abs().amax(-1) <= SAME_WEIGHTS  # [rows, q]
        self.rows_seen |= set(same.any(0).nonzero()[:, 0].tolist())
        matches = same[:, self.row].nonzero()[:, 0].tolist()
        if not matches or self.stages is not None:
            return
        # rows are flattened [..., q]: back to the member of the batch, and the query in it
        *member, position = _unravel(matches[0], weights[of_head].shape[:-1])

        def select(tensor: Tensor) -> Tensor:
            """The last two axes of a tensor for the member of the batch and the head."""
            full = tensor.expand(*shape[:-2], *tensor.shape[-2:])
            return full[of_head][tuple(member)]

        allowed = torch.ones(shape[-1], dtype=torch.bool)
        if mask is not None:
            allowed = select(mask.expand(shape))[position]
        bias = select(biased.expand(shape) - self.score(query, key).expand(shape))[position]
        self.stages = _stages(
            query=select(query)[position],
            key=select(key),
            value=select(self.values),
            allowed=allowed,
            bias=bias if bool(bias.abs().max() > 0) else None,
            score=self.score,
            normalize=self.normalize,
        )
        projections = self._projections(select, member, position)
        self.stages = self.stages._replace(projections=projections)

    def _projections(
        self, select: Callable[[Tensor], Tensor], member: Sequence[int], position: int
    ) -> Projections | None:
        """How the query and the keys that were compared came about."""
        assert self.query_and_key is not None
        assert self.values is not None
        if not isinstance(self.module, MultiHead):
            query, key = self.query_and_key
            return score_projections(self.score, select(query)[position], select(key))
        if self.query_input is None or not self.written:
            return None
        query_input, values = self.query_input[tuple(member)][position], select(self.values)
        head = self.head or 0
        return head_projections(self.module, self.score, head, query_input, values, self.written)


class _RecordingScore(nn.Module):
    """A score that records the query and key of each call."""

    def __init__(self, score: scores.Score, record: Callable[[Tensor, Tensor], None]) -> None:
        super().__init__()
        self.score, self.record = score, record

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """The same scores."""
        self.record(query, key)
        return self.score(query, key)


def _observe(witness: _Witness) -> None:
    """Change a module so that it reports each call to its witness, with the same results.

    The module belongs to a copy that is thrown away afterwards, so nothing is undone.
    """
    module: Any = witness.module
    _record_values(witness)
    witness.score = module.score
    witness.normalize = normalizers.normalizer_by_name(module.normalize)

    def record(query: Tensor, key: Tensor) -> None:
        witness.query_and_key = query, key

    def normalize(biased: Tensor, mask: Tensor | None) -> Tensor:
        weights = witness.normalize(biased, mask)
        witness.compare(biased, mask, weights)
        return weights

    # torch refuses to replace a submodule by something else and the reverse: delete it first
    del module.score
    module.score = _RecordingScore(witness.score, record)
    module.normalize = normalize


def _record_values(witness: _Witness) -> None:
    """Record the values of each call before they are read."""
    module: Any = witness.module
    if not isinstance(module, MultiHead):
        module.register_forward_pre_hook(
            lambda _module, given, named: setattr(witness, "values", _values(module, given, named)),
            with_kwargs=True,
        )
        return
    # not every call of a multi-head attention is a forward: decoding calls `read` with a cache
    read, remember = module.read, module.remember
    group = module.heads // module.key_heads

    def read_and_record(query: Tensor, cache: Any, *more: Any, **named: Any) -> Any:
        witness.values, witness.query_input = share_heads(cache.value, group), query
        return read(query, cache, *more, **named)

    def remember_and_record(key: Tensor, value: Tensor | None = None, cache: Any = None) -> Any:
        cache = remember(key, value, cache)
        if value is None or value is key:  # otherwise keys and values have inputs of their own
            new = cache.value[..., -key.shape[-2] :, :].transpose(-2, -3)
            inputs = key.reshape(-1, key.shape[-1])
            witness.written.append(Written(inputs, new.reshape(-1, *new.shape[-2:])))
        return cache

    module.read = read_and_record  # type: ignore[method-assign]
    module.remember = remember_and_record  # type: ignore[method-assign]


def _values(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> Tensor | None:
    """The values of an attention module, from the arguments of its call."""
    if isinstance(module, MemoryAttention):
        value: Tensor = (given[1] if len(given) > 1 else named["memory"]).value
        return value
    if isinstance(module, Pooling):
        states: Tensor = given[0]
        return states
    assert isinstance(module, PastAttention)
    new, past = given[0], given[1] if len(given) > 1 else named["past"]
    memory = torch.cat([past, new], 1)
    if module.parts is None:
        return memory
    split: tuple[Tensor, ...] = module.parts(memory).chunk(3, -1)
    return split[1]


def _rows(weights: Tensor, keys: int) -> Float[Tensor, "n k"] | None:
    """All rows of a call [n, k], as wide as the look; None where they have weight beyond it.

    A call may have more keys than the look (padding, without weight), or fewer: a decoder that has
    written t tokens attends to these alone.
    """
    flat = weights.detach().double().flatten(0, -2)
    if flat.shape[-1] > keys and bool((flat[:, keys:] != 0).any()):
        return None
    wide = flat.new_zeros(len(flat), keys)
    wide[:, : flat.shape[-1]] = flat[:, :keys]
    return wide


def _unravel(number: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(number, tuple(shape)))


def _stages(
    *,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    allowed: Tensor,
    bias: Tensor | None,
    score: scores.Score,
    normalize: normalizers.Normalizer,
) -> Stages:
    computed = steps(
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
        score=_name(score),
        query=left[0],
        keys=right,
        outer=outer,
        products=None if computed.products is None else computed.products[0],
        scale=scale,
        scores=computed.scores[0],
        biased=computed.biased[0],
        allowed=allowed,
        normalize=getattr(normalize, "__name__", type(normalize).__name__),
        weights=computed.weights[0],
        values=value,
        output=computed.output[0],
    )


def _name(score: scores.Score) -> str:
    if isinstance(score, scores.ScaledDot):
        return "dot" if score.scale == 1.0 else "scaled_dot"
    if isinstance(score, scores.PreparedAdditive):
        return "additive"
    return type(score).__name__.lower()
