"""Opinions where negation and intensity decide, with minimal pairs, from a grammar of ours.

A word of praise counts +, a word of blame −; a negator turns the sign, two turn it back; a weak,
plain or strong word counts 1, 2 or 3, one that is denied less. Of two opinions joined by *but*
the stronger wins. Praise and blame are equally frequent and equally often denied, so that a
negator by itself says nothing, and no sum of word weights can classify both texts of every pair.
"""

from collections.abc import Callable, Iterator
from functools import partial
from math import ceil
from random import Random
from typing import NamedTuple

from regard.corpora.built_in_corpus import (
    BuiltInCorpus,
    SplitExamples,
    SplitSizes,
    is_held_out,
    sample_distinct,
)
from regard.corpora.sentiment import opinion_words
from regard.data.examples import Labelled

POSITIVE, NEGATIVE = "positive", "negative"
LONGEST = 18
"""The most words of a training text."""

ALL_WORDS_AT = 2_000
"""The training size from which all words are used."""

_COPULAS = ("was", "is", "was", "is", "seemed", "felt")


class Opinion(NamedTuple):
    """One clause: what is judged, how, and what denies it inside and outside."""

    topic: str
    subject: str
    copula: str
    adjective: str
    sign: int
    intensity: str = ""
    negator: str = ""
    frame: tuple[str, tuple[str, ...], str] | None = None
    frame_negator: str = ""


def score(opinion: Opinion) -> int:
    """Sign and strength of one opinion.

    >>> great = Opinion("film", "the film", "was", "great", 1)
    >>> [score(great), score(great._replace(negator="not"))]
    [2, -2]
    >>> score(great._replace(negator="not", intensity="really"))
    -1
    """
    denials = bool(opinion.negator) + bool(opinion.frame_negator)
    if opinion.intensity in opinion_words.WEAK:
        strength = 1
    elif denials:
        strength = 1 if opinion.intensity or denials > 1 else 2
    else:
        strength = 3 if opinion.intensity else 2
    return opinion.sign * strength * (1, -1, 1)[denials]


def text(opinion: Opinion) -> str:
    """The words of one opinion.

    >>> text(Opinion("food", "the soup", "was", "bland", -1, "really", "not"))
    'the soup was not really bland'
    """
    before = opinion.copula in ("was", "is")
    verb = (opinion.copula, opinion.negator) if before else (opinion.negator, opinion.copula)
    parts = [opinion.subject, *verb, opinion.intensity, opinion.adjective]
    if opinion.frame is not None:
        start, _, end = opinion.frame
        parts[:0] = [start, opinion.frame_negator, end]
    return " ".join(part for part in parts if part)


def negators(opinion: Opinion) -> tuple[str, ...]:
    """All that denies the adjective."""
    return tuple(word for word in (opinion.negator, opinion.frame_negator) if word)


def unseen(opinion: Opinion) -> bool:
    """Whether it denies an adjective with a negator that training never uses on it."""
    return any(is_held_out(negator, opinion.adjective) for negator in negators(opinion))


class Opinions:
    """Samples opinions and texts made of them."""

    def __init__(self, random: Random, share: float = 1.0) -> None:
        self.random = random
        self.topics = {topic: _cut(entry, share) for topic, entry in opinion_words.TOPICS.items()}
        self.words = {
            (topic, sign): _cut(table["any"], share) + _cut(table[topic], share)
            for sign, table in ((1, opinion_words.GOOD), (-1, opinion_words.BAD))
            for topic in self.topics
        }
        self.fillers = _cut(opinion_words.FILLERS, share)
        self.denials = _cut(opinion_words.DENIALS, share)
        self.endings = _cut(opinion_words.ENDINGS, share)

    def opinion(self, denied: float = 0.4) -> Opinion:
        """One clause, denied so often; sometimes inside a frame."""
        random = self.random
        topic = random.choice(list(self.topics))
        sign = random.choice((1, -1))
        subject = (
            f"{random.choice(('the', 'the', 'this', 'their'))} {random.choice(self.topics[topic])}"
        )
        opinion = Opinion(
            topic, subject, random.choice(_COPULAS), random.choice(self.words[topic, sign]), sign
        )
        if random.random() < 0.25:
            opinion = self._framed(opinion, random.random() < denied)
        if random.random() < denied:
            return self._denied(opinion)
        return self._intensified(opinion)

    def _framed(self, opinion: Opinion, denied: bool) -> Opinion:
        frame = self.random.choice(opinion_words.FRAMES)
        negator = self.random.choice(frame[1]) if denied else ""
        return opinion._replace(frame=frame, frame_negator=negator)

    def _denied(self, opinion: Opinion) -> Opinion:
        be = opinion.copula in ("was", "is")
        choices = opinion_words.NEGATORS if be else opinion_words.NEGATORS_BEFORE
        negator = self.random.choice(choices)
        really = negator in ("not", "never") and be and self.random.random() < 0.4
        intensity = self.random.choice(opinion_words.STRONG_DENIED) if really else ""
        return opinion._replace(negator=negator, intensity=intensity)

    def _intensified(self, opinion: Opinion) -> Opinion:
        choices = opinion_words.STRONG_DENIED if opinion.frame_negator else opinion_words.STRONG
        chance = self.random.random()
        if chance < 0.3:
            return opinion._replace(intensity=self.random.choice(choices))
        if chance < 0.4 and not opinion.frame_negator:
            return opinion._replace(intensity=self.random.choice(opinion_words.WEAK))
        return opinion

    def text(self, clauses: int) -> tuple[str, int, bool]:
        """Opinions joined by *and* or *but*: their words, their sum, whether any is unseen."""
        first = self.opinion()
        said, total, new = text(first), score(first), unseen(first)
        before = total
        for _ in range(clauses - 1):
            opinion = self.opinion()._replace(frame=None, frame_negator="")
            value = score(opinion)
            said = f"{said} {'and' if before * value > 0 else 'but'} {text(opinion)}"
            total, new, before = total + value, new or unseen(opinion), value
        return said, total, new

    def surroundings(self, neutral: bool = False) -> tuple[str, str]:
        """Words before and after that change nothing, though some hold a negator."""
        random = self.random
        chance = random.random()
        before = after = ""
        if chance < 0.2:
            before = f"{random.choice(self.fillers)} , "
        elif chance < 0.3 and not neutral:
            before = f"{random.choice(self.denials)} "
        if random.random() < 0.2:
            after = f" {random.choice(self.endings)}"
        return before, after

    def pair(self) -> tuple[str, str, int] | None:
        """Two texts that differ by one negator, new on its adjective, and the sign of the first."""
        opinion = self.opinion(denied=0.0)
        if opinion.intensity and opinion.intensity not in opinion_words.STRONG_DENIED:
            return None
        chance = self.random.random()
        if opinion.frame is not None and chance < 0.4:
            denied = opinion._replace(frame_negator=self.random.choice(opinion.frame[1]))
        else:
            if opinion.frame is not None and chance < 0.7:
                opinion = opinion._replace(frame_negator=self.random.choice(opinion.frame[1]))
            denied = self._denied(opinion)
            opinion = opinion._replace(intensity=denied.intensity)
        if not is_held_out(denied.frame_negator or "-", denied.adjective) and not is_held_out(
            denied.negator or "-", denied.adjective
        ):
            return None
        around = self.surroundings(neutral=True)
        return _sentence(text(opinion), around), _sentence(text(denied), around), score(opinion)


