"""Properties of the translation corpus, read from its text and not from its grammar."""

import re
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.corpora import make_corpus
from regard.corpora.built_in_corpus import is_held_out
from regard.corpora.english_french.lexicon import lexicon
from regard.corpora.english_french.pairs import LONGEST
from regard.corpora.english_french.sentences import words
from regard.data import AlignedPair

WORDS = lexicon()
NOUNS = [noun for kind in WORDS.nouns.values() for noun in kind]
VERBS = [*WORDS.intransitive, *WORDS.transitive, *WORDS.oblique, *WORDS.giving, *WORDS.modal]
ENGLISH_CONTENT = (
    {form for noun in NOUNS for form in noun[:2]}
    | {adjective.english for adjective in WORDS.adjectives}
    | {form for verb in VERBS for form in (verb.english, verb.third, verb.past)}
    | {name.text for name in WORDS.names}
)
SMALL_WORDS = set(
    re.findall(
        r"\w+",
        """the a an this these my your his her our their some any every many several all two three
        four five six eight ten for to at of about""",
    )
)
MUTE = re.compile(r"[aeiouyhàâéèêëîïôûœ]", re.IGNORECASE)
NOT_MUTE = ("hibou", "hérisson", "héros", "haricot", "harpe", "huit")


@pytest.fixture(scope="module")
def corpus():
    return make_corpus("english_french", 3000, seed=3)


@pytest.fixture(scope="module")
def everything(corpus) -> list[AlignedPair]:
    return [*corpus.train, *corpus.valid, *corpus.test]


def vowel(word: str) -> bool:
    return bool(MUTE.match(word)) and not word.startswith(NOT_MUTE)


def test_sizes(corpus) -> None:
    assert [len(part) for part in (corpus.train, corpus.valid, corpus.test)] == [3000, 300, 300]
    assert corpus.pairs == []


def test_deterministic() -> None:
    assert make_corpus("english_french", 200, seed=5) == make_corpus("english_french", 200, seed=5)
    assert make_corpus("english_french", 200, seed=5) != make_corpus("english_french", 200, seed=6)


def test_distinct_and_unambiguous(everything) -> None:
    sources = [pair.source for pair in everything]
    assert len(set(sources)) == len(sources)


def test_test_words_are_known(corpus) -> None:
    for side in ("source", "target"):
        known = {word for pair in corpus.train for word in words(getattr(pair, side))}
        for pair in (*corpus.valid, *corpus.test):
            assert known.issuperset(words(getattr(pair, side)))


def test_a_third_of_the_test_is_longer(corpus) -> None:
    assert max(len(words(pair.source)) for pair in (*corpus.train, *corpus.valid)) <= LONGEST
    longer = sum(len(words(pair.source)) > LONGEST for pair in corpus.test)
    assert longer == 100


def read_combinations(sentence: list[str]) -> set[tuple[str, str]]:
    """Adjective–noun and verb–object combinations that stand next to each other in English."""
    noun = {form: entry.english for entry in NOUNS for form in entry[:2]}
    adjectives = {entry.english for entry in WORDS.adjectives}
    taking = [*WORDS.transitive, *WORDS.oblique, *WORDS.giving]
    verb = {form: entry.english for entry in taking for form in entry[:3]}
    between = adjectives | SMALL_WORDS
    found = set()
    for i, word in enumerate(sentence):
        if word in adjectives and sentence[i + 1] in noun:
            found.add((word, noun[sentence[i + 1]]))
        if word in ("is", "are", "was", "were", "be"):
            end = i - 1
            while sentence[end] in (
                "will",
                "not",
                "never",
                "often",
                "always",
                "sometimes",
                "rarely",
            ):
                end -= 1
            start = end - 1
            while start >= 0 and sentence[start].lower() in between:
                start -= 1
            alone = start < 0 or sentence[start] in ("because", "but", "when", "while", "so", ",")
            quality = next((w for w in sentence[i + 1 : i + 5] if w in adjectives), "")
            if alone and sentence[end] in noun and quality:
                found.add((quality, noun[sentence[end]]))
        if word in verb and sentence[i - 1].lower() not in {*between, "with", "in", "near", "on"}:
            rest = iter(sentence[i + 1 :])
            after = next((other for other in rest if other not in between), "")
            ahead = sentence[sentence.index(after, i) + 1] if after in noun else ""
            if after in noun and ahead != "'s" and sentence[i + 1] in between:
                found.add((verb[word], noun[after]))
    return found


def test_held_out_combinations_never_in_training(corpus) -> None:
    seen: Counter[tuple[str, str]] = Counter()
    for pair in (*corpus.train, *corpus.valid):
        seen.update(read_combinations(words(pair.source)))
    assert len(seen) > 500
    assert not [pair for pair in seen if is_held_out(*pair)]
    recombined = [
        any(is_held_out(*pair) for pair in read_combinations(words(example.source)))
        for example in corpus.test
        if len(words(example.source)) <= LONGEST
    ]
    assert sum(recombined) > 0.75 * len(recombined)


def test_links_are_in_range_and_cover_content(everything) -> None:
    for pair in everything:
        english, french = words(pair.source), words(pair.target)
        assert list(pair.links) == sorted(set(pair.links))
        assert all(i < len(english) and j < len(french) for i, j in pair.links)
        left, right = {i for i, _ in pair.links}, {j for _, j in pair.links}
        for i, word in enumerate(english):
            assert i in left or word not in ENGLISH_CONTENT, (pair, word)
            assert i in left or word in ("do", "does"), (pair, word)
        assert right == set(range(len(french))), pair


