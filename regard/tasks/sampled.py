"""The sum of a softmax over thousands of words, estimated from a few of them in training."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.data.streams import Tokens

LARGE = 16_000
"""Words from which on a tenth of them are enough, unless said."""
PIECE = 1 << 20
"""Tokens that are counted together."""


class Drawn(NamedTuple):
    """Some words, and what stands in for the rest."""

    words: Int[Tensor, "n"]
    """Padding, the words that are right somewhere, then those that were drawn."""
    targets: Int[Tensor, "b t"]
    """The right words as places in `words`; 0 is padding."""
    correction: Float[Tensor, "n"]
    """What is added to the logits of `words`."""


@dataclass(frozen=True)
class Draw:
    """Each word is drawn with its own chance, the frequent ones nearly always.

    Σ_v e^x_v ≈ Σ_right e^x_v + Σ_drawn e^x_v / p_v, in which the right words of the batch are
    counted in full and every other one by the chance that it is there; its mean is the sum itself.

    Bengio and Senécal, 2008, https://doi.org/10.1109/TNN.2007.912312;
    Jean et al., 2015, https://arxiv.org/abs/1412.2007
    """

    chances: Float[Tensor, "v"]

    @classmethod
    def by_frequency(cls, counts: np.ndarray, size: int) -> "Draw":
        """Chances 1 - e^-τq of words of frequency q, so that `size` are drawn on average."""
        share = (counts + 0.5) / (counts + 0.5).sum()
        low, high = 0.0, size / float(share.min())
        for _ in range(100):
            middle = (low + high) / 2
            if -np.expm1(-middle * share).sum() < size:
                low = middle
            else:
                high = middle
        return cls(torch.from_numpy(-np.expm1(-high * share)).float())

    def __call__(self, targets: Int[Tensor, "b t"]) -> Drawn:
        """The words to compute for these targets."""
        right = targets.new_zeros(len(self.chances), dtype=torch.bool)
        right[targets.flatten()] = True
        right[0] = True  # padding keeps its number
        drawn = (torch.rand(self.chances.shape) < self.chances) & ~right
        own, others = right.nonzero().squeeze(1), drawn.nonzero().squeeze(1)
        places = targets.new_zeros(len(self.chances))
        places[own] = torch.arange(len(own))
        correction = torch.cat([torch.zeros(len(own)), -self.chances[others].log()])
        return Drawn(torch.cat([own, others]), places[targets], correction)


def frequencies(tokens: Tokens, words: int) -> np.ndarray:
    """How often each word stands in a text."""
    counts = np.zeros(words, dtype=np.int64)
    for first in range(0, len(tokens), PIECE):
        counts += np.bincount(tokens[first : first + PIECE], minlength=words)
    return counts
