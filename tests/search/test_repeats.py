"""Searches that write no sequence twice, against all sequences there are."""

from itertools import product

import pytest
import torch

from regard.search import RepeatState, beam, forbid_repeats, greedy, sample

VOCABULARY, EOS, BOS = 5, 0, 1


def markov(seed: int):
    """A step whose next token depends on the last one; it likes to repeat."""
    table = torch.randn(VOCABULARY, VOCABULARY, generator=torch.Generator().manual_seed(seed))
    table[:, EOS] -= 1
    table = (2 * table).log_softmax(-1)

    def step(tokens, state):
        return table[tokens], state, None

    return step, table


def begin(sentences: int = 1) -> RepeatState:
    return RepeatState(torch.zeros(sentences, 1), torch.empty(sentences, 0, dtype=torch.long))


def repeats(tokens: list[int], length: int) -> bool:
    windows = [tuple(tokens[i : i + length]) for i in range(len(tokens) - length + 1)]
    return len(windows) != len(set(windows))


def best_of_all(table, longest: int, length: int) -> tuple[float, list[int]]:
    """The likeliest finished sequence without a repetition, by trying all of them."""
    found = []
    for size in range(1, longest + 1):
        for tokens in product(range(1, VOCABULARY), repeat=size - 1):
            whole = [*tokens, EOS]
            if not repeats(whole, length):
                pairs = zip([BOS, *whole], whole, strict=False)
                found.append((sum(float(table[a, b]) for a, b in pairs), whole))
    return max(found)


@pytest.mark.parametrize("length", [1, 2, 3])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_wide_beam_finds_the_best_sequence_without_repetitions(length, seed):
    step, table = markov(seed)
    limited = forbid_repeats(step, length)
    found = beam(limited, begin(2), bos=BOS, eos=EOS, limit=6, width=400)
    score, tokens = best_of_all(table, 6, length)
    for hypotheses in found:
        assert hypotheses[0].tokens == tokens
        assert hypotheses[0].log_probability == pytest.approx(score, rel=1e-5)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_greedy_and_sampled_outputs_repeat_only_where_they_may(seed):
    step, _ = markov(seed)
    free = greedy(step, torch.zeros(1, 1), bos=BOS, eos=EOS, limit=30)[0].tokens
    limited = forbid_repeats(step, 2)
    for one in greedy(limited, begin(), bos=BOS, eos=EOS, limit=30):
        assert not repeats(one.tokens, 2)
        same = next((i for i in range(len(free)) if repeats(free[: i + 1], 2)), len(free))
        assert one.tokens[:same] == free[:same]
    generator = [torch.Generator().manual_seed(seed)]
    drawn = sample(limited, begin(), bos=BOS, eos=EOS, limit=30, samples=9, generator=generator)
    assert not any(repeats(one.tokens, 2) for one in drawn[0])


def test_what_a_prefix_repeats_is_allowed():
    step, _ = markov(1)
    prefix = [[2, 3, 2, 3]]
    limited = forbid_repeats(step, 2, after=4)
    (found,) = greedy(limited, begin(), bos=BOS, eos=EOS, limit=9, prefix=prefix)
    assert found.tokens[:4] == prefix[0]
    assert found.log_probability > -1e6
    assert found.tokens[3:5] not in ([3, 2],)


def test_a_length_below_one_is_refused():
    with pytest.raises(ValueError, match="expected a length of 1 or more, got 0"):
        forbid_repeats(markov(1)[0], 0)
