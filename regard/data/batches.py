"""Batches of examples of similar length within a token budget, decided by seed and epoch alone."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int, Int64
from torch import Tensor


def shuffled_batches(
    lengths: Int[np.ndarray, "n"] | Int[np.ndarray, "n sides"], budget: int, seed: int, epoch: int
) -> list[np.ndarray]:
    """The batches of one epoch, as arrays of example numbers, in random order.

    Examples are sorted by length, ties in random order. A batch ends where its padded size would
    exceed `budget` tokens on its longest side; one example over the budget is a batch by itself.
    The result depends on the arguments alone: a run resumed at batch k takes
    `shuffled_batches(...)[k:]`.
    """
    random = np.random.default_rng([seed, epoch])
    order = _sort_by_length(lengths, random.permutation(len(lengths)))
    batches = _split_at_budget(order, _columns(lengths), budget)
    return [batches[i] for i in random.permutation(len(batches))]


def ordered_batches(
    lengths: Int[np.ndarray, "n"] | Int[np.ndarray, "n sides"], budget: int
) -> list[np.ndarray]:
    """Batches in one fixed order, shortest examples first: for validation and prediction."""
    order = _sort_by_length(lengths, np.arange(len(lengths)))
    return _split_at_budget(order, _columns(lengths), budget)


def shard(batch: np.ndarray, rank: int, world: int) -> np.ndarray:
    """The examples of a global batch that process `rank` of `world` computes.

    The shards are disjoint, cover the batch and differ in size by at most one example; a shard is
    empty if there are fewer examples than processes.
    """
    if not 0 <= rank < world:
        raise ValueError(f"rank {rank}: expected 0 to {world - 1}")
    return batch[rank::world]


def padding_share(
    lengths: Int[np.ndarray, "n"] | Int[np.ndarray, "n sides"], batches: Sequence[np.ndarray]
) -> float:
    """The share of padded positions over all batches and sides."""
    columns = _columns(lengths)
    filled = sum(int(columns[batch].sum()) for batch in batches)
    positions = sum(int(columns[batch].max(0).sum()) * len(batch) for batch in batches)
    return 1 - filled / positions if positions else 0.0


def pad(
    rows: Sequence[np.ndarray], value: int = 0
) -> tuple[Int64[Tensor, "b t"], Int64[Tensor, "b"]]:
    """Rows of token ids as one tensor, padded with `value`, and the length of each.

    >>> tokens, lengths = pad([np.array([5, 6, 7]), np.array([8])])
    >>> tokens.tolist(), lengths.tolist()
    ([[5, 6, 7], [8, 0, 0]], [3, 1])
    """
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    filled = np.full((len(rows), int(lengths.max(initial=0))), value, dtype=np.int64)
    for i, row in enumerate(rows):
        filled[i, : len(row)] = row
    return torch.from_numpy(filled), torch.from_numpy(lengths)


def pad_vectors(
    rows: Sequence[np.ndarray],
) -> tuple[Float[Tensor, "b t d"], Int64[Tensor, "b"]]:
    """Sequences of vectors [t, d] as one tensor, padded with zeros, and the length of each."""
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    width = rows[0].shape[1] if len(rows) else 0
    filled = np.zeros((len(rows), int(lengths.max(initial=0)), width), dtype=np.float32)
    for i, row in enumerate(rows):
        filled[i, : len(row)] = row
    return torch.from_numpy(filled), torch.from_numpy(lengths)


def _columns(lengths: np.ndarray) -> np.ndarray:
    return lengths[:, None] if lengths.ndim == 1 else lengths


def _sort_by_length(lengths: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Example numbers by the length of their last side, ties in the given order.

    Among examples whose last sides are equally long, the other side ascends if that length is even
    and descends if it is odd. So the other side does not jump back from longest to shortest where
    the last side grows by one, and neighbours have similar lengths on both sides.
    """
    columns = _columns(lengths)[order].astype(np.int64)
    last = columns[:, -1]
    keys = [last]
    for side in range(columns.shape[1] - 2, -1, -1):
        keys.append(np.where(keys[0] % 2 == 0, columns[:, side], -columns[:, side]))
    return order[np.lexsort(keys[::-1])]


def _split_at_budget(order: np.ndarray, columns: np.ndarray, budget: int) -> list[np.ndarray]:
    """Consecutive examples, as many as keep the padded size of every side within the budget."""
    if budget < 1:
        raise ValueError(f"a budget of {budget} tokens: expected 1 or more")
    batches: list[np.ndarray] = []
    start, widest = 0, columns.max(1) if columns.size else columns
    while start < len(order):
        # No batch has more examples than if all were as short as its first one. Within that window
        # the padded size, longest so far times count, never shrinks: a binary search finds its end.
        most = max(budget // max(int(widest[order[start]]), 1), 1)
        window = widest[order[start : start + most]]
        positions = np.maximum.accumulate(window) * np.arange(1, len(window) + 1)
        count = max(int(np.searchsorted(positions, budget, "right")), 1)
        batches.append(order[start : start + count])
        start += count
    return batches
