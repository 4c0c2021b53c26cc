"""Where the query, the keys and the values of one row come from: x W + b, with a model's own W.

A multi-head attention projects all three. Elsewhere the score may project the query (bilinear) or
the query and the keys (additive), and the values are the vectors themselves.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention import scores
from regard.layers import MultiHead

SAME_VALUES = 1e-5
"""How far apart two computations of the same value vector may be."""


class Projection(NamedTuple):
    """x → x W + b."""

    weight: Float[Tensor, "w d"]
    bias: Float[Tensor, "d"] | None = None


class Projections(NamedTuple):
    """The vectors that one row is computed from, and how they are projected."""

    query_input: Float[Tensor, "w"]
    key_inputs: Float[Tensor, "k e"]
    query: Projection | None
    """None where the query is the vector itself, as for `key` and `value`."""
    key: Projection | None
    value: Projection | None
    rotated: bool = False
    """Whether query and keys are then rotated by their position."""


class Written(NamedTuple):
    """What one call of a multi-head attention has added to its keys and values."""

    inputs: Float[Tensor, "n e"]
    values: Float[Tensor, "n h v"]


def score_projections(
    score: scores.Score, query: Float[Tensor, "w"], keys: Float[Tensor, "k e"]
) -> Projections | None:
    """Those of a score between vectors; None where it projects nothing, or not by a matrix."""
    if isinstance(score, scores.PreparedAdditive):
        score = score.score
    if isinstance(score, scores.Additive):
        return Projections(query, keys, _linear(score.query), _linear(score.key), None)
    if isinstance(score, scores.Bilinear):
        return Projections(query, keys, Projection(score.weight), None, None)
    return None


def head_projections(
    module: MultiHead,
    score: scores.Score,
    head: int,
    query_input: Float[Tensor, "w"],
    values: Float[Tensor, "k v"],
    written: Sequence[Written],
) -> Projections | None:
    """Those of one head, for keys that were written in any call; None where that is not known.

    Args:
        module: the attention.
        score: its score; one that projects queries and keys once more is not shown.
        head: which of its heads.
        query_input: the vector that the query is projected from.
        values: the value of every key, by which its input is found among `written`.
        written: what the calls so far have added.
    """
    if not isinstance(score, scores.ScaledDot):
        return None
    of_keys = head // (module.heads // module.key_heads)
    inputs = torch.cat([call.inputs for call in written])
    known = torch.cat([call.values for call in written])[:, of_keys]
    distance, place = (values[:, None] - known).abs().amax(-1).min(-1)
    if bool((distance > SAME_VALUES).any()):
        return None
    return Projections(
        query_input,
        inputs[place],
        _linear(module.query, head, module.heads),
        _linear(module.key, of_keys, module.key_heads),
        _linear(module.value, of_keys, module.key_heads),
        module.positions == "rotary",
    )


def _linear(layer: nn.Linear, head: int = 0, heads: int = 1) -> Projection:
    """The part of a linear layer that makes the vectors of one head."""
    weight = layer.weight.chunk(heads, 0)[head].mT
    return Projection(weight, None if layer.bias is None else layer.bias.chunk(heads)[head])