def sample_reviews(sizes: SplitSizes, seed: int) -> SplitExamples:
    """Training, validation, test and minimal pairs, each half positive."""
    random = Random(f"sentiment {seed}")
    opinions = Opinions(random, min(1.0, (sizes.train / ALL_WORDS_AT) ** 0.5))
    known: set[str] = set()
    seen: set[str] = set()

    def draw(label: str, novel: bool = False, longer: bool = False) -> Labelled | None:
        said, total, new = opinions.text(3 if longer else 2 if random.random() < 0.15 else 1)
        sentence = _sentence(said, opinions.surroundings())
        length = sentence.count(" ") + 1
        fits = length > LONGEST if longer else length <= LONGEST and new == novel
        if not fits or total == 0 or label != (POSITIVE if total > 0 else NEGATIVE):
            return None
        return Labelled(sentence, (label,))

    def test(label: str, novel: bool, longer: bool = False) -> Labelled | None:
        example = draw(label, novel, longer)
        return example if example and known.issuperset(str(example.text).split()) else None

    for example in _balanced(draw, sizes.train, seen):
        known.update(str(example.text).split())
        yield "train", example
    for example in _balanced(partial(test, novel=False), sizes.valid, seen):
        yield "valid", example
    long = sizes.test // 3
    for example in _balanced(partial(test, novel=True), sizes.test - long, seen):
        yield "test", example
    for example in _balanced(partial(test, novel=False, longer=True), long, seen):
        yield "test", example
    for example in _minimal_pairs(opinions, sizes.test, known, seen):
        yield "pairs", example


def _sentence(said: str, around: tuple[str, str]) -> str:
    whole = f"{around[0]}{said}{around[1]} ."
    return whole[0].upper() + whole[1:]


def _text(example: Labelled) -> str:
    return str(example.text)


def _balanced(
    draw: Callable[[str], Labelled | None], count: int, seen: set[str]
) -> Iterator[Labelled]:
    """As many positive as negative examples (one more if the count is odd), by turns."""
    halves = (
        sample_distinct(partial(draw, POSITIVE), _text, (count + 1) // 2, seen),
        sample_distinct(partial(draw, NEGATIVE), _text, count // 2, seen),
    )
    for turn in range(count):
        yield next(halves[turn % 2])


def _minimal_pairs(
    opinions: Opinions, count: int, known: set[str], seen: set[str]
) -> Iterator[Labelled]:
    """``count`` pairs; the plain text is positive in every second one."""

    def draw(sign: int) -> tuple[Labelled, Labelled] | None:
        pair = opinions.pair()
        if pair is None or pair[2] * sign < 0 or pair[1] in seen:
            return None
        if not known.issuperset(pair[0].split() + pair[1].split()):
            return None
        labels = (POSITIVE, NEGATIVE)[:: 1 if sign > 0 else -1]
        return Labelled(pair[0], (labels[0],)), Labelled(pair[1], (labels[1],))

    halves = [
        sample_distinct(partial(draw, sign), _first_text, (count + (sign > 0)) // 2, seen)
        for sign in (1, -1)
    ]
    for turn in range(count):
        plain, denied = next(halves[turn % 2])
        seen.add(_text(denied))
        yield plain
        yield denied


def _first_text(pair: tuple[Labelled, Labelled]) -> str:
    return _text(pair[0])


def _cut(entries: str, share: float) -> list[str]:
    words = [entry.strip() for entry in entries.split(",")]
    return words[: max(3, ceil(share * len(words)))]


def _line(review: Labelled) -> tuple[str]:
    return (f"{review.text}\t{review.labels[0]}",)


CORPUS = BuiltInCorpus(
    sample_reviews, size=10_000, suffixes=(".tsv",), lines=_line, header="text\tlabel\n"
)
