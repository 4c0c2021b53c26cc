"""Chain-structured attention: the exact posterior of a hidden Markov model over positions.

Plain attention normalizes each row alone. Here the row of one query depends on those of its
neighbours: queries come in order, each attends to one key or to none, and moving from one key to
another has a weight. With emissions eⱼᵢ,

    p(a | e) ∝ Πⱼ p(aⱼ | aⱼ₋₁) · e_{j, aⱼ}    and    attention(j, i) = p(aⱼ = i | e),

which the forward–backward algorithm computes exactly. A query without a key remembers where the
previous one was, so that the next move starts there. Vogel et al. (1996), HMM-Based Word Alignment,
https://aclanthology.org/C96-2141; the empty key: Och & Ney (2003), https://aclanthology.org/J03-1002;
as attention: Kim et al. (2017), Structured Attention Networks, https://arxiv.org/abs/1702.00887.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor


class ChainPosteriors(NamedTuple):
    """The posteriors of a batch; zeros in padding."""

    weights: Float[Tensor, "b q k"]
    """How probable it is that a query attends to a key."""
    empty: Float[Tensor, "b q"]
    """How probable it is that it attends to none."""
    moves: Float[Tensor, "k k"]
    """Expected number of moves from one key to another, summed over the batch."""
    log_likelihood: Float[Tensor, " b"]


def chain_attention(
    emissions: Float[Tensor, "b q k"],
    empty_emissions: Float[Tensor, "b q"],
    moves: Float[Tensor, "k k"],
    starts: Float[Tensor, " k"],
    query_lengths: Int[Tensor, " b"],
    key_lengths: Int[Tensor, " b"],
    empty_probability: float,
) -> ChainPosteriors:
    """Forward–backward over a batch, scaled at each step; padding has no influence.

    Args:
        emissions: e(query | key), at least 0.
        empty_emissions: e(query | no key).
        moves: weights of moves from key to key (row to column), normalized over the keys of each
            sequence.
        starts: weights of the first key, normalized in the same way.
        query_lengths: number of queries of each sequence.
        key_lengths: number of keys of each sequence.
        empty_probability: that a query attends to no key.
    """
    queries, keys = emissions.shape[1:]
    real_keys = (torch.arange(keys, device=emissions.device) < key_lengths[:, None]).to(emissions)
    real_queries = torch.arange(queries, device=emissions.device)[:, None] < query_lengths
    tiny = torch.finfo(emissions.dtype).tiny
    # The normalizer of a move depends on the length, its weight does not: with the normalizer
    # apart, a step of the whole batch is one matrix product.
    shares = real_keys / (real_keys @ moves.T).clamp(min=tiny)
    first = starts * real_keys
    first = first / first.sum(-1, keepdim=True).clamp(min=tiny)
    emitted = ((1 - empty_probability) * emissions * real_keys[:, None]).transpose(0, 1)
    nothing = (empty_probability * empty_emissions).transpose(0, 1)[..., None]

    attended: list[Tensor] = []
    places: list[Tensor] = []
    scales: list[Tensor] = []
    for q in range(queries):
        if q == 0:
            word, place = first * emitted[0], first
        else:
            place = places[-1]
            word = ((place * shares) @ moves) * emitted[q]
        place = torch.addcmul(word, place, nothing[q])
        scale = place.sum(-1, keepdim=True).clamp(min=tiny)
        attended.append(word / scale)
        places.append(place / scale)
        scales.append(scale)

    backward = torch.ones_like(first)
    futures, entered = [backward], []
    for q in range(queries - 1, 0, -1):
        entering = emitted[q] * backward / scales[q]
        before = (entering @ moves.T) * shares + backward * nothing[q] / scales[q]
        backward = torch.where(real_queries[q, :, None], before, 1.0)
        futures.append(backward)
        entered.append(entering)
    future = torch.stack(futures[::-1]) * real_queries[..., None]
    weights = torch.stack(attended) * future
    somewhere = torch.stack(places) * future
    expected = torch.zeros_like(moves)
    if entered:
        left = torch.stack(places[:-1]) * shares * real_queries[1:, :, None]
        right = torch.stack(entered[::-1]) * real_queries[1:, :, None]
        expected = moves * (left.flatten(0, 1).T @ right.flatten(0, 1))
    return ChainPosteriors(
        weights=weights.transpose(0, 1),
        empty=(somewhere.sum(-1) - weights.sum(-1)).clamp(min=0).T,
        moves=expected,
        log_likelihood=(torch.stack(scales)[..., 0].log() * real_queries).sum(0),
    )
