"""Frequencies of samples against probabilities worked out one output at a time."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from regard.search import greedy, sample
from regard.search.sampling import sample_index, support

SEEDS = st.integers(0, 10**6)
few = settings(max_examples=20, deadline=None)


def by_hand(scores, before, temperature=1.0, top_k=None, top_p=1.0, repetition_penalty=1.0):
    """The distribution of the next token, in plain Python."""
    scores = [s * repetition_penalty if i in before else s for i, s in enumerate(scores)]
    weights = [math.exp(s / temperature) for s in scores]
    order = sorted(range(len(scores)), key=lambda i: (-weights[i], i))[:top_k]
    whole, mass, kept = sum(weights[i] for i in order), 0.0, []
    for i in order:
        if mass < top_p:
            kept.append(i)
        mass += weights[i] / whole
    total = sum(weights[i] for i in kept)
    return [weights[i] / total if i in kept else 0.0 for i in range(len(scores))]


OPTIONS = [
    {},
    {"temperature": 0.5},
    {"temperature": 2.0},
    {"top_k": 2},
    {"top_p": 0.7},
    {"top_k": 3, "top_p": 0.8, "temperature": 1.5},
    {"repetition_penalty": 1.7},
    {"repetition_penalty": 0.6, "top_k": 3},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_frequencies_are_probabilities(table, options):
    toy = table(seed=5, sentences=2, vocabulary=4, limit=3)
    n = 2000
    drawn = sample(
        toy.step,
        toy.state(),
        bos=toy.bos,
        eos=0,
        limit=3,
        samples=n,
        generator=torch.Generator().manual_seed(11),
        **options,
    )
    outcomes = 0
    for sentence in range(2):
        probabilities = {}
        for tokens in toy.outputs(3):
            probability = 1.0
            for i, (code, token) in enumerate(zip(toy.codes(tokens), tokens, strict=True)):
                row = toy.scores[sentence, code].tolist()
                probability *= by_hand(row, tokens[:i], **options)[token]
            probabilities[tuple(tokens)] = probability
        assert sum(probabilities.values()) == pytest.approx(1)
        counts = dict.fromkeys(probabilities, 0)
        for one in drawn[sentence]:
            counts[tuple(one.tokens)] += 1
        for tokens, probability in probabilities.items():
            assert counts[tokens] == 0 or probability > 0
        common = [tokens for tokens, probability in probabilities.items() if probability * n > 5]
        seen = [counts[tokens] for tokens in common]
        expected = [n * probabilities[tokens] for tokens in common]
        rare = n - sum(expected)
        if rare > 1:
            seen, expected = [*seen, n - sum(seen)], [*expected, rare]
        if len(seen) == 1:
            continue
        outcomes += len(seen)
        expected = [x * sum(seen) / sum(expected) for x in expected]
        assert stats.chisquare(seen, expected).pvalue > 0.001
    assert outcomes > 4


@few
@given(
    SEEDS,
    st.sampled_from([{"temperature": t} for t in (0.0, 1e-30, 1e-40, 1e-309)] + [{"top_k": 1}]),
)
def test_without_chance_it_is_greedy(table, seed, options):
    toy = table(seed, sentences=5)
    drawn = sample(toy.step, toy.state(), bos=toy.bos, eos=0, limit=4, samples=2, **options)
    best = greedy(toy.step, toy.state(), bos=toy.bos, eos=0, limit=4)
    for two, one in zip(drawn, best, strict=True):
        assert [path.tokens for path in two] == [one.tokens] * 2


@few
@given(SEEDS, st.integers(1, 5))
def test_the_batch_does_not_matter(table, seed, size):
    toy = table(seed, sentences=5)
    limits = [4, 2, 3, 1, 4]

    def decode(size):
        generator = torch.Generator().manual_seed(seed)
        paths = []
        for i in range(0, 5, size):
            which = list(range(5))[i : i + size]
            paths += sample(
                toy.step,
                toy.state(which),
                bos=toy.bos,
                eos=0,
                samples=3,
                generator=generator,
                limit=[limits[j] for j in which],
            )
        return [[path.tokens for path in three] for three in paths]

    assert decode(size) == decode(1)


def test_log_probabilities_are_the_models_own(table):
    toy = table(seed=2, sentences=2)
    for sentence, paths in enumerate(
        sample(toy.step, toy.state(), bos=toy.bos, eos=0, limit=4, samples=7, temperature=3.0)
    ):
        for path in paths:
            assert path.token_log_probabilities == toy.log_probabilities(sentence, path.tokens)
            for name, looks in toy.attention(sentence, path.tokens).items():
                assert torch.equal(path.weights[name], looks)


def test_a_prefix_counts_as_produced():
    logs = torch.tensor([[-9.0, math.log(0.6), math.log(0.4)]])
    options = {"bos": 2, "eos": 0, "limit": 2, "temperature": 0.0, "repetition_penalty": 3.0}
    (((path),),) = sample(
        lambda tokens, state: (logs, state, None), torch.zeros(1), prefix=[[1]], **options
    )
    assert path.tokens == [1, 2]


def test_support_is_exact():
    scores = torch.tensor([[0.125, 0.5, 0.125, 0.25]], dtype=torch.float64).log()
    probabilities, tokens = support(scores, None, 0.75)
    assert tokens.tolist() == [[1, 3, 0, 2]]
    assert probabilities[0, 2:].tolist() == [0, 0]
    probabilities, tokens = support(scores, None, 0.76)
    assert probabilities[0, 2] > 0
    assert probabilities[0, 3] == 0
    _, tokens = support(scores, 3, 1.0)
    assert tokens.tolist() == [[1, 3, 0]]
    probabilities, tokens = support(scores, None, 1.0)
    assert tokens is None
    assert torch.allclose(probabilities, scores.exp())


def test_samples_never_meet_an_impossible_token():
    probabilities = torch.tensor([[0.0, 0.5, 0.0, 0.5, 0.0]], dtype=torch.float64)
    highest = 1 - 2.0**-53
    uniforms = torch.tensor([0.0, 0.25, 0.5, highest], dtype=torch.float64)
    places = sample_index(probabilities.expand(4, 5) / 3, uniforms)
    assert places.tolist() == [1, 1, 3, 3]


def test_the_generator_decides(table):
    toy = table(vocabulary=4)

    def decode(seed):
        generator = torch.Generator().manual_seed(seed)
        options = {"bos": toy.bos, "eos": 0, "limit": 4, "samples": 17, "generator": generator}
        return [path.tokens for path in sample(toy.step, toy.state(), **options)[0]]

    assert decode(1) == decode(1)
    assert decode(1) != decode(2)


def test_no_sentences(table):
    toy = table()
    assert sample(toy.step, toy.state([]), bos=toy.bos, eos=0, limit=4, samples=3) == []


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("samples", 0, "samples must be at least 1, got 0"),
        ("temperature", -1.0, r"temperature must be at least 0, got -1\.0"),
        ("temperature", math.nan, "temperature must be at least 0, got nan"),
        ("top_k", 0, "top_k must be at least 1, got 0"),
        ("top_p", 0.0, r"top_p must be above 0 and at most 1, got 0\.0"),
        ("top_p", 1.5, r"top_p must be above 0 and at most 1, got 1\.5"),
        ("repetition_penalty", 0.0, r"repetition_penalty must be above 0, got 0\.0"),
    ],
)
def test_wrong_use(table, option, value, message):
    toy = table()
    with pytest.raises(ValueError, match=message):
        sample(toy.step, toy.state(), bos=toy.bos, eos=0, limit=4, **{option: value})
