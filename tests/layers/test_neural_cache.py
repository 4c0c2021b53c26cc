"""The continuous cache beside a loop."""

import math

import pytest
import torch

from regard.layers.neural_cache import CachedStates, mix_cache, read_cache

BATCH, TIME, WIDTH, WORDS = 2, 7, 5, 4


def by_loop(states, words, size, sharpness):
    """[b, t, v]: probabilities of the words that followed similar states."""
    spread = torch.zeros(*words.shape, WORDS, dtype=torch.float64)
    for b in range(len(words)):
        for t in range(words.shape[1]):
            scores, nexts = [], []
            for i in range(max(0, t - size), t):
                cosine = torch.cosine_similarity(states[b, t], states[b, i], dim=0)
                scores.append(math.exp(sharpness * float(cosine)))
                nexts.append(int(words[b, i + 1]))
            for score, word in zip(scores, nexts, strict=True):
                spread[b, t, word] += score / sum(scores)
    return spread


@pytest.mark.parametrize("size", [1, 3, 50])
@pytest.mark.parametrize("pieces", [[TIME], [1] * TIME, [3, 1, 3]])
def test_the_cache_is_attention_to_what_was_read(size, pieces):
    torch.manual_seed(1)
    states = torch.randn(BATCH, TIME, WIDTH, dtype=torch.float64)
    words = torch.randint(WORDS, (BATCH, TIME))
    cache = CachedStates.empty(states[:, 0], size=size, weight=0.3, sharpness=4.0)
    parts, targets = [], []
    wanted = torch.randint(WORDS, (BATCH, TIME))
    sides = states.split(pieces, 1), words.split(pieces, 1), wanted.split(pieces, 1)
    for some, read, targeted in zip(*sides, strict=True):
        reading, cache = read_cache(cache, some, read)
        parts.append(reading.over(WORDS))
        targets.append(reading.of(targeted))
        assert cache.states.shape[1] == cache.words.shape[1] + 1 <= size + 1
    expected = by_loop(states, words, size, 4.0)
    torch.testing.assert_close(torch.cat(parts, 1), expected)
    own = expected.gather(2, wanted[:, :, None])[:, :, 0]
    torch.testing.assert_close(torch.cat(targets, 1), own)


def test_an_empty_cache_changes_nothing():
    states, words = torch.randn(1, 2, WIDTH), torch.tensor([[1, 2]])
    cache = CachedStates.empty(states[:, 0], size=5, weight=0.25, sharpness=1.0)
    reading, _ = read_cache(cache, states, words)
    given = torch.full((1, 2, WORDS), 1 / WORDS)
    mixed = mix_cache(given, reading.over(WORDS), reading, 0.25)
    assert torch.equal(mixed[0, 0], given[0, 0])
    expected = 0.75 / WORDS + 0.25 * torch.eye(WORDS)[2]
    torch.testing.assert_close(mixed[0, 1], expected)
