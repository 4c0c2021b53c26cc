"""From the attention weights of a model to one row of weights per output, over the input tokens.

`direct` is what the attention next to the output gives, averaged over heads and layers. `rollout`
follows attention down a stack: each layer passes on half of its input and half of what it read,
R = Π (A + I) / 2. Abnar and Zuidema, 2020, https://arxiv.org/abs/2005.00928
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.models.output import Weights


class AttentionFlow(NamedTuple):
    """Weights of each output over the tokens; None where the model has no such attention."""

    direct: Float[Tensor, "o t"] | None
    rollout: Float[Tensor, "o t"] | None


Flow = Callable[[Weights, Sequence[int], int], AttentionFlow]
"""(weights of one text, positions of the outputs, number of tokens) → attention of each output."""


def rollout(layers: Sequence[Float[Tensor, "t t"]]) -> Float[Tensor, "t t"]:
    """Attention followed through layers, from the first to the last.

    >>> rollout([torch.tensor([[1.0, 0.0], [1.0, 0.0]])])
    tensor([[1.0000, 0.0000],
            [0.5000, 0.5000]])
    """
    total = torch.eye(layers[0].shape[-1]).to(layers[0])
    for layer in layers:
        total = (total + layer @ total) / 2
    return total


def flow_to_pooling(weights: Weights, positions: Sequence[int], tokens: int) -> AttentionFlow:
    """The attention of a pooling layer over an encoder."""
    pooled = _mean_of_heads(weights["pooling"]).expand(len(positions), -1)
    pooled = pooled / pooled.sum(-1, keepdim=True).clamp(min=1e-12)
    stack = layers_of(weights, "self", "encoder.") + layers_of(weights, "self", "pooling.")
    rolled_out = pooled @ rollout(stack) if stack else None
    uniform = bool((pooled - pooled.mean()).abs().max() < 1e-6)
    if uniform and stack:  # a mean over words that attended to others: theirs is the attention
        return AttentionFlow(pooled @ torch.stack(stack).mean(0), rolled_out)
    return AttentionFlow(pooled, rolled_out)


def flow_to_source(weights: Weights, positions: Sequence[int], tokens: int) -> AttentionFlow:
    """The attention of each target token of an encoder–decoder to the source.

    The rollout of a decoder follows two streams, what came from the target and what came from the
    source; the second is returned, so that its rows need not sum to one.
    """
    crossing = layers_of(weights, "source")
    if not crossing:
        return AttentionFlow(None, None)
    rows = torch.tensor(list(positions), device=crossing[0].device)
    below = layers_of(weights, "self", "encoder.")
    own = layers_of(weights, "self", "decoder.")
    read = rollout(below) if below else torch.eye(tokens).to(crossing[0])
    direct = torch.stack(crossing).mean(0)[rows]
    if not own:
        return AttentionFlow(direct, crossing[0][rows] @ read if below else None)
    source = torch.zeros_like(crossing[0])
    for to_target, to_source in zip(own, crossing, strict=True):
        source = (source + to_target @ source) / 2
        source = (source + to_source @ read) / 2
    return AttentionFlow(direct, source[rows])


def flow_to_past(weights: Weights, positions: Sequence[int], tokens: int) -> AttentionFlow:
    """The attention of each token of a language model to those before it."""
    return _within(layers_of(weights, "past") or layers_of(weights, "self"), positions)


def flow_within(weights: Weights, positions: Sequence[int], tokens: int) -> AttentionFlow:
    """The attention of each token of an encoder to all tokens."""
    return _within(layers_of(weights, "self"), positions)


def flow_from_first(weights: Weights, positions: Sequence[int], tokens: int) -> AttentionFlow:
    """The attention of the first token of a pretrained encoder, which stands for the text.

    What it attends to among the tokens around the text is left out, so that rows need not sum to
    one.
    """
    flow = _within(layers_of(weights, "self"), [0] * len(positions))
    return flow_of_tokens(flow, tokens)


def flow_of_tokens(flow: AttentionFlow, tokens: int) -> AttentionFlow:
    """Attention to the tokens of a text, without the one before it and the one after it."""
    direct, rolled_out = (None if part is None else part[:, 1 : tokens + 1] for part in flow)
    return AttentionFlow(direct, rolled_out)


def layers_of(weights: Weights, part: str, prefix: str = "") -> list[Float[Tensor, "q k"]]:
    """The mean over heads of each layer's attention of one kind, in the order of the layers."""
    return [
        _mean_of_heads(tensor)
        for name, tensor in weights.items()
        if name.split(".")[-1] == part and name.startswith(prefix)
    ]


def _within(layers: Sequence[Tensor], positions: Sequence[int]) -> AttentionFlow:
    if not layers:
        return AttentionFlow(None, None)
    rows = torch.tensor(list(positions), device=layers[0].device)
    rolled_out = rollout(layers)[rows] if len(layers) > 1 else None
    return AttentionFlow(torch.stack(list(layers)).mean(0)[rows], rolled_out)


def _mean_of_heads(weights: Float[Tensor, "1 h q k"]) -> Float[Tensor, "q k"]:
    return weights[0].mean(0)
