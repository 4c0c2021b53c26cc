"""Noun phrases in two languages at once: every word carries the concepts that it expresses.

A concept is one bit. An English and a French word are linked where they share a bit, so that the
gold alignment needs no second grammar: *du* in *le chat du voisin* carries the bit of *'s* and
the bit of *the*.
"""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from regard.corpora.english_forms import indefinite
from regard.corpora.english_french.lexicon import Adjective, Name, Noun
from regard.corpora.english_french.nouns import ASPIRATED

Word = tuple[str, int]
"""A word and its concepts."""

Words = list[Word]
Concepts = Iterator[int]

LE, LA, LES, DU, DE_LA, DES, DE = "<le>", "<la>", "<les>", "<du>", "<de la>", "<des>", "<de>"
"""Articles before they meet their neighbours: definite, partitive, indefinite plural."""

_FRENCH = {
    "the": (LE, LA, LES),
    "a": ("un", "une", DES),
    "some": (DU, DE_LA, DES),
    "any": (DU, DE_LA, DES),
    "this": ("ce", "cette", "ces"),
    "these": ("ce", "cette", "ces"),
    "my": ("mon", "ma", "mes"),
    "your": ("votre", "votre", "vos"),
    "his": ("son", "sa", "ses"),
    "her": ("son", "sa", "ses"),
    "our": ("notre", "notre", "nos"),
    "their": ("leur", "leur", "leurs"),
    "every": ("chaque", "chaque", "chaque"),
    "several": ("plusieurs", "plusieurs", "plusieurs"),
    "two": ("deux", "deux", "deux"),
    "three": ("trois", "trois", "trois"),
    "four": ("quatre", "quatre", "quatre"),
    "five": ("cinq", "cinq", "cinq"),
    "six": ("six", "six", "six"),
    "eight": ("huit", "huit", "huit"),
    "ten": ("dix", "dix", "dix"),
}
_BEFORE_VOWEL = {"ce": "cet", "ma": "mon", "sa": "son"}


class Agreement(NamedTuple):
    """What a verb and an adjective need to know of a subject: person 0–5, gender, number."""

    person: int
    feminine: bool
    plural: bool


class Pronoun(NamedTuple):
    """A personal pronoun; its gender and number are those of what it stands for."""

    english: str
    english_object: str
    agreement: Agreement
    personal: bool = True


class NounPhrase(NamedTuple):
    """A noun with what belongs to it; an owner (*Marie 's cat*) takes the determiner's place."""

    determiner: str
    noun: Noun
    plural: bool = False
    adjective: Adjective | None = None
    owner: "NounPhrase | Name | None" = None


class Both(NamedTuple):
    """Two joined by *and*."""

    first: NounPhrase | Name
    second: NounPhrase | Name


Nominal = NounPhrase | Name | Pronoun | Both


@cache
def elides(word: str) -> bool:
    """Whether a French word makes the *e* or *a* before it fall: *l' homme*, but *le hibou*.

    >>> [elides(word) for word in ("homme", "hibou", "école", "Anne", "chat", "y")]
    [True, False, True, True, False, True]
    """
    return word == "y" or (word[0].lower() in "aàâeéèêiîoôuœh" and word not in ASPIRATED)


def agreement(subject: Nominal) -> Agreement:
    """Person, gender and number; a mixed pair is masculine."""
    match subject:
        case Pronoun():
            return subject.agreement
        case Name():
            return Agreement(2, subject.feminine, False)
        case NounPhrase():
            return Agreement(5 if subject.plural else 2, subject.noun.feminine, subject.plural)
        case Both():
            women = agreement(subject.first).feminine and agreement(subject.second).feminine
            return Agreement(5, women, True)


def adjective_form(adjective: Adjective, feminine: bool, plural: bool) -> str:
    """The French form that agrees."""
    if plural:
        return adjective.feminine_plural if feminine else adjective.masculine_plural
    return adjective.feminine if feminine else adjective.masculine


def nominal(
    subject: NounPhrase | Name | Both, concepts: Concepts, scope: str = ""
) -> tuple[Words, Words]:
    """The English and the French words of a noun phrase, a name or a pair.

    ``scope`` is "negated" for the direct object of a negated verb, where *some* becomes *any* and
    the French indefinite articles become *de*; "asked" in a question.
    """
    match subject:
        case Name():
            concept = next(concepts)
            return [(subject.text, concept)], [(subject.text, concept)]
        case Both():
            first, premier = nominal(subject.first, concepts)
            second, deuxieme = nominal(subject.second, concepts)
            concept = next(concepts)
            return [*first, ("and", concept), *second], [*premier, ("et", concept), *deuxieme]
        case NounPhrase():
            return _noun_phrase(subject, concepts, scope)


def _noun_phrase(phrase: NounPhrase, concepts: Concepts, scope: str) -> tuple[Words, Words]:
    noun, plural, adjective = phrase.noun, phrase.plural, phrase.adjective
    concept = next(concepts)
    english = [(noun.english_plural if plural else noun.english, concept)]
    french = [(noun.french_plural if plural else noun.french, concept)]
    if adjective is not None:
        concept = next(concepts)
        english.insert(0, (adjective.english, concept))
        if adjective.before:
            vowel = not (plural or noun.feminine) and elides(noun.french)
            form = (
                adjective.before_vowel
                if vowel
                else adjective_form(adjective, noun.feminine, plural)
            )
            french.insert(0, (form, concept))
        else:
            french.append((adjective_form(adjective, noun.feminine, plural), concept))
    if phrase.owner is not None:
        return _owned(phrase, phrase.owner, english, french, concepts)
    _determine(phrase, english, french, concepts, scope)
    return english, french


def _owned(
    phrase: NounPhrase, by: NounPhrase | Name, english: Words, french: Words, concepts: Concepts
) -> tuple[Words, Words]:
    owner, possesseur = nominal(by, concepts)
    concept = next(concepts)
    article = LES if phrase.plural else LA if phrase.noun.feminine else LE
    return (
        [*owner, ("'s", concept), *english],
        [(article, concept), *french, ("de", concept), *possesseur],
    )


def _determine(
    phrase: NounPhrase, english: Words, french: Words, concepts: Concepts, scope: str
) -> None:
    """Put the determiner before both sides."""
    determiner, plural = phrase.determiner, phrase.plural
    concept = next(concepts)
    if determiner == "all":
        article = next(concepts)
        english[:0] = [("all", concept), ("the", article)]
        french[:0] = [("toutes" if phrase.noun.feminine else "tous", concept), (LES, article)]
        return
    if determiner == "many":
        english.insert(0, ("many", concept))
        french[:0] = [("beaucoup", concept), ("de", concept)]
        return
    if scope and determiner == "some":
        determiner = "any"
    form = _FRENCH[determiner][2 if plural else phrase.noun.feminine]
    if scope == "negated" and determiner in ("a", "any"):
        form = "de"
    elif form is DES and phrase.adjective is not None and phrase.adjective.before:
        form = DE
    elif form in _BEFORE_VOWEL and elides(french[0][0]):
        form = _BEFORE_VOWEL[form]
    english.insert(0, (indefinite(english[0][0]) if determiner == "a" else determiner, concept))
    french.insert(0, (form, concept))
