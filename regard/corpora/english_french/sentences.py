"""Whole sentences: clauses joined, reported or asked, then spelt, with the gold word alignment."""

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

from regard.corpora.english_french.clauses import (
    Clause,
    Fixed,
    There,
    clause,
    fixed,
    participant,
    predicate,
)
from regard.corpora.english_french.elision import join
from regard.corpora.english_french.phrases import Concepts, Words

CONJUNCTIONS = {
    "and": Fixed(("and",), ("et",), ((0,),)),
    "but": Fixed(("but",), ("mais",), ((0,),)),
    "because": Fixed(("because",), ("parce", "que"), ((0,), (0,))),
    "when": Fixed(("when",), ("quand",), ((0,),)),
    "while": Fixed(("while",), ("pendant", "que"), ((0,), (0,))),
    "so": Fixed(("so",), ("donc",), ((0,),)),
}
QUESTIONS = {"where": "où", "why": "pourquoi", "when": "quand", "how": "comment", "what": "que"}


class Sentence(NamedTuple):
    """Clauses and what stands between them; perhaps a time before them all."""

    clauses: tuple[Clause | There, ...]
    conjunctions: tuple[str, ...] = ()
    opening: Fixed | None = None


class Question(NamedTuple):
    """A clause that is asked: yes or no, or with a question word; *who* and *what* fill a gap."""

    clause: Clause
    word: str = ""


class Translated(NamedTuple):
    """Two sentences and the links between their words, counted from 0, English first."""

    source: str
    target: str
    links: tuple[tuple[int, int], ...]


def words(text: str) -> list[str]:
    """The words of a sentence: what stands between spaces.

    Punctuation, the English *'s* and elided French words (*l'*, *d'*, *qu'*) are words of their
    own. Gold alignments count these words from 0.

    >>> words("Marie n' aime pas l' hiver .")
    ['Marie', "n'", 'aime', 'pas', "l'", 'hiver', '.']
    """
    return text.split()


def translated(sentence: Sentence | Question) -> Translated:
    """Both languages as text, with the links between words that share a concept."""
    concepts: Concepts = _bits()
    if isinstance(sentence, Question):
        english, french = _question(sentence, concepts)
        english, french = _end(english, french, "?", concepts)
    else:
        english, french = _statement(sentence, concepts)
        english, french = _end(english, french, ".", concepts)
    french = join(french)
    links = [
        (i, j)
        for i, (_, meaning) in enumerate(english)
        if meaning
        for j, (_, sens) in enumerate(french)
        if meaning & sens
    ]
    return Translated(_spell(english), _spell(french), tuple(links))


def _bits() -> Iterator[int]:
    return map((1).__lshift__, count())


def _spell(sentence: Words) -> str:
    text = " ".join([word for word, _ in sentence])
    return text[0].upper() + text[1:]


def _end(english: Words, french: Words, mark: str, concepts: Concepts) -> tuple[Words, Words]:
    concept = next(concepts)
    return [*english, (mark, concept)], [*french, (mark, concept)]


def _statement(sentence: Sentence, concepts: Concepts) -> tuple[Words, Words]:
    english: Words = []
    french: Words = []
    if sentence.opening is not None:
        opening, debut = fixed(sentence.opening, concepts)
        english, french = _end(opening, debut, ",", concepts)
    for index, said in enumerate(sentence.clauses):
        if index:
            between, lien = fixed(CONJUNCTIONS[sentence.conjunctions[index - 1]], concepts)
            english += between
            french += lien
        more, autre = clause(said, concepts)
        english += more
        french += autre
    return english, french


def _question(question: Question, concepts: Concepts) -> tuple[Words, Words]:
    """*Does she sleep ?*, *Est-ce qu' elle dort ?*: the auxiliary is linked to *est-ce que*."""
    asked = next(concepts)
    if question.word == "who":
        group = predicate(question.clause, concepts)
        return [("who", asked), *group.front, *group.english], [("qui", asked), *group.french]
    by, par = participant(question.clause.subject, concepts)
    group = predicate(question.clause, concepts, asked=asked)
    english = [*group.front, *by, *group.english]
    french = [("est-ce", asked), ("que", asked), *par, *group.french]
    if question.word:
        concept = next(concepts)
        english.insert(0, (question.word, concept))
        french.insert(0, (QUESTIONS[question.word], concept))
    return english, french
