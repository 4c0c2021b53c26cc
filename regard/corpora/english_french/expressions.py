"""Expressions that do not vary: times, places, adverbs, and the pronouns."""

from regard.corpora.english_french.clauses import Fixed
from regard.corpora.english_french.phrases import Agreement, Pronoun


def _same(english: str, french: str) -> Fixed:
    """Both sides as one unit: every word linked to every word."""
    left, right = tuple(english.split()), tuple(french.split())
    return Fixed(left, right, tuple(tuple(range(len(left))) for _ in right))


TIMES = {
    "present": (
        _same("now", "maintenant"),
        _same("today", "aujourd'hui"),
        Fixed(("every", "day"), ("tous", "les", "jours"), ((0,), (0,), (1,))),
        Fixed(("in", "the", "evening"), ("le", "soir"), ((0, 1), (2,))),
    ),
    "past": (
        _same("yesterday", "hier"),
        Fixed(("last", "night"), ("hier", "soir"), ((0,), (1,))),
        Fixed(("last", "week"), ("la", "semaine", "dernière"), ((0,), (1,), (0,))),
        Fixed(("this", "morning"), ("ce", "matin"), ((0,), (1,))),
    ),
    "future": (
        _same("tomorrow", "demain"),
        _same("soon", "bientôt"),
        Fixed(("next", "week"), ("la", "semaine", "prochaine"), ((0,), (1,), (0,))),
        _same("tonight", "ce soir"),
    ),
}
"""When, by tense."""

IN, NEAR, BEHIND = _same("in", "dans"), _same("near", "près de"), _same("behind", "derrière")
IN_FRONT, WITH = _same("in front of", "devant"), _same("with", "avec")
ON, UNDER = _same("on", "sur"), _same("under", "sous")

PLACES = (
    (IN, ("place", "building")),
    (NEAR, ("place", "building", "crossing")),
    (BEHIND, ("building", "opening")),
    (IN_FRONT, ("building", "opening")),
    (WITH, ("person",)),
)
"""Where and with whom, by the kinds that may follow."""

SURFACES = frozenset({"table", "chair", "bed", "sofa", "carpet", "box", "suitcase"})
"""What things and cats lie on and under."""

FREQUENCIES = (("often", "souvent"), ("always", "toujours"), ("sometimes", "parfois"),
               ("rarely", "rarement"))  # fmt: skip
"""Adverbs beside the verb; only the first two are denied."""

PRONOUNS = (
    Pronoun("I", "me", Agreement(0, False, False)),
    Pronoun("you", "you", Agreement(4, False, True)),
    Pronoun("he", "him", Agreement(2, False, False)),
    Pronoun("she", "her", Agreement(2, True, False)),
    Pronoun("we", "us", Agreement(3, False, True)),
    Pronoun("they", "them", Agreement(5, False, True)),
)
"""Persons: *I*, *we* and *they* are men here, and *you* several, unless context says otherwise."""

HE, SHE = PRONOUNS[2], PRONOUNS[3]


def standing_for(feminine: bool, plural: bool, person: bool) -> Pronoun:
    """The third-person pronoun for something already named."""
    if plural:
        return Pronoun("they", "them", Agreement(5, feminine, True), person)
    if person:
        return SHE if feminine else HE
    return Pronoun("it", "it", Agreement(2, feminine, False), False)
