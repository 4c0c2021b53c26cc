"""The attention equation as a graph: scores, masks, normalizers and outputs."""

import math
import re

import numpy as np
import torch.nn.functional as F
from torch import nn

from regard.attention import normalizers, scores
from regard.attention.normalizers import Normalizer
from regard.attention.scores import Score
from regard.errors import RegardError
from regard.inference.export.graph import FLOAT, INT64, Value
from regard.layers.memory.addressing import SMALL_LENGTH, similarity
from regard.models.past_attention import RelativeLocation

NOWHERE = float("-inf")


def attend(
    query: Value,
    key: Value,
    value: Value,
    mask: Value | None,
    *,
    score: Score,
    normalize: str | Normalizer,
    bias: Value | None = None,
    axes: int = 3,
) -> tuple[Value, Value]:
    """The output and the weights, as in `regard.attention.attend`.

    query [.., q, d], key [.., k, e] and value [.., k, v] have `axes` axes; the mask broadcasts
    with [.., q, k].
    """
    fit = compute_scores(score, query, key, axes)
    if bias is not None:
        fit = fit + bias
    weights = normalize_scores(normalize, fit, mask)
    return weights @ value, weights


def linear(layer: nn.Linear, x: Value) -> Value:
    """W x + b."""
    product = x @ _transpose(x.graph.weight(layer.weight))
    return product if layer.bias is None else product + x.graph.weight(layer.bias)


def layer_norm(layer: nn.Module, x: Value) -> Value:
    """The norm of a block; the identity where there is none."""
    if isinstance(layer, nn.Identity):
        return x
    if isinstance(layer, nn.RMSNorm):
        assert layer.eps is not None
        size = ((x * x).mean(-1).unsqueeze(-1) + layer.eps).sqrt()
        return x / size * x.graph.weight(layer.weight)
    assert isinstance(layer, nn.LayerNorm)
    given = (x, x.graph.weight(layer.weight), x.graph.weight(layer.bias))
    return x.graph.op("LayerNormalization", *given, axis=-1, epsilon=layer.eps)


def activate(activation: object, x: Value) -> Value:
    """An activation of a feed-forward network or of a head."""
    if isinstance(activation, nn.Identity):
        return x
    if activation is F.relu or isinstance(activation, nn.ReLU):
        return x.relu()
    if isinstance(activation, nn.Tanh):
        return x.tanh()
    if isinstance(activation, nn.SiLU):
        return x * x.graph.op("Sigmoid", x)
    if isinstance(activation, nn.GELU) and activation.approximate == "tanh":
        inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
        return x * (inner.tanh() + 1.0) * 0.5
    if activation is not F.gelu and not isinstance(activation, nn.GELU):
        raise RegardError(f"the activation {activation} cannot be exported")
    return x * (x.graph.op("Erf", x * 2**-0.5) + 1.0) * 0.5


def compute_scores(score: Score, query: Value, key: Value, axes: int = 3) -> Value:
    """The scores [.., q, k]."""
    graph = query.graph
    if type(score) is scores.ScaledDot:
        if score.scale is None:
            size = graph.op("Shape", query, start=-1).to(FLOAT)
            return (query / size.sqrt()) @ _transpose(key, axes)
        return (query * score.scale if score.scale != 1.0 else query) @ _transpose(key, axes)
    if type(score) is scores.Cosine:
        return (_unit(query) * score.scale) @ _transpose(_unit(key), axes)
    if type(score) is scores.Bilinear:
        return (query @ graph.weight(score.weight)) @ _transpose(key, axes)
    if type(score) is scores.MLP:
        return query @ _transpose(linear(score.hidden, key).tanh(), axes)
    if type(score) is scores.Additive:
        return _additive(score, linear(score.query, query), linear(score.key, key))
    if type(score) is scores.PreparedAdditive:
        return _additive(score.score, linear(score.score.query, query), key)
    if type(score) is scores.Location:
        return linear(score.where, query).slice(-1, 0, graph.op("Shape", key, start=-2, end=-1))
    if score is similarity:
        return query @ _transpose(key, axes) / (_length(query) @ _transpose(_length(key), axes))
    if type(score) is RelativeLocation:
        return _backwards(score, query, key)
    name = getattr(score, "__name__", type(score).__name__)
    raise RegardError(f"the score {name} cannot be exported: only the scores built into regard can")


def prepare_keys(score: Score, memory: Value) -> Value:
    """The keys that `scores.prepare_keys` makes of a memory."""
    if type(score) is scores.Additive:
        return linear(score.key, memory)
    if type(score) is scores.Bilinear:
        return memory @ _transpose(memory.graph.weight(score.weight))
    if type(score) is scores.MLP:
        return linear(score.hidden, memory).tanh()
    return memory


def _transpose(x: Value, axes: int = 2) -> Value:
    """The last two of `axes` axes swapped."""
    return x.permute(*range(axes - 2), axes - 1, axes - 2)


def _unit(x: Value) -> Value:
    length = (x * x).sum(-1, keep=True).sqrt()
    zero = length <= 0.0
    return zero.where(0.0, x / zero.where(1.0, length))


def _length(x: Value) -> Value:
    return ((x * x).sum(-1, keep=True) + SMALL_LENGTH**2).sqrt()


def _additive(score: scores.Additive, query: Value, key: Value) -> Value:
    hidden = (query.unsqueeze(-2) + key.unsqueeze(-3)).tanh()
    return (hidden @ query.graph.weight(score.weight).unsqueeze(1)).squeeze(-1)


