"""Tags that mark spans: BIO, IOB1, BIOES and BILOU, told apart, converted, read as spans.

BIO (Ramshaw and Marcus 1995, https://aclanthology.org/W95-0107): B begins a span, I continues it,
O is outside. IOB1 writes B only where two spans of one kind touch. BIOES adds E for the last word
and S for a span of one word; BILOU calls these L and U.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from regard.errors import RegardError

_MARKED = re.compile(r"([BIESLU])-(.+)", re.DOTALL)


class Span(NamedTuple):
    """Words `start` to `end` (excluded) are one thing of some kind."""

    kind: str
    start: int
    end: int


def marks_spans(tag: str) -> bool:
    """Whether a tag is written as the mark of a span, such as `B-PER`."""
    return _MARKED.fullmatch(tag) is not None


def parse_tag(tag: str) -> tuple[str, str]:
    """Mark and kind of a tag.

    >>> parse_tag("B-PER"), parse_tag("O")
    (('B', 'PER'), ('O', ''))
    """
    if tag == "O":
        return "O", ""
    if match := _MARKED.fullmatch(tag):
        return match[1], match[2]
    raise RegardError(f"tag {tag!r}: expected O, B-kind or I-kind (or E-, S-, L-, U-kind)")


def scheme(tags: Iterable[str]) -> str:
    """Which scheme a set of tags is of: `bio`, `bioes` (or BILOU), or `plain` for tags of words.

    >>> scheme(["O", "B-PER"]), scheme(["O", "S-PER"]), scheme(["NN", "VB"])
    ('bio', 'bioes', 'plain')
    """
    known = set(tags)
    if not any(marks_spans(tag) for tag in known):
        return "plain"
    marks = {parse_tag(tag)[0] for tag in sorted(known)}
    return "bioes" if marks & set("ESLU") else "bio"


def spans(tags: Sequence[str]) -> list[Span]:
    """The spans that tags mark, read as the CoNLL evaluation does: an I that continues nothing
    begins a span.

    >>> spans(["B-PER", "I-PER", "O", "I-LOC", "B-LOC"])
    [Span(kind='PER', start=0, end=2), Span(kind='LOC', start=3, end=4), Span(kind='LOC', ...)]
    """
    found: list[Span] = []
    start, kind = -1, ""
    for i, tag in enumerate(tags):
        mark, this = parse_tag(tag)
        continues = mark in "IEL" and start >= 0 and this == kind
        if start >= 0 and not continues:
            found.append(Span(kind, start, i))
            start = -1
        if mark != "O" and not continues:
            start, kind = i, this
        if mark in "ELSU":
            found.append(Span(kind, start, i + 1))
            start = -1
    if start >= 0:
        found.append(Span(kind, start, len(tags)))
    return found


def bio(found: Iterable[Span], length: int) -> tuple[str, ...]:
    """BIO tags of a sentence of `length` words with these spans."""
    tags = ["O"] * length
    for kind, start, end in found:
        tags[start:end] = [f"B-{kind}"] + [f"I-{kind}"] * (end - start - 1)
    return tuple(tags)


def bioes(found: Iterable[Span], length: int) -> tuple[str, ...]:
    """BIOES tags of a sentence of `length` words with these spans."""
    tags = ["O"] * length
    for kind, start, end in found:
        inner = [f"I-{kind}"] * (end - start - 2)
        several = [f"B-{kind}", *inner, f"E-{kind}"]
        tags[start:end] = several if end - start > 1 else [f"S-{kind}"]
    return tuple(tags)


def to_bio(tags: Sequence[str]) -> tuple[str, ...]:
    """Any of the schemes as BIO.

    >>> to_bio(["I-PER", "I-PER", "S-LOC"])
    ('B-PER', 'I-PER', 'B-LOC')
    """
    return bio(spans(tags), len(tags))


def to_bioes(tags: Sequence[str]) -> tuple[str, ...]:
    """Any of the schemes as BIOES.

    >>> to_bioes(["B-PER", "I-PER", "B-LOC"])
    ('B-PER', 'E-PER', 'S-LOC')
    """
    return bioes(spans(tags), len(tags))


def fault(tags: Sequence[str]) -> tuple[int, str] | None:
    """The first place where tags break the strict form of their scheme, and what is wrong there.

    >>> fault(["O", "I-PER"])
    (1, 'I-PER begins a span: expected B-PER')
    """
    strict = to_bioes(tags) if scheme(tags) == "bioes" else to_bio(tags)
    bilou = str.maketrans("LU", "ES")
    for i, (tag, expected) in enumerate(zip(tags, strict, strict=True)):
        if tag[:1].translate(bilou) + tag[1:] != expected:
            begins = expected[0] in "BS" and tag[0] in "IEL"
            return (
                i,
                f"{tag} {'begins a span' if begins else 'is out of place'}: expected {expected}",
            )
    return None
