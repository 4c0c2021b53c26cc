"""English–French sentence pairs with gold word alignments, from a grammar of ours.

Training sees neither one in eight of the verb–object and adjective–noun combinations nor
sentences of more than 18 words; the test is made of just these, with words that training knows.
"""

from random import Random

from regard.data.builtin.combinations import unseen
from regard.data.builtin.lexicon import lexicon
from regard.data.builtin.parts import AlignedPair, Made, Sizes, distinct
from regard.data.builtin.sentence_sampling import Sentences
from regard.data.builtin.sentences import Question, Sentence, translated, words

LONGEST = 18
"""The most English words of a training sentence."""

LONGEST_TEST = 28
"""The most English words of a test sentence."""

ALL_WORDS_AT = 200_000
"""The training size from which the whole lexicon is used; smaller corpora use a part of it."""


def pairs(sizes: Sizes, seed: int) -> Made:
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

    for pair in distinct(ordinary, _source, sizes.train, seen):
        known[0].update(words(pair.source))
        known[1].update(words(pair.target))
        yield "train", pair
    for pair in distinct(valid, _source, sizes.valid, seen):
        yield "valid", pair
    long = sizes.test // 3
    for pair in distinct(recombined, _source, sizes.test - long, seen):
        yield "test", pair
    for pair in distinct(longer, _source, long, seen):
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
