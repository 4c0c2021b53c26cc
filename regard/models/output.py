"""What a model gives: numbers to predict from, and where it looked."""

from dataclasses import dataclass, field

from jaxtyping import Float
from torch import Tensor

Weights = dict[str, Tensor]
"""Attention weights by name, each [b, h, q, k]; what has no heads has one."""


@dataclass(frozen=True)
class Output:
    """Logits, and the weights of every attention by name when they were asked for."""

    logits: Float[Tensor, "*n v"]
    weights: Weights = field(default_factory=dict)
    balance: Float[Tensor, ""] | None = None
    """The load-balancing loss of experts, where there are any."""


def total(parts: list[Tensor | None]) -> Tensor | None:
    """The sum of the losses that are there."""
    there = [part for part in parts if part is not None]
    return sum(there[1:], there[0]) if there else None
