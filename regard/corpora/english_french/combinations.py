"""Which words a sentence joins: verbs with their objects, adjectives with their nouns."""

from collections.abc import Iterator

from regard.corpora.built_in_corpus import is_held_out
from regard.corpora.english_french.clauses import Clause, Described, Participant, There
from regard.corpora.english_french.lexicon import Name
from regard.corpora.english_french.phrases import Both, NounPhrase
from regard.corpora.english_french.sentences import Question, Sentence

Combination = tuple[str, str]


def unseen(sentence: Sentence | Question) -> bool:
    """Whether the sentence joins two words that training never joins."""
    clauses = (sentence.clause,) if isinstance(sentence, Question) else sentence.clauses
    return any(is_held_out(*pair) for clause in clauses for pair in _clause(clause))


def _clause(said: Clause | There) -> Iterator[Combination]:
    for place in said.places:
        yield from _participant(place.where)
    if isinstance(said, There):
        yield from _participant(said.what)
        return
    if not said.silent:
        yield from _participant(said.subject)
    if said.quality is not None:
        if isinstance(said.subject, NounPhrase):
            yield said.quality.adjective.english, said.subject.noun.english
        if said.quality.compared is not None:
            yield from _participant(said.quality.compared)
    for other in (said.object, said.receiver):
        if other is not None:
            yield from _participant(other)
    thing = said.object.phrase if isinstance(said.object, Described) else said.object
    if said.verb is not None and isinstance(thing, NounPhrase):
        yield said.verb.english, thing.noun.english
    if said.content is not None:
        yield from _clause(said.content)


def _participant(what: Participant) -> Iterator[Combination]:
    match what:
        case Described():
            yield from _participant(what.phrase)
            by = what.clause
            if what.role == "object":
                yield from _participant(by.subject)
                if by.verb is not None:
                    yield by.verb.english, what.phrase.noun.english
        case Both(first, second):
            yield from _participant(first)
            yield from _participant(second)
        case NounPhrase():
            if what.adjective is not None:
                yield what.adjective.english, what.noun.english
            if isinstance(what.owner, NounPhrase | Name):
                yield from _participant(what.owner)
