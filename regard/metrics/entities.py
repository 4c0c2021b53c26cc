"""Entity F1 as CoNLL defines it: an entity counts when its type and both its ends are right.

Tjong Kim Sang & De Meulder (2003), https://aclanthology.org/W03-0419.
"""

from collections.abc import Sequence
from typing import NamedTuple

from regard.errors import unknown
from regard.metrics.f1 import f1, overlaps, precision, recall
from regard.metrics.tally import Tally, same_lengths


class Entity(NamedTuple):
    """A typed span of words, from `start` up to but not including `end`."""

    type: str
    start: int
    end: int


def entities(tags: Sequence[str]) -> list[Entity]:
    """The entities of one sentence, read from BIO, BIOES or the older IOB tags.

    As conlleval does, a tag that continues nothing (an I after O, or after another type) begins
    an entity, so that any sequence of tags can be read.

    >>> entities(["B-PER", "I-PER", "O", "S-LOC"])
    [Entity(type='PER', start=0, end=2), Entity(type='LOC', start=3, end=4)]
    """
    spans: list[Entity] = []
    start, before, kind = 0, "O", ""
    for i, tag in enumerate([*tags, "O"]):
        mark, _, type_here = tag.partition("-")
        if mark not in ("B", "I", "O", "E", "S") or (mark == "O" and tag != "O"):
            raise ValueError(f"word {i}: " + unknown("tag", tag, ["O", "B-…", "I-…", "E-…", "S-…"]))
        begins = mark in "BS" or (mark in "IE" and (before in "OES" or kind != type_here))
        if before != "O" and (begins or mark == "O"):
            spans.append(Entity(kind, start, i))
        if begins:
            start = i
        before, kind = mark, type_here
    return spans


def entity_metrics(
    predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]], type: str | None = None
) -> dict[str, Tally]:
    """Tallies of `f1`, `precision` and `recall` of entities, of one type or (None) of all types."""
    same_lengths(predicted, gold)
    counts = overlaps([_spans(t, type) for t in predicted], [_spans(t, type) for t in gold])
    of = f" of {type}" if type is not None else ""
    return {
        "f1": Tally(f"entity F1{of}", counts, f1, unit="f1"),
        "precision": Tally(f"entity precision{of}", counts, precision, unit="share"),
        "recall": Tally(f"entity recall{of}", counts, recall, unit="share"),
    }


def entity_f1(predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> Tally:
    """Micro-averaged F1 of entities of all types."""
    return entity_metrics(predicted, gold)["f1"]


def entity_types(gold: Sequence[Sequence[str]]) -> list[str]:
    """The types that occur, in alphabetical order."""
    return sorted({entity.type for tags in gold for entity in entities(tags)})


def _spans(tags: Sequence[str], type: str | None) -> list[Entity]:
    return [entity for entity in entities(tags) if type is None or entity.type == type]
