"""English–French sentence pairs with gold word alignments, from a grammar of ours.

Training sees neither one in eight of the verb–object and adjective–noun combinations nor
sentences of more than 18 words; the test is made of just these, with words that training knows.
"""

from random import Random

from regard.corpora.built_in_corpus import (
    BuiltInCorpus,
    SplitExamples,
    SplitSizes,
    sample_distinct,
)
from regard.corpora.english_french.combinations import unseen
from regard.corpora.english_french.lexicon import lexicon
from regard.corpora.english_french.sentence_sampling import Sentences
from regard.corpora.english_french.sentences import Question, Sentence, translated, words
from regard.data.examples import AlignedPair

LONGEST = 18
"""The most English words of a training sentence."""

LONGEST_TEST = 28
"""The most English words of a test sentence."""

ALL_WORDS_AT = 200_000
"""The training size from which the whole lexicon is used; smaller corpora use a part of it."""


def sample_pairs(sizes: SplitSizes, seed: int) -> SplitExamples:
    """Training, validation and test pairs; a third of the test is longer than any training pair."""
    random = Random(f"translation {seed}")
    lexical = lexicon(min(1.0, (sizes.train / ALL_WORDS_AT) ** 0.5))
    known: tuple[set[str], set[str]] = (set(), set())
    seen: set[str] = set()
    plain = Sentences(lexical, random)
    novel = Sentences(lexical, random, testing=True)
    rich = Sentences(lexical, random, testing=True, rich=True)

    def ordinary() -> AlignedPair | None:
        return _between(plain.sentence(), 1, LONGEST)

    def recombined() -> AlignedPair | None:
        sentence = novel.sentence()
        pair = _between(sentence, 1, LONGEST) if unseen(sentence) else None
        return pair if pair and _known(pair, known) else None

    def longer() -> AlignedPair | None:
        pair = _between(rich.sentence(), LONGEST + 1, LONGEST_TEST)
        return pair if pair and _known(pair, known) else None

    def valid() -> AlignedPair | None:
        pair = ordinary()
        return pair if pair and _known(pair, known) else None

    for pair in sample_distinct(ordinary, _source, sizes.train, seen):
        known[0].update(words(pair.source))
        known[1].update(words(pair.target))
        yield "train", pair
    for pair in sample_distinct(valid, _source, sizes.valid, seen):
        yield "valid", pair
    long = sizes.test // 3
    for pair in sample_distinct(recombined, _source, sizes.test - long, seen):
        yield "test", pair
    for pair in sample_distinct(longer, _source, long, seen):
        yield "test", pair


def _between(sentence: Sentence | Question, shortest: int, longest: int) -> AlignedPair | None:
    source, target, links = translated(sentence)
    if not shortest <= source.count(" ") + 1 <= longest:
        return None
    return AlignedPair(source, target, "", links)


def _known(pair: AlignedPair, known: tuple[set[str], set[str]]) -> bool:
    return known[0].issuperset(words(pair.source)) and known[1].issuperset(words(pair.target))


def _source(pair: AlignedPair) -> str:
    return pair.source


def _lines(pair: AlignedPair) -> tuple[str, str, str]:
    return pair.source, pair.target, " ".join(f"{i}-{j}" for i, j in pair.links)


CORPUS = BuiltInCorpus(
    sample_pairs, size=10_000, suffixes=(".en", ".fr", ".alignments"), lines=_lines
)
