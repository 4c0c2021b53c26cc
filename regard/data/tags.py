"""Tags that mark spans: BIO, IOB1, BIOES and BILOU, recognized, converted, read as spans.

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
    """Words `start` to `end` (exclusive) form one entity of some kind."""

    kind: str
    start: int
    end: int


def marks_spans(tag: str) -> bool:
    """Whether a tag has the form of a span tag, such as `B-PER`."""
    return _MARKED.fullmatch(tag) is not None


def parse_tag(tag: str) -> tuple[str, str]:
    """Prefix and kind of a tag.

    >>> parse_tag("B-PER"), parse_tag("O")
    (('B', 'PER'), ('O', ''))
    """
    if tag == "O":
        return "O", ""
    if match := _MARKED.fullmatch(tag):
        return match[1], match[2]
    raise RegardError(f"tag {tag!r}: expected O, B-kind or I-kind (or E-, S-, L-, U-kind)")


def tag_scheme(tags: Iterable[str]) -> str:
    """The scheme of a set of tags: `bio`, `bioes` (also for BILOU), or `plain` for tags of words.

    >>> tag_scheme(["O", "B-PER"]), tag_scheme(["O", "S-PER"]), tag_scheme(["NN", "VB"])
    ('bio', 'bioes', 'plain')
    """
    distinct = set(tags)
    if not any(marks_spans(tag) for tag in distinct):
        return "plain"
    prefixes = {parse_tag(tag)[0] for tag in sorted(distinct)}
    return "bioes" if prefixes & set("ESLU") else "bio"


def spans(tags: Sequence[str]) -> list[Span]:
    """The spans that tags mark; as in the CoNLL evaluation, an I that continues nothing begins a
    span.

    >>> spans(["B-PER", "I-PER", "O", "I-LOC", "B-LOC"])
    [Span(kind='PER', start=0, end=2), Span(kind='LOC', start=3, end=4), Span(kind='LOC', ...)]
    """
    complete: list[Span] = []
    # `start` is where the open span began, -1 while no span is open.
    start, kind = -1, ""
    for i, tag in enumerate(tags):
        prefix, this = parse_tag(tag)
        continues = prefix in "IEL" and start >= 0 and this == kind
        if start >= 0 and not continues:
            complete.append(Span(kind, start, i))
            start = -1
        if prefix != "O" and not continues:
            start, kind = i, this
        if prefix in "ELSU":
            complete.append(Span(kind, start, i + 1))
            start = -1
    if start >= 0:
        complete.append(Span(kind, start, len(tags)))
    return complete


def bio(marked: Iterable[Span], length: int) -> tuple[str, ...]:
    """BIO tags of a sentence of `length` words with these spans."""
    tags = ["O"] * length
    for kind, start, end in marked:
        tags[start:end] = [f"B-{kind}"] + [f"I-{kind}"] * (end - start - 1)
    return tuple(tags)


def bioes(marked: Iterable[Span], length: int) -> tuple[str, ...]:
    """BIOES tags of a sentence of `length` words with these spans."""
    tags = ["O"] * length
    for kind, start, end in marked:
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


def first_fault(tags: Sequence[str]) -> tuple[int, str] | None:
    """The first position where tags violate their scheme, and what is wrong there.

    >>> first_fault(["O", "I-PER"])
    (1, 'I-PER begins a span: expected B-PER')
    """
    strict = to_bioes(tags) if tag_scheme(tags) == "bioes" else to_bio(tags)
    bilou = str.maketrans("LU", "ES")
    for i, (tag, expected) in enumerate(zip(tags, strict, strict=True)):
        if tag[:1].translate(bilou) + tag[1:] != expected:
            begins = expected[0] in "BS" and tag[0] in "IEL"
            problem = "begins a span" if begins else "does not fit its neighbours"
            return i, f"{tag} {problem}: expected {expected}"
    return None
