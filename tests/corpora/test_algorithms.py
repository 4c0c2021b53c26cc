"""The algorithms: every answer computed again from its problem."""

from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.corpora import make_corpus
from regard.corpora.algorithms import ALGORITHMS, endless_problems
from regard.errors import RegardError


def answer(kind: str, source: str) -> str:
    symbols = source.split()
    if kind == "recall":
        *shown, mark, asked = symbols
        assert mark == "?"
        return dict(zip(shown[::2], shown[1::2], strict=True))[asked]
    numbers = [int(symbol) for symbol in symbols]
    done = {"copy": numbers, "reverse": list(reversed(numbers)), "sort": sorted(numbers)}[kind]
    return " ".join(map(str, done))


@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(ALGORITHMS),
    seed=st.integers(0, 10**9),
    shortest=st.integers(1, 8),
    more=st.integers(0, 8),
)
def test_answers_and_lengths(kind: str, seed: int, shortest: int, more: int) -> None:
    for pair in islice(endless_problems(kind, (shortest, shortest + more), seed), 20):
        assert pair.target == answer(kind, pair.source)
        length = len(pair.source.split())
        if kind == "recall":
            length = (length - 2) // 2
        assert shortest <= length <= shortest + more


def test_the_same_seed() -> None:
    assert [*islice(endless_problems("copy", seed=3), 50)] == [
        *islice(endless_problems("copy", seed=3), 50)
    ]
    assert [*islice(endless_problems("copy", seed=3), 50)] != [
        *islice(endless_problems("copy", seed=4), 50)
    ]


def test_all_lengths_are_sampled() -> None:
    lengths = {
        len(pair.source.split()) for pair in islice(endless_problems("reverse", (2, 7)), 500)
    }
    assert lengths == {2, 3, 4, 5, 6, 7}


@pytest.mark.parametrize("kind", ALGORITHMS)
def test_corpus(kind: str) -> None:
    corpus = make_corpus("algorithms", 500, 1, kind=kind)
    assert [len(corpus.train), len(corpus.valid), len(corpus.test)] == [500, 50, 50]
    everything = [*corpus.train, *corpus.valid, *corpus.test]
    assert len({pair.source for pair in everything}) == len(everything)
    assert all(pair.target == answer(kind, pair.source) for pair in everything)
    longest = max(len(pair.source) for pair in corpus.train)
    trained = max(len(pair.source.split()) for pair in corpus.train)
    assert sum(len(pair.source.split()) > trained for pair in corpus.test) == 25, longest


def test_wrong_use() -> None:
    with pytest.raises(RegardError, match="algorithms: unknown kind 'sotr': did you mean 'sort'"):
        make_corpus("algorithms", 100, kind="sotr")
    with pytest.raises(RegardError, match="unknown algorithm"):
        next(endless_problems("swap"))
    with pytest.raises(RegardError, match="lengths from 5 to 2: expected 1 <= shortest <= longest"):
        next(endless_problems("copy", (5, 2)))
    with pytest.raises(RegardError, match="recall of 30 pairs: expected at most 26"):
        next(endless_problems("recall", (30, 30)))