def test_names_and_marks_are_linked_to_themselves(everything) -> None:
    same = {name.text for name in WORDS.names} | {".", "?", ","}
    for pair in everything:
        english, french = words(pair.source), words(pair.target)
        for i, j in pair.links:
            if english[i] in same:
                assert french[j] == english[i]


def test_elision(everything) -> None:
    elidable = {"je", "me", "se", "ne", "le", "la", "de", "que"}
    for pair in everything:
        french = words(pair.target)
        for word, following in pairwise(french):
            if word.lower() in elidable:
                assert not vowel(following), pair.target
            if word.endswith("'"):
                assert vowel(following), pair.target
            if word.lower() == "ce":
                assert not vowel(following), pair.target


def test_determiners_agree(everything) -> None:
    """Only where a noun, or a noun after one adjective, follows at once."""
    gender = {noun.french: noun.feminine for noun in NOUNS if noun.french == noun.french_plural}
    gender |= {noun.french: noun.feminine for noun in NOUNS}
    plural = {noun.french_plural for noun in NOUNS} - {noun.french for noun in NOUNS}
    checked = 0
    for pair in everything:
        french = words(pair.target)
        for word, following in pairwise(french):
            word = word.lower()
            if word in ("un", "cet", "du", "au") and following in gender:
                assert not gender[following], pair.target
                checked += 1
            if word in ("une", "cette") and following in gender:
                assert gender[following], pair.target
                checked += 1
            if word in ("un", "une", "ce", "cet", "cette", "chaque", "ma", "sa", "votre"):
                assert following not in plural, pair.target
    assert checked > 500


def test_adjectives_after_the_noun_agree(everything) -> None:
    noun = {}
    for entry in NOUNS:
        if entry.french != entry.french_plural:
            noun[entry.french] = (entry.feminine, False)
            noun[entry.french_plural] = (entry.feminine, True)
    forms: dict[str, set[tuple[bool, bool]]] = {}
    for adjective in WORDS.adjectives:
        for form, features in zip(
            adjective[1:5],
            [(False, False), (True, False), (False, True), (True, True)],
            strict=True,
        ):
            forms.setdefault(form, set()).add(features)
    verbs = {form for verb in VERBS for form in verb.french.present}
    determined = {"un", "une", "le", "la", "les", "des", "mes", "mon", "ma", "ses", "son", "sa"}
    checked = 0
    for pair in everything:
        french = words(pair.target)
        for before, word, after in zip(french, french[1:], french[2:], strict=False):
            if before.lower() in determined and word in noun and after in forms.keys() - verbs:
                assert noun[word] in forms[after], pair.target
                checked += 1
    assert checked > 300


def test_negation_surrounds_the_verb(everything) -> None:
    for pair in everything:
        french = [word.lower() for word in words(pair.target)]
        opened = [i for i, word in enumerate(french) if word in ("ne", "n'")]
        closed = [i for i, word in enumerate(french) if word in ("pas", "jamais")]
        assert len(opened) == len(closed)
        assert all(
            first + 1 < second <= first + 4 for first, second in zip(opened, closed, strict=True)
        )


def test_verbs_agree_with_pronouns(everything) -> None:
    between = {"ne", "n'", "me", "m'", "te", "se", "s'", "le", "la", "l'", "les", "lui", "leur",
               "nous", "vous"}  # fmt: skip
    endings = {
        "Nous": ("ons", "sommes"),
        "Vous": ("ez", "êtes", "dites"),
        "Ils": ("nt",),
        "Elles": ("nt",),
        "Je": ("e", "s", "x", "ai"),
        "J'": ("e", "s", "x", "ai"),
    }
    checked = 0
    for pair in everything:
        first, *rest = words(pair.target)
        if first in endings:
            verb = next(word for word in rest if word not in between)
            assert verb.endswith(endings[first]), pair.target
            checked += 1
    assert checked > 300


def test_english_agrees(everything) -> None:
    bases = {verb.english for verb in VERBS} - {"can", "must"}
    thirds = {verb.third for verb in VERBS} - bases
    for pair in everything:
        first, second, *_ = words(pair.source)
        if first in ("He", "She"):
            assert second not in bases - {verb.past for verb in VERBS}, pair.source
        if first in ("I", "You", "We", "They"):
            assert second not in thirds, pair.source
        for word, following in pairwise(words(pair.source)):
            if word in ("a", "an", "A", "An"):
                sound = following[0] in "aeiou" and not following.startswith(("use", "uni"))
                assert (len(word) == 2) == (sound or following == "honest"), pair.source


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**9), size=st.integers(100, 200))
def test_any_seed(seed: int, size: int) -> None:
    corpus = make_corpus("english_french", size, seed)
    assert len(corpus.train) == size
    assert len(corpus.valid) == len(corpus.test) == size // 10
    sources = [pair.source for pair in (*corpus.train, *corpus.valid, *corpus.test)]
    assert len(set(sources)) == len(sources)
    known = {word for pair in corpus.train for word in words(pair.target)}
    assert all(known.issuperset(words(pair.target)) for pair in corpus.test)
