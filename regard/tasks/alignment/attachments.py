"""Further words of a counterpart: *ne* belongs to *not*, which is linked to *pas*.

The chains agree on links between one word and one. Of the words that they leave without a
counterpart, some come with a word of the other side nearly always, beside its counterpart, and
others come by themselves. Both are Poisson processes with a mark, the word, so that a word j
without counterpart belongs to word k of the other side with the probability

    rate(j, k) · offset(j - place of k's counterpart) / (Σₖ of the same + spontaneous rate of j),

where rates are per occurrence of k. They are learned by expectation maximization beside the chains
(as in Marsan & Lengliné, 2008, Extending Earthquakes' Reach Through Cascading).
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

REACH = 8
"""Largest distance, in words, between a counterpart and its further words."""
START_RATE, START_SPONTANEOUS = 1.0, 0.01
SPARSITY = 0.5
"""Taken off the count of each pair of words."""
LEAST_RATE = 0.2
"""Further words that come less often per occurrence are not linked, whatever their probability."""
LEAST_PROBABILITY = 0.9
"""That a word belongs to another one, for a link."""


class Attachments(NamedTuple):
    """To which keys the queries without counterpart belong."""

    weights: Float[Tensor, "b q k"]
    spontaneous: Float[Tensor, "b q"]
    """That a query comes by itself."""
    offsets: Int[Tensor, "b q k"]
    """The distance to the counterpart of each key, as a row of the table of offsets."""


def attach(
    rates: Float[Tensor, "b q k"],
    spontaneous: Float[Tensor, "b q"],
    offsets: Float[Tensor, " o"],
    linked: Float[Tensor, "b q k"],
    empty: Float[Tensor, "b q"],
) -> Attachments:
    """Divide the probability of no counterpart among the keys that may have further words.

    Args:
        rates: of each query word per occurrence of each key.
        spontaneous: the rate of each query word by itself, per position.
        offsets: the probability of each distance.
        linked: the links that both directions agree on.
        empty: the probability that a query has no counterpart.
    """
    places = torch.arange(linked.shape[1], device=linked.device)
    mass = linked.sum(1)
    counterpart = (linked * places[:, None]).sum(1) / mass.clamp(min=1e-9)
    distance = (places[:, None] - counterpart[:, None]).round()
    near = (distance.abs() <= REACH) & (mass > 0.5)[:, None]
    rows = (distance.clamp(-REACH, REACH) + REACH).long()
    intensity = rates * offsets[rows] * near
    total = (intensity.sum(-1) + spontaneous).clamp(min=1e-12)
    by_itself = spontaneous / total * empty
    return Attachments(intensity * (empty / total)[..., None], by_itself, rows)
