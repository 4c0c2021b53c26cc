"""The running text: topics, returning names, agreement over a distance."""

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.corpora import make_corpus
from regard.corpora.built_in_corpus import is_held_out
from regard.corpora.stories.story_words import MEN, WOMEN, WORLDS


@pytest.fixture(scope="module")
def corpus():
    return make_corpus("stories", 1000, seed=4)


@pytest.fixture(scope="module")
def everything(corpus):
    return [*corpus.train, *corpus.valid, *corpus.test]


def test_sizes(corpus) -> None:
    assert [len(corpus.train), len(corpus.valid), len(corpus.test)] == [1000, 100, 100]


def test_topics(everything) -> None:
    topics = Counter(line.condition for line in everything)
    assert set(topics) == set(WORLDS)
    assert min(topics.values()) > 100
    for line in everything:
        roles = WORLDS[line.condition].roles
        assert any(role in line.text for role in roles)


def test_distinct_and_known(corpus, everything) -> None:
    assert len({line.text for line in everything}) == len(everything)
    known = {word for line in corpus.train for word in line.text.split()}
    assert all(known.issuperset(line.text.split()) for line in (*corpus.valid, *corpus.test))


def test_two_people_who_return(everything) -> None:
    returning = 0
    for line in everything:
        names = [word for word in line.text.split() if word in (*WOMEN, *MEN)]
        assert len(set(names)) == 2
        assert len(names) >= 2
        returning += len(names) > 3
    assert returning > 0.8 * len(everything)


def test_pronouns_fit_the_people(everything) -> None:
    for line in everything:
        people = {word for word in line.text.split() if word in (*WOMEN, *MEN)}
        pronouns = {word.lower() for word in line.text.split()}
        if people <= set(WOMEN):
            assert not pronouns & {"he", "his", "him"}, line.text
        if people <= set(MEN):
            assert not pronouns & {"she", "her"}, line.text


def test_verb_agrees_over_a_distance(everything) -> None:
    found = Counter()
    for line in everything:
        for noun, verb in re.findall(
            r"The (\S+) that people kept behind the .*? (was|were) ", line.text
        ):
            singular = noun in WORLDS[line.condition].things
            assert (verb == "was") == singular, line.text
            found[verb] += 1
    assert min(found["was"], found["were"]) > 50


def test_held_out_things_never_in_training(corpus) -> None:
    def things(lines):
        for line in lines:
            world = WORLDS[line.condition]
            for one, two in zip(line.text.split(), line.text.split()[1:], strict=False):
                if one in world.adjectives and two in world.things:
                    yield one, two

    assert not any(is_held_out(*pair) for pair in things((*corpus.train, *corpus.valid)))
    assert all(is_held_out(*pair) for pair in things(corpus.test))


def test_longer_in_the_test(corpus) -> None:
    trained = max(line.text.count(" .") for line in corpus.train)
    assert trained == 6
    assert sum(line.text.count(" .") > trained for line in corpus.test) == 33


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**9), size=st.integers(100, 200))
def test_any_seed(seed: int, size: int) -> None:
    corpus = make_corpus("stories", size, seed)
    assert corpus == make_corpus("stories", size, seed)
    assert [len(corpus.train), len(corpus.valid), len(corpus.test)] == [
        size,
        size // 10,
        size // 10,
    ]
