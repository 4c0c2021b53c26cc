"""The output of a model: logits to predict from, and attention weights by name."""

from dataclasses import dataclass, field

from jaxtyping import Float
from torch import Tensor

Weights = dict[str, Tensor]
"""Attention weights by name, each [b, h, q, k]; attention without heads counts as one head."""


@dataclass(frozen=True)
class Output:
    """Logits, and the weights of every attention by name when they were requested."""

    logits: Float[Tensor, "*n v"]
    weights: Weights = field(default_factory=dict)
    balance: Float[Tensor, ""] | None = None
    """The load-balancing loss of experts, where there are any."""


def sum_losses(losses: list[Tensor | None]) -> Tensor | None:
    """The sum of those losses that are not None."""
    present = [loss for loss in losses if loss is not None]
    return sum(present[1:], present[0]) if present else None
