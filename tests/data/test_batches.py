from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.data.batches import (
    ordered_batches,
    pad,
    pad_vectors,
    padding_share,
    shard,
    shuffled_batches,
)
from regard.data.streams import count_chunks, stream_chunks

lengths_of = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=60)


@given(lengths_of, st.integers(1, 200), st.integers(0, 5), st.booleans())
def test_every_example_once_and_within_the_budget(
    sizes: list[tuple[int, int]], budget: int, epoch: int, two: bool
) -> None:
    lengths = np.array(sizes, dtype=np.int32)[:, : 2 if two else 1]
    lengths = lengths if two else lengths[:, 0]
    for batches in (shuffled_batches(lengths, budget, 7, epoch), ordered_batches(lengths, budget)):
        assert sorted(np.concatenate(batches).tolist()) == list(range(len(sizes)))
        for batch in batches:
            assert len(batch) == 1 or int(lengths[batch].max()) * len(batch) <= budget


def test_seed_and_epoch_decide_alone() -> None:
    lengths = np.random.default_rng(0).integers(1, 50, (500, 2))
    plans = [
        [b.tolist() for b in shuffled_batches(lengths, 300, seed, epoch)]
        for seed, epoch in ((1, 0), (1, 0), (1, 1), (2, 0))
    ]
    assert plans[0] == plans[1]
    assert plans[0] != plans[2] != plans[3] != plans[0]
    torch.manual_seed(5)
    np.random.default_rng(9).random()
    assert [b.tolist() for b in shuffled_batches(lengths, 300, 1, 1)][3:] == plans[2][3:]
    fixed = ordered_batches(lengths, 300)
    assert [int(lengths[b, 1].max()) for b in fixed] == sorted(
        int(lengths[b, 1].max()) for b in fixed
    )


def test_little_padding_where_sides_are_alike() -> None:
    draw = np.random.default_rng(0)
    source = draw.poisson(14, 20_000) + 2
    target = np.maximum(source + draw.integers(-3, 4, 20_000), 1)
    lengths = np.stack([source, target], 1)
    batches = shuffled_batches(lengths, 4096, 0, 0)
    by_hand = [lengths[b].max(0).sum() * len(b) for b in batches]
    assert padding_share(lengths, batches) == pytest.approx(1 - lengths.sum() / sum(by_hand))
    assert padding_share(lengths, batches) < 0.07
    whole = [np.arange(20_000)[i : i + 200] for i in range(0, 20_000, 200)]
    assert padding_share(lengths, whole) > 0.3


@given(st.integers(0, 20), st.integers(1, 7))
def test_shards_cover_a_batch_evenly(count: int, world: int) -> None:
    parts = [shard(np.arange(count), rank, world) for rank in range(world)]
    assert sorted(np.concatenate(parts).tolist()) == list(range(count))
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    with pytest.raises(ValueError, match="rank"):
        shard(np.arange(count), world, world)


def test_padding_of_tokens_and_of_vectors() -> None:
    rows = [np.array([3, 1, 4], dtype=np.int32), np.array([], dtype=np.int32), np.array([1])]
    tokens, lengths = pad(rows, value=9)
    assert tokens.tolist() == [[3, 1, 4], [9, 9, 9], [1, 9, 9]]
    assert (tokens.dtype, lengths.tolist()) == (torch.int64, [3, 0, 1])
    assert pad([])[0].shape == (0, 0)
    frames = [np.ones((2, 5), np.float32), np.ones((3, 5), np.float32)]
    vectors, lengths = pad_vectors(frames)
    assert vectors.shape == (2, 3, 5)
    assert (vectors.sum().item(), lengths.tolist()) == (25.0, [2, 3])
    assert vectors[0, 2].abs().sum() == 0


@given(st.integers(0, 60), st.integers(1, 9), st.integers(1, 11))
def test_every_token_is_predicted_once_from_the_one_before(
    count: int, batch: int, steps: int
) -> None:
    ids = np.arange(100, 100 + count, dtype=np.int32)
    found = list(stream_chunks(ids, batch, steps))
    assert len(found) == count_chunks(ids, batch, steps)
    targets = [t for chunk in found for t in chunk.targets.flatten().tolist() if t]
    assert sorted(targets) == list(range(101, 100 + count))
    for chunk in found:
        assert chunk.tokens.shape == chunk.targets.shape
        assert chunk.tokens.shape[1] <= steps
        real = chunk.targets > 0
        assert torch.equal(chunk.targets[real], chunk.tokens[real] + 1)
    for before, after in pairwise(found):
        goes_on = after.targets[:, 0] > 0
        assert torch.equal(after.tokens[goes_on, 0], before.targets[goes_on, -1])


def test_useless_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="expected at least 1 of each"):
        list(stream_chunks(np.arange(5), 0, 3))
    with pytest.raises(ValueError, match="budget of 0"):
        ordered_batches(np.array([1, 2]), 0)
