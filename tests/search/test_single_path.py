"""Greedy search and forced decoding against sums by hand; pinned attention."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.search import beam, force_decode, greedy, pin_attention, power, sample, wu

SEEDS = st.integers(0, 10**6)
few = settings(max_examples=25, deadline=None)


def by_hand(toy, sentence, limit):
    tokens = []
    while len(tokens) < limit and tokens[-1:] != [0]:
        row = toy.scores[sentence, toy.codes([*tokens, None])[-1]].tolist()
        tokens.append(row.index(max(row)))
    return tokens


@few
@given(SEEDS, st.booleans(), st.lists(st.integers(1, 4), min_size=5, max_size=5))
def test_greedy_by_hand(table, seed, coarse, limits):
    toy = table(seed, sentences=5, coarse=coarse)
    paths = greedy(
        toy.step,
        toy.state(),
        bos=toy.bos,
        eos=0,
        limit=torch.tensor(limits),
        length_penalty=wu(1.0),
    )
    for sentence, (path, limit) in enumerate(zip(paths, limits, strict=True)):
        assert path.tokens == by_hand(toy, sentence, limit)
        assert path.finished == (path.tokens[-1] == 0)
        assert path.output == [token for token in path.tokens if token != 0]
        log_probabilities = toy.log_probabilities(sentence, path.tokens)
        assert path.token_log_probabilities == log_probabilities
        assert path.log_probability == pytest.approx(sum(log_probabilities))
        expected_score = sum(log_probabilities) / ((5 + len(path.tokens)) / 6)
        assert path.normalized_log_probability == pytest.approx(expected_score)
        for name, looks in toy.attention(sentence, path.tokens).items():
            assert torch.equal(path.weights[name], looks)
    # What is over costs nothing: as many rows were fed as tokens came out.
    assert sum(toy.fed) == sum(len(path.tokens) for path in paths)


@few
@given(SEEDS, st.data())
def test_forced_by_hand(table, seed, data):
    toy = table(seed, sentences=3)
    targets = [data.draw(st.sampled_from(list(toy.outputs()))) for _ in range(3)]
    padded = torch.nn.utils.rnn.pad_sequence(
        [torch.tensor(tokens) for tokens in targets], batch_first=True, padding_value=-7
    )
    lengths = torch.tensor([len(tokens) for tokens in targets])
    scored = force_decode(
        toy.step, toy.state(), padded, lengths, bos=toy.bos, eos=0, length_penalty=power(1.0)
    )
    for sentence, (one, tokens) in enumerate(zip(scored, targets, strict=True)):
        log_probabilities = toy.log_probabilities(sentence, tokens)
        assert one.tokens == tokens
        assert one.token_log_probabilities == log_probabilities
        assert one.normalized_log_probability == pytest.approx(sum(log_probabilities) / len(tokens))
        assert one.finished == (tokens[-1] == 0)
        for name, looks in toy.attention(sentence, tokens).items():
            assert torch.equal(one.weights[name], looks)


@few
@given(SEEDS, st.lists(st.integers(1, 2), max_size=4))
def test_greedy_goes_on_from_a_prefix(table, seed, prefix):
    toy = table(seed, sentences=2)
    with_prefix, free = greedy(
        toy.step, toy.state(), bos=toy.bos, eos=0, limit=4, prefix=[prefix, []]
    )
    assert with_prefix.tokens[: len(prefix)] == prefix
    assert with_prefix.token_log_probabilities == toy.log_probabilities(0, with_prefix.tokens)
    assert free.tokens == by_hand(toy, 1, 4)
    for i in range(len(prefix), len(with_prefix.tokens)):
        code = toy.codes([*with_prefix.tokens[:i], None])[-1]
        assert toy.scores[0, code].argmax() == with_prefix.tokens[i]


def test_an_impossible_target_has_probability_zero():
    logs = torch.tensor([[0.0, -math.inf]])
    (one,) = force_decode(
        lambda tokens, state: (logs, state, None),
        torch.zeros(1),
        torch.tensor([[1, 0]]),
        bos=1,
        eos=0,
    )
    assert one.token_log_probabilities == [-math.inf, 0.0]
    assert one.log_probability == -math.inf


def test_half_precision_is_summed_in_single():
    logs = torch.tensor([[0.001, 0.999]]).log().bfloat16()
    (one,) = greedy(
        lambda tokens, state: (logs, state, None), torch.zeros(1), bos=1, eos=0, limit=300
    )
    assert one.log_probability == pytest.approx(300 * logs[0, 1].item(), rel=1e-4)
    assert not one.finished


def test_no_sentences(table):
    toy = table()
    assert greedy(toy.step, toy.state([]), bos=toy.bos, eos=0, limit=4) == []
    assert greedy(toy.step, toy.state([]), bos=toy.bos, eos=0, limit=[], prefix=[]) == []
    empty = torch.zeros(0, 3, dtype=torch.long)
    assert force_decode(toy.step, toy.state([]), empty, bos=toy.bos, eos=0) == []
    assert toy.fed == []


class Copying:
    """Writes the source words that it looks at: everywhere alike, unless it is pinned."""

    def __init__(self, source, vocabulary=11):
        self.one_hot = torch.nn.functional.one_hot(source, vocabulary).double()

    def step(self, tokens, state, allowed=None):
        of, _ = state
        allowed = (
            torch.ones(len(tokens), self.one_hot.shape[1], dtype=torch.bool)
            if allowed is None
            else allowed
        )
        weights = allowed / allowed.sum(1, keepdim=True)
        copied = torch.einsum("nk,nkv->nv", weights.double(), self.one_hot[of])
        return copied.log(), state, {"copy": weights}


SOURCE = torch.tensor([[5, 7, 2, 0], [3, 3, 4, 0]])


SEARCHES = {
    "greedy": greedy,
    "beam": lambda *given, **options: [best[0] for best in beam(*given, width=5, **options)],
    "sample": lambda *given, **options: [
        drawn[0] for drawn in sample(*given, temperature=0.0, **options)
    ],
}


@pytest.mark.parametrize("search", SEARCHES)
def test_pinned_attention_decides_what_is_written(search):
    model, state = Copying(SOURCE), (torch.arange(2), None)
    allowed = pin_attention([{0: [2], 1: [0, 2], 2: [3]}, {1: [2]}], keys=4)
    options = {"bos": 1, "eos": 0, "limit": 3, "allowed": allowed, "length_penalty": power(1.0)}
    paths = SEARCHES[search](model.step, state, **options)
    first, second = paths
    assert first.tokens == [2, 2, 0]
    assert first.weights["copy"].tolist() == [[0, 0, 1, 0], [0.5, 0, 0.5, 0], [0, 0, 0, 1]]
    assert second.tokens[:2] == [3, 4]
    assert second.weights["copy"][:2].tolist() == [[0.25] * 4, [0, 0, 1, 0]]


def test_pins_in_forced_decoding_and_in_part_of_the_samples():
    model = Copying(SOURCE)
    allowed = pin_attention([{0: [2]}, None], keys=4)
    targets = torch.tensor([[2, 0], [4, 0]])
    first, second = force_decode(
        model.step, (torch.arange(2), None), targets, bos=1, eos=0, allowed=allowed
    )
    assert first.token_log_probabilities == [0.0, pytest.approx(math.log(0.25))]
    assert second.token_log_probabilities == pytest.approx([math.log(0.25)] * 2)
    drawn = sample(
        model.step,
        (torch.arange(2), None),
        bos=1,
        eos=0,
        limit=1,
        samples=30,
        allowed=allowed,
        generator=torch.Generator().manual_seed(1),
    )
    assert {one.tokens[0] for one in drawn[0]} == {2}
    assert {one.tokens[0] for one in drawn[1]} == {0, 3, 4}


def test_wrong_targets(table):
    toy = table(sentences=2)
    options = {"bos": toy.bos, "eos": 0}
    with pytest.raises(ValueError, match="3 targets for a state of 2 sentences"):
        force_decode(toy.step, toy.state(), torch.ones(3, 2, dtype=torch.long), **options)
    targets = torch.tensor([[1, 0, 1], [1, 2, 0]])
    with pytest.raises(ValueError, match="continues after its end token 0"):
        force_decode(toy.step, toy.state(), targets, **options)
    force_decode(toy.step, toy.state(), targets, torch.tensor([2, 3]), **options)
    with pytest.raises(ValueError, match=r"targets \[2, 3\] are shorter than a length 4"):
        force_decode(toy.step, toy.state(), targets, torch.tensor([2, 4]), **options)
    with pytest.raises(ValueError, match="NaN as a log-probability for sentence 0"):
        greedy(
            lambda tokens, state: (torch.full((2, 3), float("nan")), state, None),
            toy.state(),
            limit=2,
            **options,
        )


def test_tokens_outside_the_vocabulary(table):
    toy = table()
    options = {"bos": toy.bos, "eos": 0}
    with pytest.raises(ValueError, match=r"tokens \[3\] are not in the vocabulary of 3"):
        force_decode(toy.step, toy.state(), torch.tensor([[3, 0]]), **options)
    with pytest.raises(ValueError, match=r"tokens \[-1\] are not in the vocabulary of 3"):
        force_decode(toy.step, toy.state(), torch.tensor([[-1, 0]]), **options)
    for search in SEARCHES.values():
        with pytest.raises(ValueError, match=r"tokens \[5\] are not in the vocabulary of 3"):
            search(toy.step, toy.state(), limit=4, prefix=[[5]], **options)
