"""How far outputs reach: from attention weights by name to one row of weights an output.

`looked` is what the attentions next to the output say, averaged over heads and layers; `rolled`
follows attention down a stack: each layer passes on half of what it had and half of what it read,
R = Π (A + I) / 2. Abnar and Zuidema, 2020, https://arxiv.org/abs/2005.00928
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.models.output import Weights


class Reached(NamedTuple):
    """Rows of weights over the tokens, an output each; None where there is no such attention."""

    looked: Float[Tensor, "o t"] | None
    rolled: Float[Tensor, "o t"] | None


Reach = Callable[[Weights, Sequence[int], int], Reached]
"""From the weights of one text, the places of outputs and the number of tokens."""


def rollout(layers: Sequence[Float[Tensor, "t t"]]) -> Float[Tensor, "t t"]:
    """Attention followed through layers, from the first to the last.

    >>> rollout([torch.tensor([[1.0, 0.0], [1.0, 0.0]])])
    tensor([[1.0000, 0.0000],
            [0.5000, 0.5000]])
    """
    total = torch.eye(layers[0].shape[-1], dtype=layers[0].dtype)
    for layer in layers:
        total = (total + layer @ total) / 2
    return total


def reach_pooled(weights: Weights, places: Sequence[int], tokens: int) -> Reached:
    """Of a classifier: its pooling, on what stands below it."""
    pooled = _mean(weights["pooling"]).expand(len(places), -1)
    pooled = pooled / pooled.sum(-1, keepdim=True).clamp(min=1e-12)
    stack = _layers(weights, "self", "encoder.") + _layers(weights, "self", "pooling.")
    rolled = pooled @ rollout(stack) if stack else None
    alike = bool((pooled - pooled.mean()).abs().max() < 1e-6)
    if alike and stack:  # a mean over words that looked at others
        return Reached(pooled @ torch.stack(stack).mean(0), rolled)
    return Reached(pooled, rolled)


def reach_over(weights: Weights, places: Sequence[int], tokens: int) -> Reached:
    """Of a translator: from each word of the target to the source.

    The rollout of a decoder follows two streams, what came from the target and what came from the
    source; what is returned is the second, so that its rows need not sum to one.
    """
    crossing = _layers(weights, "source")
    if not crossing:
        return Reached(None, None)
    rows = torch.tensor(list(places))
    below = _layers(weights, "self", "encoder.")
    own = _layers(weights, "self", "decoder.")
    read = rollout(below) if below else torch.eye(tokens, dtype=crossing[0].dtype)
    looked = torch.stack(crossing).mean(0)[rows]
    if not own:
        return Reached(looked, crossing[0][rows] @ read if below else None)
    source = torch.zeros_like(crossing[0])
    for self_look, look in zip(own, crossing, strict=True):
        source = (source + self_look @ source) / 2
        source = (source + look @ read) / 2
    return Reached(looked, source[rows])


def reach_back(weights: Weights, places: Sequence[int], tokens: int) -> Reached:
    """Of a language model: from each token to those before it."""
    return _within(_layers(weights, "past") or _layers(weights, "self"), places)


def reach_of_tags(weights: Weights, places: Sequence[int], tokens: int) -> Reached:
    """Of a tagger: from each word to all words."""
    return _within(_layers(weights, "self"), places)


def _within(layers: Sequence[Tensor], places: Sequence[int]) -> Reached:
    if not layers:
        return Reached(None, None)
    rows = torch.tensor(list(places))
    rolled = rollout(layers)[rows] if len(layers) > 1 else None
    return Reached(torch.stack(list(layers)).mean(0)[rows], rolled)


def _layers(weights: Weights, part: str, start: str = "") -> list[Tensor]:
    """The heads' mean of each layer, [q, k], in their order."""
    return [
        _mean(look)
        for name, look in weights.items()
        if name.split(".")[-1] == part and name.startswith(start)
    ]


def _mean(look: Float[Tensor, "1 h q k"]) -> Float[Tensor, "q k"]:
    return look[0].mean(0)
