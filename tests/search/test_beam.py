"""Beam search against enumeration of all outputs and a beam in plain Python without stopping."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.search import (
    LENGTH_PENALTIES,
    Coverage,
    beam,
    force_decode,
    greedy,
    no_length_penalty,
    power,
    wu,
)

PENALTIES = {
    "none": (no_length_penalty, lambda n: 1),
    "mean": (power(1.0), lambda n: n),
    "short": (power(-0.5), lambda n: n**-0.5),
    "steep": (power(2.0), lambda n: n**2),
    "wu": (wu(0.6), lambda n: ((5 + n) / 6) ** 0.6),
}
SEEDS = st.integers(0, 10**6)
NAMES = st.sampled_from(sorted(PENALTIES))
few = settings(max_examples=25, deadline=None)


def normalised(name):
    lp = PENALTIES[name][1]
    return lambda total, tokens, sentence: total / lp(len(tokens))


def found(hypotheses):
    return [
        (one.finished, pytest.approx(one.normalized_log_probability), one.tokens)
        for one in hypotheses
    ]


@few
@given(SEEDS, NAMES, st.sampled_from([3, 4]), st.integers(1, 4))
def test_a_wide_beam_finds_the_best_of_all_outputs(table, seed, name, vocabulary, limit):
    toy = table(seed, vocabulary=vocabulary, limit=4)
    best = toy.exhaustive(0, normalised(name), limit)
    width = 4**limit
    penalty = PENALTIES[name][0]
    (hypotheses,) = beam(
        toy.step,
        toy.state(),
        bos=toy.bos,
        eos=0,
        limit=limit,
        width=width,
        nbest=width,
        length_penalty=penalty,
    )
    assert best[:width] == found(hypotheses)
    # Fewer hypotheses are wanted, and the search may stop before the last step: same result.
    for nbest in (1, 2):
        (fewer,) = beam(
            toy.step,
            toy.state(),
            bos=toy.bos,
            eos=0,
            limit=limit,
            width=width,
            nbest=nbest,
            length_penalty=penalty,
        )
        assert best[:nbest] == found(fewer)


@few
@given(SEEDS, NAMES, st.integers(1, 5), st.booleans(), st.data())
def test_any_beam_equals_a_plain_one_that_never_stops(table, seed, name, width, coarse, data):
    toy = table(seed, sentences=3, vocabulary=4, limit=5, coarse=coarse)
    nbest = data.draw(st.integers(1, width))
    limits = data.draw(st.lists(st.integers(1, 5), min_size=3, max_size=3))
    hypotheses = beam(
        toy.step,
        toy.state(),
        bos=toy.bos,
        eos=0,
        limit=limits,
        width=width,
        nbest=nbest,
        length_penalty=PENALTIES[name][0],
    )
    for sentence, limit in enumerate(limits):
        plain = toy.plain_beam(sentence, width, normalised(name), limit)[:nbest]
        assert plain == found(hypotheses[sentence])


@few
@given(SEEDS, st.booleans(), NAMES)
def test_a_beam_of_one_is_greedy(table, seed, coarse, name):
    toy = table(seed, sentences=5, coarse=coarse)
    options = {
        "bos": toy.bos,
        "eos": 0,
        "limit": [4, 3, 1, 4, 2],
        "length_penalty": PENALTIES[name][0],
    }
    narrow = beam(toy.step, toy.state(), width=1, **options)
    for (ours,), theirs in zip(narrow, greedy(toy.step, toy.state(), **options), strict=True):
        assert ours.tokens == theirs.tokens
        assert ours.normalized_log_probability == theirs.normalized_log_probability
        assert ours.finished == theirs.finished


@few
@given(SEEDS, st.integers(1, 5), NAMES)
def test_scores_and_attention_are_those_of_forced_decoding(table, seed, width, name):
    toy = table(seed, sentences=3)
    penalty = PENALTIES[name][0]
    nbests = beam(
        toy.step,
        toy.state(),
        bos=toy.bos,
        eos=0,
        limit=[4, 2, 3],
        width=width,
        nbest=width,
        length_penalty=penalty,
    )
    for sentence, hypotheses in enumerate(nbests):
        assert hypotheses
        for one in hypotheses:
            (score,) = force_decode(
                toy.step,
                toy.state([sentence]),
                torch.tensor([one.tokens]),
                bos=toy.bos,
                eos=0,
                length_penalty=penalty,
            )
            assert one.log_probability == pytest.approx(score.log_probability, abs=1e-12)
            assert one.normalized_log_probability == pytest.approx(
                score.normalized_log_probability, abs=1e-12
            )
            assert one.finished == score.finished
            by_hand = toy.log_probabilities(sentence, one.tokens)
            assert one.token_log_probabilities == by_hand
            assert one.log_probability == pytest.approx(sum(by_hand))
            expected = toy.attention(sentence, one.tokens)
            assert one.weights.keys() == score.weights.keys() == expected.keys()
            for attention, looks in expected.items():
                assert torch.equal(one.weights[attention], looks)
                assert torch.equal(score.weights[attention], looks)


@few
@given(SEEDS, st.integers(1, 4), NAMES, st.permutations(range(5)))
def test_a_batch_gives_what_each_sentence_gives_alone(table, seed, width, name, order):
    toy = table(seed, sentences=5)
    limits = [4, 2, 3, 1, 4]

    def decode(sentences):
        toy.fed = []
        hypotheses = beam(
            toy.step,
            toy.state(sentences),
            bos=toy.bos,
            eos=0,
            width=width,
            nbest=width,
            limit=[limits[i] for i in sentences],
            length_penalty=PENALTIES[name][0],
        )
        return hypotheses, toy.fed

    together, fed = decode(order)
    alone = [decode([sentence]) for sentence in order]
    for ours, (theirs, _) in zip(together, alone, strict=True):
        assert [(one.tokens, one.normalized_log_probability) for one in ours] == [
            (one.tokens, one.normalized_log_probability) for one in theirs[0]
        ]
    # What is over costs nothing: at each step the batch has the rows that are live alone.
    for position, rows in enumerate(fed):
        assert rows == sum(one[position] for _, one in alone if position < len(one))


@few
@given(SEEDS, st.sampled_from([0.0, 0.3, 2.0]), st.integers(0, 4))
def test_coverage_by_hand(table, seed, beta, missing):
    toy = table(seed, sentences=2, keys=5)
    keys = torch.ones(2, 5, dtype=torch.bool)
    keys[1, 5 - missing :] = False

    def score(total, tokens, sentence):
        looked = toy.attention(sentence, tokens)["cross"].mean(0).sum(0)
        logs = [
            math.log(min(x.item(), 1.0)) for x, k in zip(looked, keys[sentence], strict=True) if k
        ]
        return total / len(tokens) + beta * sum(logs)

    options = {
        "length_penalty": power(1.0),
        "coverage": Coverage("cross", beta, keys=keys),
        "bos": toy.bos,
        "eos": 0,
    }
    nbests = beam(toy.step, toy.state(), limit=4, width=81, nbest=3, **options)
    for sentence, hypotheses in enumerate(nbests):
        assert toy.exhaustive(sentence, score)[:3] == found(hypotheses)
    narrow = beam(toy.step, toy.state(), limit=4, width=2, nbest=2, **options)
    for sentence, hypotheses in enumerate(narrow):
        assert toy.plain_beam(sentence, 2, score)[:2] == found(hypotheses)
    targets = [hypotheses[0].tokens for hypotheses in nbests]
    lengths = torch.tensor([len(tokens) for tokens in targets])
    padded = torch.nn.utils.rnn.pad_sequence(
        [torch.tensor(t) for t in targets], batch_first=True, padding_value=7
    )
    again = force_decode(toy.step, toy.state(), padded, lengths, **options)
    for hypotheses, one in zip(nbests, again, strict=True):
        assert one.normalized_log_probability == pytest.approx(
            hypotheses[0].normalized_log_probability
        )


def test_coverage_of_a_key_never_looked_at_is_finite():
    toy_weights = torch.tensor([[1.0, 0.0]])

    def step(tokens, state):
        return (
            torch.tensor([[0.5, 0.5]]).log().expand(len(tokens), 2),
            state,
            {"a": toy_weights.expand(len(tokens), 2)},
        )

    coverage = Coverage("a", beta=1.0, floor=0.01)
    ((one,),) = beam(step, torch.zeros(1), bos=1, eos=0, limit=1, width=2, coverage=coverage)
    assert one.normalized_log_probability == pytest.approx(math.log(0.5) + math.log(0.01))
    with pytest.raises(ValueError, match="did you mean 'a'"):
        beam(step, torch.zeros(1), bos=1, eos=0, limit=1, width=2, coverage=Coverage("aa"))


@few
@given(SEEDS, st.lists(st.integers(1, 2), max_size=3), st.integers(1, 4))
def test_the_prefix_is_honoured(table, seed, prefix, width):
    toy = table(seed, sentences=2)
    nbests = beam(
        toy.step,
        toy.state(),
        bos=toy.bos,
        eos=0,
        limit=4,
        width=81,
        nbest=width,
        prefix=[prefix, []],
    )
    plain = [
        one for one in toy.exhaustive(0, normalised("none")) if one[2][: len(prefix)] == prefix
    ]
    assert plain[:width] == found(nbests[0])
    assert toy.exhaustive(1, normalised("none"))[:width] == found(nbests[1])


def test_a_prefix_may_hold_the_end(table):
    toy = table(sentences=2)
    nbests = beam(
        toy.step, toy.state(), bos=toy.bos, eos=0, limit=4, width=3, nbest=3, prefix=[[2, 0], [1]]
    )
    assert [one.tokens for one in nbests[0]] == [[2, 0]]
    assert all(one.tokens[0] == 1 for one in nbests[1])


def test_patience_stops_sooner(table):
    toy = table(seed=3, limit=5, vocabulary=4)

    def steps(patience):
        toy.fed = []
        beam(
            toy.step,
            toy.state(),
            bos=toy.bos,
            eos=0,
            limit=5,
            width=3,
            patience=patience,
            length_penalty=power(2.0),
        )
        return len(toy.fed)

    assert steps(None) == 5
    assert steps(1 / 3) < 5


def test_stops_as_soon_as_nothing_can_win():
    def step(tokens, state):
        return torch.tensor([[0.9, 0.06, 0.04]]).log().expand(len(tokens), 3), state + 1, None

    calls = []

    def counted(tokens, state):
        calls.append(len(tokens))
        return step(tokens, state)

    ((best,),) = beam(counted, torch.zeros(1), bos=1, eos=0, limit=50, width=3)
    assert best.tokens == [0]
    assert calls == [1]
    # log 0.06 / 50 is above log 0.9, so that a long output could still win; 2 log 0.06 / 50 is not.
    calls.clear()
    beam(counted, torch.zeros(1), bos=1, eos=0, limit=50, width=3, length_penalty=power(1.0))
    assert calls == [1, 2]


def test_goes_on_while_a_short_output_can_win():
    def step(tokens, state):
        first = torch.tensor([0.2, 0.8]).log()
        return torch.where(tokens[:, None] == 9, first, first.flip(0)), state, None

    # The penalty favours short outputs: log 0.8 · √60 is below log 0.2, log 0.64 · √2 is not.
    ((best,),) = beam(
        step, torch.zeros(1), bos=9, eos=0, limit=60, width=2, length_penalty=power(-0.5)
    )
    assert best.tokens == [1, 0]


def test_no_sentences(table):
    toy = table()
    assert beam(toy.step, toy.state([]), bos=toy.bos, eos=0, limit=4, width=3) == []
    assert toy.fed == []


def test_wrong_use(table):
    toy = table()
    options = {"bos": toy.bos, "eos": 0, "limit": 4}
    with pytest.raises(ValueError, match="width 2 gives 1 to 2 hypotheses, not 3"):
        beam(toy.step, toy.state(), width=2, nbest=3, **options)
    with pytest.raises(ValueError, match="patience must be above 0"):
        beam(toy.step, toy.state(), width=2, patience=0.0, **options)
    with pytest.raises(ValueError, match="positive and monotonic"):
        beam(toy.step, toy.state(), width=2, length_penalty=lambda n: (n - 2) ** 2 + 1, **options)
    with pytest.raises(ValueError, match=r"needs beta >= 0, got -1\.0"):
        Coverage("cross", beta=-1.0)


def test_steps_that_give_no_distribution():
    def step(value):
        return lambda tokens, state: (torch.full((len(tokens), 3), value), state, None)

    options = {"bos": 1, "eos": 0, "limit": 4, "width": 2}
    with pytest.raises(ValueError, match="NaN as a log-probability for sentence 0"):
        beam(step(float("nan")), torch.zeros(2), **options)
    with pytest.raises(ValueError, match="no token has a probability above zero at position 0"):
        beam(step(float("-inf")), torch.zeros(2), **options)
    impossible = torch.tensor([0.0, float("-inf"), float("-inf")])
    with pytest.raises(ValueError, match="token 2 at position 0 of the prefix of sentence 1"):
        beam(
            lambda tokens, state: (impossible.expand(len(tokens), 3), state, None),
            torch.zeros(2),
            prefix=[[], [2]],
            **options,
        )


def test_names_of_length_penalties():
    lengths = torch.arange(1.0, 6.0)
    assert torch.equal(LENGTH_PENALTIES["none"](0.7)(lengths), torch.ones(5))
    assert torch.equal(LENGTH_PENALTIES["power"](2.0)(lengths), lengths**2)
    assert LENGTH_PENALTIES["wu"](0.5)(lengths)[0] == 1