def _backwards(score: RelativeLocation, query: Value, key: Value) -> Value:
    graph = query.graph
    keys, queries = key.size(1), query.size(1)
    place = graph.range(0, keys)
    back = graph.range(keys - queries, keys).unsqueeze(1) - place - 1
    back = graph.op("Max", graph.op("Min", back, score.where.out_features - 1), 0)
    back = back.unsqueeze(0).expand(query.size(0), queries, keys)
    return graph.op("GatherElements", linear(score.where, query), back, axis=2)


def causal(queries: Value, keys: Value, reach: int | None = None, own: bool = True) -> Value:
    """[q, k]: a query attends to at most `reach` positions up to its own, with it if `own`."""
    graph = queries.graph
    query = graph.range(keys - queries, keys).unsqueeze(1)
    key = graph.range(0, keys)
    mask = key <= query if own else key < query
    return mask if reach is None else mask & ((query - key) < reach)


def real_positions(lengths: Value, keys: Value) -> Value:
    """[b, k]: False at padding."""
    return lengths.graph.range(0, keys) < lengths.unsqueeze(1)


def normalize_scores(normalize: str | Normalizer, fit: Value, mask: Value | None) -> Value:
    """The weights that a normalizer of `regard.attention.normalizers` makes of scores."""
    normalize = normalizers.normalizer_by_name(normalize)
    name = getattr(normalize, "__name__", repr(normalize))
    if normalize is normalizers.softmax:
        return softmax(fit, mask)
    if normalize is normalizers.sigmoid:
        return zero_masked(fit.graph.op("Sigmoid", fit), mask)
    if normalize is normalizers.none:
        return zero_masked(fit, mask)
    if normalize is normalizers.sum:
        fit = zero_masked(fit, mask)
        total = fit.sum(-1, keep=True)
        zero = fit.graph.op("Equal", total, 0.0)
        return zero.where(0.0, fit / zero.where(1.0, total))
    if normalize is normalizers.hard:
        return _hard(fit, mask)
    if normalize in (normalizers.sparsemax, normalizers.entmax15):
        if mask is None:
            return _sparse(fit, normalize is normalizers.entmax15)
        best = mask.where(fit, NOWHERE).max(-1, keep=True)
        return zero_masked(
            _sparse(_fill(fit, mask, best - 4.0), normalize is normalizers.entmax15), mask
        )
    if top_k := re.fullmatch(r"top_k\((\d+)\)", name):
        chosen = top_positions(fit if mask is None else mask.where(fit, NOWHERE), int(top_k[1]))
        return softmax(fit, chosen if mask is None else chosen & mask)
    raise RegardError(
        f"the normalizer {name} cannot be exported: only the normalizers built into regard can"
    )


def softmax(fit: Value, mask: Value | None = None) -> Value:
    """exp(s) / Σ exp(s) over the allowed keys; zeros in fully masked rows."""
    filled = fit if mask is None else _fill(fit, mask, NOWHERE)
    return zero_masked(fit.graph.op("Softmax", filled, axis=-1), mask)


def zero_masked(weights: Value, mask: Value | None) -> Value:
    """Zeros where the mask is False."""
    return weights if mask is None else mask.where(weights, 0.0)


def top_positions(fit: Value, number: int) -> Value:
    """True at the `number` best keys of each row."""
    graph = fit.graph
    count = graph.op("Min", graph.op("Shape", fit, start=-1), np.array([number]))
    _, best = graph.several("TopK", 2, fit, count, axis=-1)
    ones = graph.op("Expand", 1.0, graph.op("Shape", best))
    return graph.op("ScatterElements", fit * 0.0, best, ones, axis=-1).above(0.0)


def _fill(fit: Value, mask: Value, low: Value | float) -> Value:
    some = mask.to(FLOAT).max(-1, keep=True).above(0.0)
    return some.where(mask.where(fit, low), 0.0)


def _hard(fit: Value, mask: Value | None) -> Value:
    soft = softmax(fit, mask)
    best = fit.graph.op("ArgMax", soft, axis=-1, keepdims=1)
    here = fit.graph.op("Equal", _key_positions(fit), best)
    return zero_masked(here.to(FLOAT), mask)


def _key_positions(fit: Value) -> Value:
    """0, 1, … along the keys."""
    return fit.graph.range(0, fit.graph.op("Shape", fit, start=-1))


def _sparse(fit: Value, entmax: bool) -> Value:
    """max(0, s − τ), or max(0, s/2 − τ)² of entmax, with τ so that the weights sum to one."""
    graph = fit.graph
    fit = fit - fit.max(-1, keep=True)
    if entmax:
        fit = fit * 0.5
    size = graph.op("Shape", fit, start=-1)
    ranked, _ = graph.several("TopK", 2, fit, size, axis=-1)
    rank = (_key_positions(fit) + 1).to(FLOAT)
    total = graph.op("CumSum", ranked, -1)
    if entmax:
        mean = total / rank
        spread = graph.op("CumSum", ranked * ranked, -1) - mean * total
        threshold = mean - ((spread * -1.0 + 1.0) / rank).relu().sqrt()
        inside = threshold <= ranked
    else:
        threshold = (total - 1.0) / rank
        inside = threshold < ranked
    support = inside.to(INT64).sum(-1, keep=True)
    weights = (fit - graph.op("GatherElements", threshold, support - 1, axis=-1)).relu()
    return weights * weights if entmax else weights
