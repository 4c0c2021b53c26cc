"""Clauses in two languages: subjects, objects, pronouns, places, qualities and relatives."""

from typing import NamedTuple

from regard.corpora.english_french.lexicon import Adjective, Name, Verb
from regard.corpora.english_french.phrases import (
    Agreement,
    Both,
    Concepts,
    NounPhrase,
    Pronoun,
    Words,
    adjective_form,
    agreement,
    nominal,
)
from regard.corpora.english_french.verb_groups import Action, Group, copula, verb_group

_SUBJECT = ("je", "tu", "il", "nous", "vous", "ils")
_SUBJECT_FEMININE = ("je", "tu", "elle", "nous", "vous", "elles")
_DIRECT = ("me", "te", "le", "nous", "vous", "les")
_INDIRECT = ("me", "te", "lui", "nous", "vous", "leur")
DEGREES = {"very": "très", "too": "trop", "really": "vraiment"}
COMPARISONS = {"as": ("as", "aussi"), "less": ("than", "moins"), "more": ("than", "plus")}


class Fixed(NamedTuple):
    """Words that go together: French word *j* is linked to the English places ``links[j]``."""

    english: tuple[str, ...]
    french: tuple[str, ...]
    links: tuple[tuple[int, ...], ...]


class Described(NamedTuple):
    """A noun phrase with a relative clause; ``role`` is what the noun is in it."""

    phrase: NounPhrase
    role: str
    clause: "Clause"


Participant = NounPhrase | Name | Pronoun | Both | Described


class Place(NamedTuple):
    """A preposition and what it governs."""

    preposition: Fixed
    where: NounPhrase | Name


class Quality(NamedTuple):
    """What the copula says: an adjective, how much, and compared with whom."""

    adjective: Adjective
    degree: str = ""
    compared: NounPhrase | Name | None = None


class Clause(NamedTuple):
    """A subject and what is said of it: a verb with its complements, or a quality.

    ``silent`` leaves the subject out where it is that of the clause before; ``content`` is what
    somebody says or thinks.
    """

    subject: Participant
    verb: Verb | None = None
    quality: Quality | None = None
    tense: str = "present"
    negation: str = ""
    modal: Verb | None = None
    frequency: tuple[str, str] | None = None
    object: Participant | None = None
    receiver: NounPhrase | Name | Pronoun | None = None
    places: tuple[Place, ...] = ()
    time: Fixed | None = None
    content: "Clause | None" = None
    silent: bool = False


class There(NamedTuple):
    """*There is a cat in the garden.*"""

    what: NounPhrase
    negated: bool = False
    places: tuple[Place, ...] = ()


def clause(said: Clause | There, concepts: Concepts) -> tuple[Words, Words]:
    """A statement in both languages."""
    if isinstance(said, There):
        return _there(said, concepts)
    english, french = ([], []) if said.silent else participant(said.subject, concepts)
    group = predicate(said, concepts)
    return english + group.front + group.english, french + group.french


def participant(what: Participant, concepts: Concepts, scope: str = "") -> tuple[Words, Words]:
    """A subject, or an object that is not a pronoun."""
    if isinstance(what, Pronoun):
        of, concept = what.agreement, next(concepts)
        forms = _SUBJECT_FEMININE if of.feminine else _SUBJECT
        return [(what.english, concept)], [(forms[of.person], concept)]
    if not isinstance(what, Described):
        return nominal(what, concepts, scope)
    english, french = nominal(what.phrase, concepts, scope)
    concept = next(concepts)
    if what.role == "subject":
        relative = "who" if what.phrase.noun.kind == "person" else "that"
        group = predicate(what.clause, concepts)
        by, par = [(relative, concept)], [("qui", concept)]
    else:
        by, par = participant(what.clause.subject, concepts)
        group = predicate(what.clause, concepts, gap=agreement(what.phrase))
        by, par = [("that", concept), *by], [("que", concept), *par]
    return english + by + group.front + group.english, french + par + group.french


def predicate(
    said: Clause, concepts: Concepts, gap: Agreement | None = None, asked: int = 0
) -> Group:
    """What is said of the subject.

    ``gap`` is the agreement of a direct object that a relative clause has moved before the verb
    (*la pomme qu' il a mangée*); ``asked`` is the concept of a question, 0 in a statement.
    """
    of = _agreement(said.subject)
    if said.quality is not None:
        group = copula(said.tense, said.negation, said.frequency, of, asked, concepts)
        _quality(said.quality, of, group, concepts)
    elif said.verb is not None:
        group = _action(said, said.verb, of, gap, asked, concepts)
    else:
        raise ValueError("a clause needs a verb or a quality, got neither")
    for place in said.places:
        _place(place, group, concepts)
    if said.time is not None:
        english, french = fixed(said.time, concepts)
        group.english.extend(english)
        group.french.extend(french)
    if said.content is not None:
        that = next(concepts)
        english, french = clause(said.content, concepts)
        group.english.extend([("that", that), *english])
        group.french.extend([("que", that), *french])
    return group


