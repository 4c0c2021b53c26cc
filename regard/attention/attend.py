"""The one equation: weights = normalize(score(query, key)), output = weights · value."""

from typing import NamedTuple, cast

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from regard.attention.additive import additive_attention
from regard.attention.arguments import Arguments, check_arguments, clear_masked_keys, share_heads
from regard.attention.dispatch import choose_path
from regard.attention.fused import fused_attention
from regard.attention.masks import Mask
from regard.attention.normalizers import Normalizer
from regard.attention.scores import AdditiveType, Score, is_dot


class Attended(NamedTuple):
    """The weighted sums of the values, and the weights."""

    output: Float[Tensor, "... q v"]
    weights: Float[Tensor, "... q k"] | None


class Steps(NamedTuple):
    """Every stage of the computation; a stage that is not in use equals the one before."""

    products: Float[Tensor, "... q k"] | None
    """Dot products before scaling, for dot-type scores."""
    scores: Float[Tensor, "... q k"]
    biased: Float[Tensor, "... q k"]
    capped: Float[Tensor, "... q k"]
    masked: Float[Tensor, "... q k"]
    """With -inf at masked keys."""
    weights: Float[Tensor, "... q k"]
    output: Float[Tensor, "... q v"]


def attend(
    query: Float[Tensor, "... q d"],
    key: Float[Tensor, "... k e"],
    value: Float[Tensor, "... k v"],
    mask: Mask | Tensor | None = None,
    *,
    score: str | Score = "scaled_dot",
    normalize: str | Normalizer = "softmax",
    bias: Float[Tensor, "..."] | None = None,
    softcap: float | None = None,
    dropout: float = 0.0,
    need_weights: bool = True,
) -> Attended:
    """Attention: each query reads a sum of the values, weighted by how well it matches their keys.

    weights = normalize(c · tanh((score(query, key) + bias) / c)), output = weights · value.

    Leading axes broadcast. Heads stand on the third axis from the end; with four axes or more, key
    and value may have fewer heads than the query, each shared by a group of them. The size of
    values is free, and that of keys as far as the score allows.

    Args:
        query: one vector per query.
        key: one vector per position, compared with the queries.
        value: one vector per position, read by the queries.
        mask: True = may attend; a mask of `regard.attention.masks` or a bool tensor that broadcasts
            with [*b, q, k]. A fully masked query reads zeros, and keys that are masked for every
            query, such as padding, may hold anything, NaN too.
        score: a name ("dot", "scaled_dot", "cosine"), a reference "package.module:function", or any
            callable from query and key to scores, such as the modules of `regard.attention.scores`.
        normalize: a name, a reference or a function of `regard.attention.normalizers`.
        bias: numbers added to the scores; -inf closes a key as a mask does.
        softcap: c bounds the scores smoothly by c · tanh(s / c).
        dropout: share of the weights that is dropped, always when it is not 0 (a module passes 0
            in evaluation). The weights returned are those before dropout.
        need_weights: False lets a fast path serve; the output stays the same.

    >>> import torch
    >>> bank = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> attend(bank, bank, bank, score="dot", normalize="sum").weights
    tensor([[0.5000, 0.0000, 0.5000],
            [0.0000, 0.5000, 0.5000],
            [0.2500, 0.2500, 0.5000]])
    """
    call = check_arguments(
        query,
        key,
        value,
        mask,
        score=score,
        normalize=normalize,
        bias=bias,
        softcap=softcap,
        dropout=dropout,
        need_weights=need_weights,
    )
    path = choose_path(call).name
    if path.startswith("additive"):
        return Attended(_additive(call), None)
    call = clear_masked_keys(call)
    if path == "fused":
        return Attended(fused_attention(call), None)
    weights = call.normalize(_cap(_add(_scores(call), call.bias), softcap), _allowed(call))
    value = share_heads(call.value, call.group)
    output = (F.dropout(weights, dropout) if dropout else weights) @ value
    return Attended(output, weights if need_weights else None)


def steps(
    query: Float[Tensor, "... q d"],
    key: Float[Tensor, "... k e"],
    value: Float[Tensor, "... k v"],
    mask: Mask | Tensor | None = None,
    *,
    score: str | Score = "scaled_dot",
    normalize: str | Normalizer = "softmax",
    bias: Float[Tensor, "..."] | None = None,
    softcap: float | None = None,
) -> Steps:
    """The same computation as `attend`, with every stage kept by name, for teaching and plots."""
    call = check_arguments(
        query, key, value, mask, score=score, normalize=normalize, bias=bias, softcap=softcap
    )
    products = None
    if is_dot(call.score):
        left, right, _ = call.score.factors(query, share_heads(key, call.group))
        products = left @ right.mT
    scores = _scores(call)
    biased = _add(scores, call.bias)
    capped = _cap(biased, softcap)
    allowed = _allowed(call)
    masked = capped if allowed is None else torch.where(allowed, capped, float("-inf"))
    weights = call.normalize(capped, allowed)
    output = weights @ share_heads(clear_masked_keys(call).value, call.group)
    return Steps(
        products=products,
        scores=scores,
        biased=biased,
        capped=capped,
        masked=masked,
        weights=weights,
        output=output,
    )


def _scores(call: Arguments) -> Tensor:
    key = share_heads(call.key, call.group)
    scores = call.score(call.query, key)
    batch = np.broadcast_shapes(call.query.shape[:-2], key.shape[:-2])
    expected = (*batch, call.query.shape[-2], key.shape[-2])
    if not isinstance(scores, Tensor) or tuple(scores.shape) != expected:
        got = list(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
        raise ValueError(
            f"the score returned {got} for query {list(call.query.shape)} and key "
            f"{list(key.shape)}: expected scores of shape {list(expected)}"
        )
    return scores.expand(call.shape)


def _add(scores: Tensor, bias: Tensor | None) -> Tensor:
    if bias is None:
        return scores
    return scores + bias.to(scores.dtype).masked_fill(torch.isneginf(bias), 0.0)


def _cap(scores: Tensor, softcap: float | None) -> Tensor:
    return scores if softcap is None else softcap * (scores / softcap).tanh()


def _allowed(call: Arguments) -> Tensor | None:
    """The mask as a tensor; a bias of -inf closes a key too."""
    mask = None if call.mask is None else call.mask.tensor(call.shape, call.query.device)
    if call.bias is None:
        return mask
    finite = ~torch.isneginf(call.bias.detach())
    return finite if mask is None else mask & finite


def _additive(call: Arguments) -> Tensor:
    score = cast(AdditiveType, call.score)  # `choose_path` has checked it
    query, key = score.project(call.query, call.key)
    key, value = share_heads(key, call.group), share_heads(call.value, call.group)
    spans = None if call.mask is None else call.mask.spans(call.shape, query.device)
    mask = _allowed(call) if spans is None else None
    if spans is not None:
        start, stop = (side.expand(*side.shape[:-1], query.shape[-2]) for side in spans)
        spans = start, stop
    output = additive_attention(query, key, score.weight, value, spans=spans, mask=mask)
    return output.to(query.dtype)
