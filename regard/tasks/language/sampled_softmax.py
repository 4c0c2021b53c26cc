"""Sampled softmax: the sum over a large vocabulary, estimated from a sample in training."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.data.streams import Tokens

LARGE = 16_000
"""Vocabulary size from which on a tenth of the words is sampled by default."""
COUNT_CHUNK = 1 << 20
"""Tokens that are counted in one piece."""


class WordSample(NamedTuple):
    """Sampled words, and the correction for the rest."""

    words: Int[Tensor, "n"]
    """Padding, the targets of the batch, then the sampled words."""
    targets: Int[Tensor, "b t"]
    """The targets as positions in `words`; 0 is padding."""
    correction: Float[Tensor, "n"]
    """Added to the logits of `words`."""


@dataclass(frozen=True)
class WordSampler:
    """Samples each word with a probability of its own, frequent ones nearly always.

    Σ_v e^x_v ≈ Σ_targets e^x_v + Σ_sampled e^x_v / p_v: the targets of the batch count in full,
    every other word by the inverse of its probability, so that the estimate is unbiased.

    Bengio and Senécal, 2008, https://doi.org/10.1109/TNN.2007.912312;
    Jean et al., 2015, https://arxiv.org/abs/1412.2007
    """

    probabilities: Float[Tensor, "v"]

    @classmethod
    def by_frequency(cls, counts: np.ndarray, size: int) -> "WordSampler":
        """Probabilities 1 - e^-τq for words of frequency q; on average `size` are sampled."""
        share = (counts + 0.5) / (counts + 0.5).sum()
        low, high = 0.0, size / float(share.min())
        for _ in range(100):
            middle = (low + high) / 2
            if -np.expm1(-middle * share).sum() < size:
                low = middle
            else:
                high = middle
        return cls(torch.from_numpy(-np.expm1(-high * share)).float())

    def __call__(self, targets: Int[Tensor, "b t"]) -> WordSample:
        """The words whose logits are computed for these targets."""
        is_target = targets.new_zeros(len(self.probabilities), dtype=torch.bool)
        is_target[targets.flatten()] = True
        is_target[0] = True  # padding keeps its number
        probabilities = self.probabilities.to(targets.device)
        sampled = (torch.rand_like(probabilities) < probabilities) & ~is_target
        own, others = is_target.nonzero().squeeze(1), sampled.nonzero().squeeze(1)
        positions = targets.new_zeros(len(self.probabilities))
        positions[own] = torch.arange(len(own), device=own.device)
        correction = torch.cat([probabilities.new_zeros(len(own)), -probabilities[others].log()])
        return WordSample(torch.cat([own, others]), positions[targets], correction)


def count_words(tokens: Tokens, words: int) -> np.ndarray:
    """How often each word occurs in a text."""
    counts = np.zeros(words, dtype=np.int64)
    for first in range(0, len(tokens), COUNT_CHUNK):
        counts += np.bincount(tokens[first : first + COUNT_CHUNK], minlength=words)
    return counts
