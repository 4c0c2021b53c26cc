"""The verb with its auxiliaries, negation and pronouns, where the two languages differ most.

English asks and denies with *do*; French puts *ne … pas* around the finite verb and the object
pronoun before it. An auxiliary is linked to the French word that carries its tense (*did* to *a*,
*will* to the future form); *do* and *does* of a denial have no counterpart and no link.
"""

from typing import NamedTuple

from regard.corpora.english_french.french_forms import agree, conjugate
from regard.corpora.english_french.lexicon import Verb
from regard.corpora.english_french.phrases import Agreement, Concepts, Words

AVOIR, ETRE = conjugate("avoir"), conjugate("être")
BARE = ("can", "must")
"""English modals that neither inflect nor take *do*."""

_WAS = ("étais", "étais", "était", "étions", "étiez", "étaient")
_REFLEXIVE = ("me", "te", "se", "nous", "vous", "se")
_SECOND = {"not": "pas", "never": "jamais"}


class Action(NamedTuple):
    """A verb, what happens to it, and the concept that it expresses."""

    verb: Verb
    concept: int
    tense: str = "present"
    negation: str = ""
    modal: Verb | None = None
    frequency: tuple[str, str] | None = None


class Group(NamedTuple):
    """The words of a verb: the English auxiliary apart, since a question puts it first."""

    front: Words
    english: Words
    french: Words


def copula(
    tense: str, negation: str, frequency: tuple[str, str] | None, of: Agreement, asked: int,
    concepts: Concepts,
) -> Group:  # fmt: skip
    """*is*, *was*, *will be* with negation and adverb."""
    being = next(concepts)
    if tense == "future":
        will = next(concepts)
        front, after = [("will", will | asked)], [("be", being)]
        finite = (ETRE.future[of.person], being | will)
    else:
        single = of.person == 2
        if tense == "past":
            form, forme = ("was" if single or of.person == 0 else "were"), _WAS[of.person]
        else:
            form, forme = (
                ("am" if of.person == 0 else "is" if single else "are"),
                ETRE.present[of.person],
            )
        front, after, finite = [(form, being | asked)], [], (forme, being)
    between, ne, second = _adverbs(negation, frequency, concepts)
    return Group(front, between + after, [*ne, finite, *second])


def verb_group(
    action: Action, of: Agreement, clitics: Words, before: Agreement | None, asked: int,
    concepts: Concepts,
) -> Group:  # fmt: skip
    """A verb, alone or under a modal.

    ``clitics`` are the French object pronouns; ``before`` the agreement of a direct object that
    precedes the verb, which a participle with *avoir* takes on; ``asked`` the concept of the
    question, 0 in a statement.
    """
    verb, modal = action.verb, action.modal
    lead = modal or verb
    leading = next(concepts) if modal else action.concept
    front, main, tensed = _english_lead(action, lead, leading, of, asked, concepts)
    between, ne, second = _adverbs(action.negation, action.frequency, concepts)
    if between and between[0][0] == "not" and front[0][0] == "can":
        front, between = [("cannot", front[0][1] | between[0][1])], between[1:]
    english = between + main
    moved = before if modal is None else None
    finite, rest = _french_lead(action.tense, lead, leading, tensed, of, moved)
    if verb.reflexive:
        clitics = [(_REFLEXIVE[of.person], action.concept), *clitics]
    if modal is None:
        french = [*ne, *clitics, finite, *second, *rest]
    else:
        to = 0
        link: Words = []
        if modal.particle:
            to = next(concepts)
            english.append((modal.particle, to))
        if modal.preposition:
            link, to = [(modal.preposition, to)], 0
        english.append((verb.english, action.concept))
        infinitive = (verb.french.infinitive, action.concept | to)
        french = [*ne, finite, *second, *rest, *link, *clitics, infinitive]
    if verb.complement:
        french.append((verb.complement, action.concept))
    return Group(front, english, french)


def _english_lead(
    action: Action, lead: Verb, leading: int, of: Agreement, asked: int, concepts: Concepts
) -> tuple[Words, Words, int]:
    """The auxiliary, the first full verb, and the concept of a tense that has a word of its own."""
    if lead.english in BARE:
        return [(lead.english, leading | asked)], [], 0
    base = [(lead.english, leading)]
    if action.tense == "future":
        tensed = next(concepts)
        return [("will", tensed | asked)], base, tensed
    if asked or action.negation == "not":
        if action.tense == "past":
            tensed = next(concepts)
            return [("did", tensed | asked)], base, tensed
        return [("does" if of.person == 2 else "do", asked)], base, 0
    if action.tense == "past":
        return [], [(lead.past, leading)], 0
    return [], [(lead.third, leading)] if of.person == 2 else base, 0


def _french_lead(
    tense: str, lead: Verb, leading: int, tensed: int, of: Agreement, before: Agreement | None
) -> tuple[tuple[str, int], Words]:
    """The finite verb and, in the past, the participle."""
    if tense == "present":
        return (lead.french.present[of.person], leading), []
    if tense == "future":
        return (lead.french.future[of.person], leading | tensed), []
    auxiliary = ETRE if lead.etre else AVOIR
    agreeing = of if lead.etre else before
    participle = lead.french.participle
    if agreeing is not None:
        participle = agree(participle, agreeing.feminine, agreeing.plural)
    return (auxiliary.present[of.person], tensed or leading), [(participle, leading)]


def _adverbs(
    negation: str, frequency: tuple[str, str] | None, concepts: Concepts
) -> tuple[Words, Words, Words]:
    """English words after the auxiliary, French *ne*, and French words after the finite verb."""
    english: Words = []
    ne: Words = []
    second: Words = []
    if negation:
        concept = next(concepts)
        english.append((negation, concept))
        ne.append(("ne", concept))
        second.append((_SECOND[negation], concept))
    if frequency is not None:
        concept = next(concepts)
        english.append((frequency[0], concept))
        second.append((frequency[1], concept))
    return english, ne, second
