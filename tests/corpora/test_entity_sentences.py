"""The entity corpus: valid tags, names held out, context that decides."""

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.corpora import make_corpus
from regard.corpora.entities import entity_words
from regard.corpora.entities.entity_sentences import HELD_OUT, LONGEST
from regard.data.tags import spans

KINDS = {"PER", "ORG", "LOC", "DATE"}


@pytest.fixture(scope="module")
def corpus():
    return make_corpus("entities", 2000, seed=2)


@pytest.fixture(scope="module")
def everything(corpus):
    return [*corpus.train, *corpus.valid, *corpus.test]


def test_sizes(corpus) -> None:
    assert [len(corpus.train), len(corpus.valid), len(corpus.test)] == [2000, 200, 200]


def test_tags_are_valid(everything) -> None:
    for example in everything:
        assert len(example.words) == len(example.tags)
        before = "O"
        for tag in example.tags:
            mark, _, kind = tag.partition("-")
            assert mark in "BIO"
            assert kind in KINDS or tag == "O"
            assert mark != "I" or before[2:] == kind
            before = tag


def test_parts_are_disjoint(everything) -> None:
    assert len({example.words for example in everything}) == len(everything)


def test_held_out_names(corpus) -> None:
    known = {word for example in (*corpus.train, *corpus.valid) for word in example.words}
    assert not known & HELD_OUT
    assert 50 < len(HELD_OUT) < 100
    new = 0
    for example in corpus.test:
        unknown = [
            tag for word, tag in zip(example.words, example.tags, strict=True) if word not in known
        ]
        assert "O" not in unknown
        new += bool(unknown)
    assert new > 0.6 * len(corpus.test)


def test_a_third_of_the_test_is_longer(corpus) -> None:
    assert max(len(example.words) for example in corpus.train) <= LONGEST
    assert sum(len(example.words) > LONGEST for example in corpus.test) == 66


def test_context_decides(corpus) -> None:
    kinds = defaultdict(set)
    for example in corpus.train:
        for kind, start, end in spans(example.tags):
            if end - start == 1:
                kinds[example.words[start]].add(kind)
    assert kinds["Paris"] == {"PER", "LOC"}
    assert kinds["Washington"] == {"PER", "LOC"}
    assert kinds["Ford"] == {"PER", "ORG"}
    several = [name for name in entity_words.AMBIGUOUS if len(kinds[name]) > 1]
    assert len(several) > 20


def test_common_words_are_no_names(corpus) -> None:
    tags = defaultdict(set)
    for example in corpus.train:
        for word, tag in zip(example.words, example.tags, strict=True):
            tags[word].add(tag)
    assert tags["apple"] == tags["turkey"] == {"O"}
    assert "B-ORG" in tags["Apple"]
    assert "B-LOC" in tags["Turkey"]


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**9), size=st.integers(100, 300))
def test_any_seed(seed: int, size: int) -> None:
    corpus = make_corpus("entities", size, seed)
    assert corpus == make_corpus("entities", size, seed)
    assert [len(corpus.train), len(corpus.test)] == [size, size // 10]
    for example in corpus.test:
        assert not {"a apple", "a actor"} & {
            f"{one} {two}" for one, two in zip(example.words, example.words[1:], strict=False)
        }
