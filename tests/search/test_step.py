"""States, starts and ranks."""

from typing import NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.search import PerSentence, greedy, pin_attention, reorder
from regard.search.hypotheses import History, StepRecord
from regard.search.ranking import best_candidates


class Memory(NamedTuple):
    keys: torch.Tensor
    cells: list


def test_every_part_of_a_state_is_reordered():
    keys, cell = torch.arange(6).view(3, 2), torch.arange(3)
    state = (Memory(keys, [cell, None, 5]), {"fixed": PerSentence(cell), "time": torch.tensor(9)})
    index = torch.tensor([2, 0, 0, 1])
    memory, rest = reorder(state, index)
    assert isinstance(memory, Memory)
    assert torch.equal(memory.keys, keys[[2, 0, 0, 1]])
    assert memory.cells[0].tolist() == [2, 0, 0, 1]
    assert memory.cells[1:] == [None, 5]
    assert rest["fixed"].value.tolist() == [2, 0, 0, 1]
    assert rest["time"] == 9
    _, unmoved = reorder(state, torch.tensor([1, 0, 2]), moved=False)
    assert unmoved["fixed"].value is cell


def test_strange_states_are_refused():
    with pytest.raises(ValueError, match="not of object"):
        reorder([object()], torch.tensor([0]))


def rows(n, **extra):
    return lambda tokens, state: (torch.zeros(n, 3), state, extra or None)


def test_wrong_starts():
    step = rows(2)
    options = {"bos": 1, "eos": 0, "limit": 4}
    two = torch.zeros(2)
    with pytest.raises(ValueError, match=r"give bos as a tensor \[b\]"):
        greedy(step, None, **options)
    with pytest.raises(ValueError, match=r"batch axis first, got the shapes \[\[2\], \[3, 2\]\]"):
        greedy(step, [two, torch.zeros(3, 2)], **options)
    with pytest.raises(ValueError, match="one limit per sentence is needed: 3 for 2 sentences"):
        greedy(step, two, bos=1, eos=0, limit=[1, 2, 3])
    with pytest.raises(ValueError, match="limit of at least one token, got 0"):
        greedy(step, two, bos=1, eos=0, limit=[1, 0])
    with pytest.raises(ValueError, match="one prefix per sentence is needed: 1 for 2 sentences"):
        greedy(step, two, prefix=[[1]], **options)
    with pytest.raises(ValueError, match="prefix of sentence 1 has 5 tokens, over its limit of 4"):
        greedy(step, two, prefix=[[], [1] * 5], **options)
    with pytest.raises(ValueError, match="prefix of sentence 0 continues after its end token 0"):
        greedy(step, two, prefix=[[0, 1], []], **options)
    with pytest.raises(ValueError, match="allowed keys at position 3 have 1 rows for 2 sentences"):
        greedy(step, two, allowed={3: torch.ones(1, 5, dtype=torch.bool)}, **options)
    with pytest.raises(ValueError, match=r"must return log-probabilities \[2, v\], got \[3, 3\]"):
        greedy(rows(3), two, **options)


def test_starts_of_their_own():
    seen = []

    def step(tokens, state):
        seen.append(tokens.tolist())
        return torch.zeros(len(tokens), 3), state, None

    greedy(step, None, bos=torch.tensor([2, 1]), eos=0, limit=1)
    assert seen == [[2, 1]]


def test_weights_must_keep_their_names():
    history = History()
    one = torch.ones(1)
    history.add(StepRecord(one.long(), None, one, {"a": one}))
    with pytest.raises(ValueError, match=r"first \['a'\], at position 1 \['b'\]"):
        history.add(StepRecord(one.long(), None, one, {"b": one}))


def test_pins():
    masks = pin_attention([{1: [0, 2]}, {0: []}], keys=3)
    assert masks[1].tolist() == [[True, False, True], [True, True, True]]
    assert masks[0].tolist() == [[True, True, True], [False, False, False]]
    with pytest.raises(ValueError, match=r"sentence 0 pins position 1 to \[3\], but there are 3"):
        pin_attention([{1: [3]}], keys=3)
    with pytest.raises(ValueError, match="pins position -1"):
        pin_attention([{-1: [0]}], keys=3)


@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 20), st.randoms(use_true_random=False))
def test_ranks_break_ties_by_token_then_beam(beams, vocabulary, k, random):
    choices = [-float("inf"), -3.0, -2.0, -1.0]
    rows = [[random.choice(choices) for _ in range(beams * vocabulary)] for _ in range(3)]
    values, index = best_candidates(torch.tensor(rows), k, beams)
    for row, got, at in zip(rows, values.tolist(), index.tolist(), strict=True):
        order = sorted(range(len(row)), key=lambda i: (-row[i], i % vocabulary, i // vocabulary))[
            :k
        ]
        assert got == [row[i] for i in order]
        possible = [i for i in order if row[i] > -float("inf")]
        assert at[: len(possible)] == possible


@given(st.integers(1, 7), st.integers(0, 40), st.booleans(), st.integers(0, 10**6))
def test_ranks_of_long_rows(k, more, coarse, seed):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(71, 32 * 4 * (k + 1) + more, generator=generator)
    scores = scores.round() if coarse else scores
    scores[:, ::3] = -float("inf")
    values, index = best_candidates(scores, k)
    expected = scores.sort(dim=1, descending=True, stable=True)
    assert torch.equal(values, expected.values[:, :k])
    assert torch.equal(index, expected.indices[:, :k])


@pytest.mark.parametrize("c", [7, 9973])
def test_nothing_hides_a_nan(c):
    scores = torch.randn(3, c)
    scores[1, c // 2] = float("nan")
    values, _ = best_candidates(scores, 5)
    assert values[:, 0].isnan().tolist() == [False, True, False]
