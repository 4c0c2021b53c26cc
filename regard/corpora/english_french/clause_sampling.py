"""Random clauses that make sense enough: verbs with the objects that they take."""

from collections.abc import Sequence
from typing import NamedTuple

from regard.corpora.built_in_corpus import is_held_out
from regard.corpora.english_french.clauses import (
    Clause,
    Described,
    Participant,
    Place,
    Quality,
    There,
)
from regard.corpora.english_french.expressions import (
    FREQUENCIES,
    ON,
    PLACES,
    PRONOUNS,
    SURFACES,
    TIMES,
    UNDER,
    standing_for,
)
from regard.corpora.english_french.lexicon import Adjective, Lexicon, Name, Noun, Verb
from regard.corpora.english_french.phrase_sampling import Apart, Phrases
from regard.corpora.english_french.phrases import NounPhrase, Pronoun
from regard.corpora.english_french.verb_groups import BARE

_PRESENT_ONLY = ("know", "resemble", *BARE)
_NEVER_DENIED = ("every", "all", "several", "many")


class Taking(NamedTuple):
    """A verb with the nouns that it takes."""

    verb: Verb
    nouns: Apart[Noun]


class Clauses:
    """Samples clauses, with the noun phrases of a ``Phrases``."""

    def __init__(self, phrases: Phrases) -> None:
        words = phrases.words
        self.phrases, self.words = phrases, words
        self.pick, self.chance = phrases.pick, phrases.chance
        self.taking = _taking((*words.transitive, *words.oblique), words)
        self.giving_verbs = _taking(words.giving, words)
        self.doing = {
            kind: tuple(
                verb for verb in words.transitive if kind in verb.objects and not verb.preposition
            )
            for kind in words.nouns
        }
        self.living = tuple(verb for verb in words.intransitive if "animal" in verb.subjects)
        self.surfaces = tuple(noun for noun in phrases.nouns if noun.english in SURFACES)
        self.describable = tuple(
            noun for noun in phrases.nouns if phrases.adjectives[noun.english][0]
        )
        self.personal = tuple(entry for entry in words.adjectives if "person" in entry.kinds)

    def statement(self, subject: Participant | None = None, tense: str = "") -> Clause:
        """A clause of any kind, about the given person or one of its own."""
        chance = self.phrases.draw()
        if chance < 0.2:
            said = self.quality(subject, tense)
        elif chance < 0.45:
            said = self.intransitive(subject, tense)
        elif chance < 0.52:
            said = self.giving(subject, tense)
        else:
            said = self.transitive(subject, tense)
        if self.chance(0.08) and not isinstance(said.object, Described):
            said = said._replace(time=self.pick(TIMES[said.tense]))
        return said

    def quality(self, subject: Participant | None = None, tense: str = "") -> Clause:
        """Somebody or something is so."""
        if subject is None:
            subject = self._qualified()
        negation = self.negation()
        quality = Quality(self._adjective(subject))
        if self.chance(0.2):
            degree = "very" if negation else self.pick(("very", "too", "really"))
            quality = quality._replace(degree=degree)
        elif not negation and self.chance(0.12):
            quality = Quality(quality.adjective, self.pick(("as", "less")), self._compared(subject))
        frequency = None if quality.compared else self.frequency(negation)
        return Clause(subject, None, quality, tense or self.tense(None), negation, None, frequency)

    def about(self, noun: Noun, plural: bool, tense: str) -> Clause:
        """A quality of something named before: *it is red*."""
        pronoun = standing_for(noun.feminine, plural, noun.kind == "person")
        adjective = self.phrases.combine(self.phrases.adjectives[noun.english])
        quality = Quality(adjective or self.pick(self.personal))
        if self.chance(0.3):
            quality = quality._replace(degree=self.pick(("very", "too", "really")))
        return Clause(pronoun, None, quality, tense or self.tense(None))

    def _qualified(self) -> Participant:
        chance = self.phrases.draw()
        if chance < 0.15:
            return self.pick(PRONOUNS)
        if chance < 0.3:
            return self.pick(self.words.names)
        if chance < 0.35:
            return self.phrases.pair()
        phrase = self.phrases.phrase(self.pick(self.describable), definite=True)
        return phrase._replace(adjective=None)

    def _adjective(self, subject: Participant) -> Adjective:
        noun = subject.noun if isinstance(subject, NounPhrase) else None
        fitting = self.phrases.combine(self.phrases.adjectives[noun.english]) if noun else None
        return fitting or self.pick(self.personal)

    def _compared(self, subject: Participant) -> NounPhrase | Name:
        if isinstance(subject, NounPhrase) and subject.noun.kind != "person":
            noun = self.pick(self.words.nouns[subject.noun.kind])
            return self.phrases.phrase(noun, plural=False, definite=True)
        return self.phrases.person()

    def intransitive(self, subject: Participant | None = None, tense: str = "") -> Clause:
        """Somebody does something."""
        verb = self.pick(self.words.intransitive)
        negation = self.negation()
        if subject is None:
            subject = self._subject(verb, bool(negation))
        said = self._act(subject, verb, negation, tense)
        rate = min(0.9, 0.45 * self.phrases.richness)
        return said._replace(places=(self.place(subject),)) if self.chance(rate) else said

    def transitive(self, subject: Participant | None = None, tense: str = "") -> Clause:
        """Somebody does something to somebody or something."""
        verb, nouns = self.pick(self.taking)
        negation = self.negation()
        if subject is None:
            subject = self._subject(verb, bool(negation))
        said = self._act(subject, verb, negation, tense)
        if "person" in verb.objects and verb.preposition != "de" and self.chance(0.2):
            return said._replace(object=self._whom(subject))
        said = said._replace(object=self._object(verb, nouns, bool(negation)))
        if self.chance(0.1 * self.phrases.richness):
            said = said._replace(places=(self.place(subject),))
        return said

    def giving(self, subject: Participant | None = None, tense: str = "") -> Clause:
        """Somebody gives something to somebody."""
        verb, nouns = self.pick(self.giving_verbs)
        negation = self.negation()
        if subject is None:
            subject = self._subject(verb, bool(negation))
        said = self._act(subject, verb, negation, tense)
        noun = self.phrases.combine(nouns) or self.pick(nouns[0])
        thing = self._denied(self.phrases.phrase(noun)) if negation else self.phrases.phrase(noun)
        receiver = self._whom(subject) if self.chance(0.4) else self.phrases.person()
        return said._replace(object=thing, receiver=receiver)

    def then(self, said: Clause) -> Clause | None:
        """The same subject does something else to the same object: *and eats it*."""
        thing = said.object
        if not isinstance(thing, NounPhrase) or said.negation or said.modal:
            return None
        noun = thing.noun
        verb = self.pick(self.doing[noun.kind])
        if verb == said.verb or verb.english in _PRESENT_ONLY or not self._may(verb, noun):
            return None
        if said.tense == "past" and verb.past == verb.english:
            return None
        pronoun = standing_for(noun.feminine, thing.plural, noun.kind == "person")
        return Clause(said.subject, verb, None, said.tense, object=pronoun, silent=True)

    def there(self) -> There:
        """Something is somewhere."""
        kind = self.pick(("person", "animal", "object", "food", "vehicle"))
        phrase = self.phrases.phrase(self.pick(self.words.nouns[kind]))
        negated = self.chance(0.25)
        determiner = "some" if phrase.plural else "a"
        if phrase.plural and not negated and self.chance(0.5):
            determiner = self.pick(("two", "three", "four", "five", "six", "eight", "ten", "many"))
        phrase = phrase._replace(determiner=determiner, owner=None)
        return There(phrase, negated, (self.place(phrase),))

    def _subject(self, verb: Verb, negated: bool) -> Participant:
        subject = self.phrases.subject(verb.subjects, negated)
        if isinstance(subject, NounPhrase) and self.chance(0.08 * self.phrases.richness):
            return self.relative(subject)
        return subject

    def _act(self, subject: Participant, verb: Verb, negation: str, tense: str) -> Clause:
        modal = self.pick(self.words.modal) if self.chance(0.14) else None
        tense = self.tense(modal or verb, tense)
        return Clause(subject, verb, None, tense, negation, modal, self.frequency(negation))

    def relative(self, phrase: NounPhrase) -> NounPhrase | Described:
        """The phrase with a relative clause: what it does, or what somebody does to it."""
        noun = phrase.noun
        if phrase.owner is not None:
            return phrase
        if noun.kind in ("person", "animal") and self.chance(0.6):
            verb = self.pick(self.living if noun.kind == "animal" else self.words.intransitive)
            return Described(phrase, "subject", Clause(phrase, verb, tense=self.tense(verb)))
        if not self.doing[noun.kind]:
            return phrase
        verb = self.pick(self.doing[noun.kind])
        if not self._may(verb, noun):
            return phrase
        by = self.pick(PRONOUNS) if self.chance(0.5) else self.phrases.person()
        return Described(phrase, "object", Clause(by, verb, tense=self.tense(verb)))

    def _may(self, verb: Verb, noun: Noun) -> bool:
        """Whether the two may meet here: in training only if they are not held out."""
        return self.phrases.testing or not is_held_out(verb.english, noun.english)

    def _object(self, verb: Verb, nouns: Apart[Noun], negated: bool) -> NounPhrase | Described:
        noun = self.phrases.combine(nouns) or self.pick(nouns[0])
        if verb.english == "play":
            return NounPhrase("the", noun)
        definite = verb.objects == ("building",) or bool(verb.preposition and negated)
        phrase = self.phrases.phrase(noun, definite=definite)
        if negated:
            phrase = self._denied(phrase)
        elif self.chance(0.06 * self.phrases.richness):
            return self.relative(phrase)
        return phrase

    def _denied(self, phrase: NounPhrase) -> NounPhrase:
        living = phrase.noun.kind in ("person", "animal")
        if phrase.determiner in _NEVER_DENIED or (living and phrase.determiner in ("a", "some")):
            return phrase._replace(determiner="these" if phrase.plural else "this")
        return phrase

    def _whom(self, subject: Participant) -> Pronoun:
        """An object pronoun of another person than the subject."""
        chosen = self.pick(PRONOUNS)
        while subject == chosen or (
            isinstance(subject, Pronoun) and {subject.english, chosen.english} in ({"I", "we"},)
        ):
            chosen = self.pick(PRONOUNS)
        return chosen

    def tense(self, verb: Verb | None, wanted: str = "") -> str:
        """Present, past or future, where English can tell them apart."""
        if verb is not None and verb.english in _PRESENT_ONLY:
            return "present"
        chance = self.phrases.draw()
        tense = wanted or ("past" if chance < 0.3 else "future" if chance < 0.5 else "present")
        if tense == "past" and verb is not None and verb.past == verb.english:
            return "future"
        return tense

    def negation(self) -> str:
        """Denied, denied for ever, or not at all."""
        chance = self.phrases.draw()
        return "not" if chance < 0.18 else "never" if chance < 0.23 else ""

    def frequency(self, negation: str) -> tuple[str, str] | None:
        """How often; *not sometimes* is not said."""
        if negation == "never" or not self.chance(0.07):
            return None
        return self.pick(FREQUENCIES[:2] if negation else FREQUENCIES)

    def place(self, subject: Participant) -> Place:
        """Where, or with whom."""
        animal = isinstance(subject, NounPhrase) and subject.noun.kind in (
            "animal",
            "food",
            "object",
        )
        if animal and self.surfaces and self.chance(0.4):
            surface = self.phrases.phrase(self.pick(self.surfaces), plural=False, definite=True)
            return Place(ON if self.chance(0.5) else UNDER, surface)
        preposition, kinds = self.pick(PLACES)
        kind = self.pick(kinds)
        if kind == "person":
            return Place(preposition, self.phrases.person())
        noun = self.pick(self.words.nouns[kind])
        return Place(preposition, self.phrases.phrase(noun, plural=False, definite=True))


def _taking(verbs: Sequence[Verb], words: Lexicon) -> tuple[Taking, ...]:
    """The verbs that have objects in training, with those and the others."""
    rows = []
    for verb in verbs:
        nouns = [noun for kind in verb.objects for noun in words.nouns[kind]]
        seen = tuple(noun for noun in nouns if not is_held_out(verb.english, noun.english))
        unseen = tuple(noun for noun in nouns if is_held_out(verb.english, noun.english))
        if seen:
            rows.append(Taking(verb, (seen, unseen)))
    return tuple(rows)
