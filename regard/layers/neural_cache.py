"""A continuous cache: attention of a language model to the past states of the text being read.

Grave, Joulin and Usunier, 2017, https://arxiv.org/abs/1612.04426
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention import attend, masks


class CachedStates(NamedTuple):
    """States of the text being read with the word that followed each, and how they are used.

    The last state has no next word yet, so that there is one word fewer than states.
    """

    states: Float[Tensor, "b n w"]
    """Of length 1, so that their products are cosines."""
    words: Int[Tensor, "b m"]
    size: int
    """Number of states that are attended to."""
    weight: float
    """Weight of the words that the cache suggests, beside those of the network."""
    sharpness: float
    """Factor of the cosines before the softmax."""

    @classmethod
    def empty(
        cls, like: Float[Tensor, "b w"], *, size: int, weight: float, sharpness: float
    ) -> "CachedStates":
        """A cache of no states, with the batch, width and device of a tensor."""
        none = torch.zeros(len(like), 0, dtype=torch.long, device=like.device)
        return cls(like[:, None][:, :0], none, size, weight, sharpness)


class CacheReading(NamedTuple):
    """What a cache says at each position: the words there are, and the weight of each."""

    words: Int[Tensor, "b m"]
    weights: Float[Tensor, "b t m"]
    """Zeros in rows before which nothing was read."""

    def of(self, targets: Int[Tensor, "b t"]) -> Float[Tensor, "b t"]:
        """The probability of each target: the weight of the states that it followed."""
        return (self.weights * (self.words[:, None] == targets[:, :, None])).sum(-1)

    def over(self, vocabulary: int) -> Float[Tensor, "b t v"]:
        """The probability of every word."""
        spread = self.weights.new_zeros(*self.weights.shape[:2], vocabulary)
        return spread.scatter_add_(2, self.words[:, None].expand_as(self.weights), self.weights)


def read_cache(
    cache: CachedStates, states: Float[Tensor, "b t w"], words: Int[Tensor, "b t"]
) -> tuple[CacheReading, CachedStates]:
    """Attend from these states to earlier ones; the cache with them.

    weights_ti = softmax_i(sharpness · cos(h_t, h_i)) over the states i whose next word was read by
    t. The words are those that led to the states.
    """
    queries = torch.nn.functional.normalize(states, dim=-1)
    keys = torch.cat([cache.states, queries], 1)
    # every state but the newest has a next word; the first word of a text follows no state
    known = torch.cat([cache.words, words], 1)
    known = known[:, known.shape[1] - (keys.shape[1] - 1) :]
    mask = masks.past() & masks.window(cache.size + 1)
    attended = attend(queries * cache.sharpness, keys, keys, mask, score="dot", need_weights=True)
    assert attended.weights is not None
    reading = CacheReading(known, attended.weights[:, :, : known.shape[1]])
    kept = cache._replace(
        states=keys[:, -(cache.size + 1) :], words=known[:, max(0, known.shape[1] - cache.size) :]
    )
    return reading, kept


def mix_cache(
    probabilities: Float[Tensor, "b t *v"],
    suggested: Float[Tensor, "b t *v"],
    reading: CacheReading,
    weight: float,
) -> Float[Tensor, "b t *v"]:
    """(1 − weight) · p + weight · p of the cache; p alone where the cache is empty."""
    filled = (reading.weights.sum(-1) > 0) * weight
    share = filled.view(*filled.shape, *[1] * (probabilities.ndim - 2))
    return (1 - share) * probabilities + share * suggested
