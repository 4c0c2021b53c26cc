"""Sentences with people, organisations, places and dates, where context decides the kind.

Many names are several things (*Paris*, *Washington*, *Ford*); one ordinary name in five appears
in the test alone, so that a list of names does not suffice.
"""

from random import Random
from zlib import crc32

from regard.corpora.built_in_corpus import (
    BuiltInCorpus,
    SplitExamples,
    SplitSizes,
    sample_distinct,
)
from regard.corpora.english_forms import indefinite
from regard.corpora.entities import entity_words
from regard.data.examples import Tagged

LONGEST = 20
"""The most words of a training sentence."""

Span = tuple[str, ...]


NAMES = {
    "first": entity_words.FIRST_NAMES,
    "surname": entity_words.SURNAMES,
    "town": entity_words.TOWNS,
    "country": entity_words.COUNTRIES,
    "firm": entity_words.FIRMS,
}
"""Ordinary names by kind."""

HELD_OUT = frozenset(
    name
    for names in NAMES.values()
    for name in names.split()
    if crc32(name.encode()) % 5 == 0 and name not in entity_words.AMBIGUOUS
)
"""Names that only the test shows: one in five, none of the ambiguous ones."""


class Entities:
    """Samples names and fills frames; ``testing`` prefers names that training never sees."""

    def __init__(self, random: Random, testing: bool) -> None:
        self.random, self.testing = random, testing
        self.names = {
            kind: [name for name in names.split() if name not in HELD_OUT]
            for kind, names in NAMES.items()
        }
        self.unseen = {
            kind: [name for name in names.split() if name in HELD_OUT]
            for kind, names in NAMES.items()
        }
        self.ambiguous = {
            kind: [name for name, kinds in entity_words.AMBIGUOUS.items() if kind in kinds.split()]
            for kind in NAMES
        }
        self.frames = [
            frame.split()
            for text in (entity_words.PERSON, entity_words.FIRM, entity_words.PLACE)
            for frame in text.strip().splitlines()
        ]
        self.slots = {slot: text.split() for slot, text in entity_words.SLOTS.items()}
        self.months = entity_words.MONTHS.split()
        self.weekdays = entity_words.WEEKDAYS.split()
        self.new = False

    def name(self, kind: str) -> str:
        """One name: ambiguous in three cases out of ten; in testing, often one never seen."""
        chance = self.random.random()
        if chance < 0.3:
            return self.random.choice(self.ambiguous[kind])
        if self.testing and chance < 0.7:
            self.new = True
            return self.random.choice(self.unseen[kind])
        return self.random.choice(self.names[kind])

    def person(self) -> Span:
        """A first name, a surname, or both."""
        chance = self.random.random()
        if chance < 0.4:
            return (self.name("first"),)
        if chance < 0.55:
            return (self.name("surname"),)
        return self.name("first"), self.name("surname")

    def firm(self) -> Span:
        """A company, a bank, a university or a club."""
        chance = self.random.random()
        if chance < 0.5:
            return (self.name("firm"),)
        if chance < 0.65:
            return self.name("firm"), self.random.choice(("Group", "Airlines", "Motors", "Media"))
        if chance < 0.75:
            return self.name("surname"), "&", "Sons"
        if chance < 0.85:
            return self.random.choice(("University", "Bank", "Museum")), "of", self.name("town")
        return self.name("town"), self.random.choice(("United", "Railways", "Insurance"))

    def place(self) -> Span:
        """A town, a country, or something called after one."""
        chance = self.random.random()
        if chance < 0.5:
            return (self.name("town"),)
        if chance < 0.75:
            return (self.name("country"),)
        if chance < 0.85:
            return self.random.choice(("New", "North", "Saint")), self.name("town")
        return self.random.choice(("Lake", "Mount", "Cape")), self.name("surname")

    def date(self) -> Span:
        """A day, with or without month and year."""
        random = self.random
        chance = random.random()
        if chance < 0.3:
            return (random.choice(self.weekdays),)
        day, month = str(random.randint(1, 28)), random.choice(self.months)
        if chance < 0.65:
            return day, month
        return day, month, str(random.randint(1950, 2020))

    def sentence(self) -> tuple[list[str], list[str]]:
        """A frame, filled: words and their tags."""
        words: list[str] = []
        tags: list[str] = []
        for part in self.random.choice(self.frames):
            start, brace, rest = part.partition("{")
            slot, _, end = rest.partition("}")
            kind = {"P": "PER", "O": "ORG", "L": "LOC", "D": "DATE"}.get(slot, "")
            if kind:
                span = self._span(kind)
                words.extend(span)
                tags.extend([f"B-{kind}"] + [f"I-{kind}"] * (len(span) - 1))
            else:
                words.append(
                    f"{start}{self.random.choice(self.slots[slot])}{end}" if brace else part
                )
                tags.append("O")
        for index, word in enumerate(words[:-1]):
            if word in ("a", "A") and tags[index] == "O":
                words[index] = word[0] + indefinite(words[index + 1])[1:]
        if tags[0] == "O":
            words[0] = words[0][0].upper() + words[0][1:]
        return words, tags

    def _span(self, kind: str) -> Span:
        draw = {"PER": self.person, "ORG": self.firm, "LOC": self.place, "DATE": self.date}[kind]
        return draw()

    def joined(self, count: int) -> tuple[list[str], list[str]]:
        """Several sentences as one."""
        words, tags = self.sentence()
        for _ in range(count - 1):
            more, further = self.sentence()
            if further[0] == "O" and more[0] not in ("Mr", "Mrs"):
                more[0] = more[0][0].lower() + more[0][1:]
            link = self.random.choice(("and", "but"))
            words = [*words[:-1], ",", link, *more]
            tags = [*tags[:-1], "O", "O", *further]
        return words, tags


