"""Random noun phrases, from a lexicon and a seeded generator."""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from regard.corpora.built_in_corpus import is_held_out
from regard.corpora.english_french.expressions import PRONOUNS
from regard.corpora.english_french.lexicon import Adjective, Lexicon, Name, Noun
from regard.corpora.english_french.phrases import Both, NounPhrase, Pronoun

T = TypeVar("T")
Apart = tuple[Sequence[T], Sequence[T]]
"""What training may see, and what it never sees."""

MASS = ("dish", "drink")
"""Kinds that are not counted: *some bread*, *du pain*."""

_DEFINITE = ("the", "the", "the", "this", "my", "your", "his", "her", "our", "their")
_DEFINITE_PLURAL = ("the", "the", "the", "these", "my", "your", "his", "her", "our", "their")
_COUNTED = ("two", "three", "four", "five", "six", "eight", "ten", "several", "many", "all")


class Phrases:
    """Samples noun phrases.

    With ``testing``, half of the combinations are ones that training never sees; ``richness``
    multiplies the probabilities of owners and relative clauses.
    """

    def __init__(self, words: Lexicon, random: Random, *, testing: bool, richness: float) -> None:
        self.words = words
        self.draw = random.random
        self.testing = testing
        self.richness = richness
        self.nouns = tuple(noun for kind in words.nouns.values() for noun in kind)
        self.adjectives = {noun.english: self._fitting(noun) for noun in self.nouns}

    def _fitting(self, noun: Noun) -> Apart[Adjective]:
        seen: list[Adjective] = []
        unseen: list[Adjective] = []
        for adjective in self.words.adjectives:
            if noun.kind in adjective.kinds:
                apart = is_held_out(adjective.english, noun.english)
                (unseen if apart else seen).append(adjective)
        return tuple(seen), tuple(unseen)

    def pick(self, choices: Sequence[T]) -> T:
        """One of the choices, uniformly."""
        return choices[int(self.draw() * len(choices))]

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.draw() < probability

    def combine(self, choices: Apart[T]) -> T | None:
        """One that training sees or, in testing, half the time one that it never sees."""
        seen, unseen = choices
        if self.testing and unseen and self.draw() < 0.5:
            return self.pick(unseen)
        return self.pick(seen) if seen else None

    def person(self) -> NounPhrase | Name:
        """Somebody, in the singular: a name, or a noun with a determiner."""
        if self.chance(0.35):
            return self.pick(self.words.names)
        noun = self.pick(self.words.nouns["person"])
        return self.phrase(noun, plural=False, definite=True)

    def pair(self) -> Both:
        """Two people."""
        first = self.pick(self.words.names)
        second = self.person()
        while second == first:
            second = self.person()
        return Both(first, second)

    def phrase(
        self, noun: Noun, *, plural: bool | None = None, definite: bool = False
    ) -> NounPhrase:
        """A noun with a determiner and perhaps an adjective or an owner.

        ``definite`` keeps to the determiners that negation leaves alone.
        """
        mass = noun.kind in MASS
        if plural is None:
            plural = not mass and self.chance(0.35)
        adjective = self.combine(self.adjectives[noun.english]) if self.chance(0.3) else None
        if self.chance(0.06 * self.richness):
            return NounPhrase("", noun, plural, adjective, self._owner())
        return NounPhrase(self._determiner(plural, mass, definite), noun, plural, adjective)

    def _owner(self) -> NounPhrase | Name:
        if self.chance(0.5):
            return self.pick(self.words.names)
        determiner = self.pick(("the", "my", "his", "her"))
        return NounPhrase(determiner, self.pick(self.words.nouns["person"]))

    def _determiner(self, plural: bool, mass: bool, definite: bool) -> str:
        if not definite and self.chance(0.45):
            if plural:
                return "some" if self.chance(0.5) else self.pick(_COUNTED)
            return "some" if mass else "every" if self.chance(0.1) else "a"
        return self.pick(_DEFINITE_PLURAL if plural else _DEFINITE)

    def subject(self, kinds: Sequence[str], definite: bool) -> NounPhrase | Name | Pronoun | Both:
        """Who does it: a pronoun, a name, a noun, or two people."""
        chance = self.draw()
        if chance < 0.3:
            return self.pick(PRONOUNS)
        if chance < 0.45:
            return self.pick(self.words.names)
        if chance < 0.5:
            return self.pair()
        noun = self.pick(self.words.nouns[self.pick(kinds)])
        return self.phrase(noun, definite=definite)