def fixed(words: Fixed, concepts: Concepts) -> tuple[Words, Words]:
    """An expression that does not vary."""
    bits = [next(concepts) for _ in words.english]
    french = [
        (word, sum(bits[place] for place in places))
        for word, places in zip(words.french, words.links, strict=True)
    ]
    return list(zip(words.english, bits, strict=True)), french


def _agreement(what: Participant) -> Agreement:
    return agreement(what.phrase if isinstance(what, Described) else what)


def _action(
    said: Clause, verb: Verb, of: Agreement, gap: Agreement | None, asked: int, concepts: Concepts
) -> Group:
    act = next(concepts)
    joint = next(concepts) if verb.particle and verb.preposition else act
    clitics: Words = []
    before = gap
    if isinstance(said.object, Pronoun):
        held = next(concepts)
        whom = said.object.agreement
        if verb.preposition:
            clitics.append((_INDIRECT[whom.person], held | (joint if verb.particle else 0)))
        else:
            before = whom
            form = "la" if whom.person == 2 and whom.feminine else _DIRECT[whom.person]
            clitics.append((form, held))
    if isinstance(said.receiver, Pronoun):
        received, receiving = next(concepts), next(concepts)
        clitics.append((_INDIRECT[said.receiver.agreement.person], received | receiving))
    action = Action(verb, act, said.tense, said.negation, said.modal, said.frequency)
    group = verb_group(action, of, clitics, before, asked, concepts)
    english, french = group.english, group.french
    if verb.particle:
        english.append((verb.particle, joint))
    if isinstance(said.object, Pronoun):
        english.append((said.object.english_object, held))
    elif said.object is not None:
        scope = "" if verb.preposition else "negated" if said.negation else "asked" if asked else ""
        objects, objets = participant(said.object, concepts, scope)
        english.extend(objects)
        if verb.preposition:
            french.append((verb.preposition, joint))
        french.extend(objets)
    if isinstance(said.receiver, Pronoun):
        english.extend([("to", received), (said.receiver.english_object, receiving)])
    elif said.receiver is not None:
        concept = next(concepts)
        receiver, destinataire = nominal(said.receiver, concepts)
        english.extend([("to", concept), *receiver])
        french.extend([("à", concept), *destinataire])
    return group


def _quality(quality: Quality, of: Agreement, group: Group, concepts: Concepts) -> None:
    concept, degree = next(concepts), next(concepts)
    english = [(quality.adjective.english, concept)]
    french = [(adjective_form(quality.adjective, of.feminine, of.plural), concept)]
    if quality.compared is not None:
        than, comparing = COMPARISONS[quality.degree]
        concept = next(concepts)
        other, autre = nominal(quality.compared, concepts)
        english = [(quality.degree, degree), *english, (than, concept), *other]
        french = [(comparing, degree), *french, ("que", concept), *autre]
    elif quality.degree:
        english.insert(0, (quality.degree, degree))
        french.insert(0, (DEGREES[quality.degree], degree))
    group.english.extend(english)
    group.french.extend(french)


def _place(place: Place, group: Group, concepts: Concepts) -> None:
    english, french = fixed(place.preposition, concepts)
    where, lieu = nominal(place.where, concepts)
    group.english.extend(english + where)
    group.french.extend(french + lieu)


def _there(said: There, concepts: Concepts) -> tuple[Words, Words]:
    there, being = next(concepts), next(concepts)
    english = [("there", there), ("are" if said.what.plural else "is", being)]
    what, quoi = nominal(said.what, concepts, "negated" if said.negated else "")
    if said.negated:
        no, determiner = next(concepts), quoi[0]
        what[0] = ("no", no)
        quoi[0] = (determiner[0], no)
        french = [("il", there), ("ne", no), ("y", there), ("a", being), ("pas", no)]
    else:
        french = [("il", there), ("y", there), ("a", being)]
    group = Group([], english + what, french + quoi)
    for place in said.places:
        _place(place, group, concepts)
    return group.english, group.french