def sample_sentences(sizes: SplitSizes, seed: int) -> SplitExamples:
    """Training, validation and test; a third of the test is longer than any training sentence."""
    random = Random(f"entities {seed}")
    plain, testing = Entities(random, testing=False), Entities(random, testing=True)
    known: set[str] = set()
    seen: set[str] = set()

    def ordinary() -> Tagged | None:
        words, tags = plain.joined(2 if random.random() < 0.15 else 1)
        return _tagged(words, tags) if len(words) <= LONGEST else None

    def valid() -> Tagged | None:
        example = ordinary()
        return example if example and known.issuperset(example.words) else None

    def renamed() -> Tagged | None:
        testing.new = False
        words, tags = testing.sentence()
        return _tagged(words, tags) if testing.new and _otherwise_known(words, known) else None

    def longer() -> Tagged | None:
        words, tags = testing.joined(random.choice((2, 3)))
        fits = LONGEST < len(words) <= 2 * LONGEST and _otherwise_known(words, known)
        return _tagged(words, tags) if fits else None

    for example in sample_distinct(ordinary, _text, sizes.train, seen):
        known.update(example.words)
        yield "train", example
    for example in sample_distinct(valid, _text, sizes.valid, seen):
        yield "valid", example
    long = sizes.test // 3
    for example in sample_distinct(renamed, _text, sizes.test - long, seen):
        yield "test", example
    for example in sample_distinct(longer, _text, long, seen):
        yield "test", example


def _tagged(words: list[str], tags: list[str]) -> Tagged:
    return Tagged(tuple(words), tuple(tags))


def _text(example: Tagged) -> str:
    return " ".join(example.words)


def _otherwise_known(words: list[str], known: set[str]) -> bool:
    return all(word in known or word in HELD_OUT for word in words)


def _block(sentence: Tagged) -> tuple[str]:
    """The lines of one sentence; the newline that follows them leaves a blank line between two."""
    words = zip(sentence.words, sentence.tags, strict=True)
    return ("".join(f"{word} {tag}\n" for word, tag in words),)


CORPUS = BuiltInCorpus(sample_sentences, size=5_000, suffixes=(".conll",), lines=_block)
