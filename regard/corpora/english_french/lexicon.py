"""The words of the bilingual grammar as records, and which combinations training never sees."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from regard.corpora import english_forms
from regard.corpora.english_french import adjectives, french_forms, nouns, verbs
from regard.corpora.english_french.french_forms import Conjugation

FEWEST = 2
"""However small the corpus, so many words of each list remain."""


class Noun(NamedTuple):
    """A noun in both languages, in both numbers."""

    english: str
    english_plural: str
    french: str
    french_plural: str
    feminine: bool
    kind: str


class Name(NamedTuple):
    """A first name, the same in both languages."""

    text: str
    feminine: bool


class Adjective(NamedTuple):
    """An adjective, its four French forms, and the one before a vowel (*bel*)."""

    english: str
    masculine: str
    feminine: str
    masculine_plural: str
    feminine_plural: str
    before_vowel: str
    before: bool
    kinds: tuple[str, ...]


class Verb(NamedTuple):
    """A verb in both languages, with what it asks of its neighbours."""

    english: str
    third: str
    past: str
    particle: str
    french: Conjugation
    preposition: str
    complement: str
    etre: bool
    reflexive: bool
    subjects: tuple[str, ...]
    objects: tuple[str, ...]


@dataclass(frozen=True)
class Lexicon:
    """The words that a corpus uses."""

    nouns: dict[str, tuple[Noun, ...]]
    names: tuple[Name, ...]
    adjectives: tuple[Adjective, ...]
    intransitive: tuple[Verb, ...]
    transitive: tuple[Verb, ...]
    oblique: tuple[Verb, ...]
    giving: tuple[Verb, ...]
    modal: tuple[Verb, ...]
    saying: tuple[Verb, ...]


def lexicon(share: float = 1.0) -> Lexicon:
    """The words of the grammar, or the most ordinary ``share`` of each list."""
    return Lexicon(
        nouns={kind: tuple(_nouns(kind, _cut(text, share))) for kind, text in nouns.NOUNS.items()},
        names=tuple(_names(_cut(nouns.NAMES, share))),
        adjectives=tuple(_adjectives(share)),
        intransitive=_verbs(verbs.INTRANSITIVE, {}, share),
        transitive=tuple(
            verb
            for subjects, by_object in verbs.TRANSITIVE.items()
            for verb in _verbs({subjects: ""}, by_object, share)
        ),
        oblique=_verbs({"person": ""}, verbs.OBLIQUE, share),
        giving=_verbs({"person": ""}, verbs.GIVING, share),
        modal=_verbs({"person animal": verbs.MODAL}, {}, share),
        saying=_verbs({"person": verbs.SAYING}, {}, share),
    )


def _cut(text: str, share: float) -> list[str]:
    entries = [entry.strip() for entry in text.split(",")]
    return entries[: max(FEWEST, ceil(share * len(entries)))]


def _nouns(kind: str, entries: Iterable[str]) -> Iterable[Noun]:
    for entry in entries:
        english, french, gender = entry.split()
        singular, _, plural = english.partition("/")
        masculine, _, french_plural = french.partition("/")
        yield Noun(
            singular,
            plural or english_forms.plural(singular),
            masculine,
            french_plural or french_forms.plural(masculine),
            gender == "f",
            kind,
        )


def _names(entries: Iterable[str]) -> Iterable[Name]:
    for entry in entries:
        text, gender = entry.split()
        yield Name(text, gender == "f")


def _adjectives(share: float) -> Iterable[Adjective]:
    kinds: dict[str, list[str]] = {}
    for listed, text in adjectives.ADJECTIVES.items():
        for entry in _cut(text, share):
            kinds.setdefault(entry, []).extend(listed.split())
    for entry, fitting in kinds.items():
        english, forms = entry.split()
        masculine, *others = forms.split("/")
        feminine = others[0] if others else french_forms.feminine(masculine)
        yield Adjective(
            english,
            masculine,
            feminine,
            french_forms.plural(masculine),
            french_forms.plural(feminine),
            others[1] if len(others) > 1 else masculine,
            english in adjectives.BEFORE,
            tuple(dict.fromkeys(fitting)),
        )


def _verbs(
    by_subject: Mapping[str, str], by_object: Mapping[str, str], share: float
) -> tuple[Verb, ...]:
    """Verbs from a table by subjects, or (for one kind of subject) by objects."""
    if not by_object:
        rows = [(subjects, "", text) for subjects, text in by_subject.items()]
    else:
        rows = [(next(iter(by_subject)), objects, text) for objects, text in by_object.items()]
    return tuple(
        _verb(entry, tuple(subjects.split()), tuple(objects.split()))
        for subjects, objects, text in rows
        for entry in _cut(text, share)
    )


def _verb(entry: str, subjects: tuple[str, ...], objects: tuple[str, ...]) -> Verb:
    english, french = entry.split()
    forms, _, particle = english.partition("+")
    base, _, past = forms.partition("/")
    parts = french.split("+")
    reflexive = parts[0] in ("se", "s'")
    infinitive, *rest = parts[reflexive:]
    return Verb(
        base,
        english_forms.third_person(base),
        past or english_forms.past(base),
        particle,
        french_forms.conjugate(infinitive),
        next((part for part in rest if part in ("à", "de")), ""),
        "besoin" if "besoin" in rest else "",
        "être" in rest or reflexive,
        reflexive,
        subjects,
        objects,
    )
