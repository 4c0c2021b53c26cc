"""Files of word links: Pharaoh and NAACL, counted from 0 or from 1.

Pharaoh has one line per pair: `i-j` is a sure link, `ipj` or `i?j` a possible one. NAACL has one
line per link: `sentence i j`, then optionally S or P and a confidence; sentences count from 1
(Mihalcea & Pedersen 2003, https://aclanthology.org/W03-0301).
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from regard.errors import RegardError
from regard.metrics.alignment import GoldLinks, Link, parse_pharaoh

_NAACL = re.compile(r"(\d+)\s+(\d+)\s+(\d+)(?:\s+([SP]))?(?:\s+[\d.eE+-]+)?", re.ASCII)


MAX_PAIRS = 10_000_000
"""The most pairs of a file; a larger sentence number is taken for a mistake."""


class Gold(NamedTuple):
    """A file of links as written: counted from 0 or 1, and the line where each pair stands."""

    name: str
    sentences: list[GoldLinks]
    places: list[int]
    """The line of each pair's (last) link."""
    naacl: bool


def parse_links(lines: Iterable[str], name: str) -> Gold:
    """The links of a file, in the format that its first line with links has."""
    rows = list(lines)
    first = next((row for row in rows if row.strip()), "")
    if _NAACL.fullmatch(first.strip()):
        return _naacl(rows, name)
    sentences = []
    for number, row in enumerate(rows, 1):
        try:
            sentences.append(parse_pharaoh(row))
        except ValueError as error:
            raise RegardError(f"{name}:{number}: {error}") from error
    return Gold(name, sentences, list(range(1, len(rows) + 1)), naacl=False)


def _naacl(rows: Sequence[str], name: str) -> Gold:
    links: dict[int, tuple[set[Link], set[Link]]] = {}
    places: dict[int, int] = {}
    for number, row in enumerate(rows, 1):
        if not row.strip():
            continue
        parts = _NAACL.fullmatch(row.strip())
        if parts is None:
            raise RegardError(
                f"{name}:{number}: {row.strip()[:40]!r}: expected sentence, source word and target "
                "word, then S or P"
            )
        sentence = int(parts[1])
        if sentence == 0:
            raise RegardError(f"{name}:{number}: sentence 0: NAACL files count sentences from 1")
        if sentence > MAX_PAIRS:
            raise RegardError(
                f"{name}:{number}: sentence {parts[1]}: expected {MAX_PAIRS:,} at most"
            )
        sure, possible = links.setdefault(sentence, (set(), set()))
        (possible if parts[4] == "P" else sure).add((int(parts[2]), int(parts[3])))
        places[sentence] = number
    count = range(1, max(links, default=0) + 1)
    nothing: tuple[set[Link], set[Link]] = (set(), set())
    sets = [links.get(sentence, nothing) for sentence in count]
    return Gold(
        name,
        [GoldLinks(frozenset(sure), frozenset(sure | possible)) for sure, possible in sets],
        [places.get(sentence, 0) for sentence in count],
        naacl=True,
    )


def pad_links(gold: Gold, pairs: int) -> Gold:
    """Append pairs without links up to so many: NAACL files leave out pairs without links."""
    missing = max(0, pairs - len(gold.sentences)) if gold.naacl else 0
    empty = GoldLinks(frozenset(), frozenset())
    return gold._replace(
        sentences=[*gold.sentences, *[empty] * missing], places=[*gold.places, *[0] * missing]
    )


def zero_based_links(
    gold: Gold,
    lengths: Sequence[Link] | None = None,
    *,
    first: int | None = None,
    target_first: bool = False,
    option: str = "--indexed-from",
) -> list[GoldLinks]:
    """The links counted from 0, source first, one set per pair.

    Args:
        gold: what `parse_links` read.
        lengths: words of source and target of each pair, where they are known.
        first: what the file counts words from, 0 or 1 (default: inferred from the links).
        target_first: whether the file has the target word first.
        option: the command-line option that sets `first`, for messages.
    """
    sentences = pad_links(gold, len(lengths or ())).sentences
    if lengths is not None and len(sentences) != len(lengths):
        raise RegardError(
            f"{gold.name} has links for {len(sentences):,} pairs but there are {len(lengths):,}: "
            "expected one line per pair"
        )
    if target_first:
        sentences = [GoldLinks(_turn(sure), _turn(possible)) for sure, possible in sentences]
    if first is None:
        first = index_of_first_word(gold, sentences, lengths, option)
    moved = [GoldLinks(_down(sure, first), _down(some, first)) for sure, some in sentences]
    for number, (_, possible) in enumerate(moved):
        place = gold.places[number] if number < len(gold.places) else 0
        _check(possible, None if lengths is None else lengths[number], gold, place, first)
    return moved


def index_of_first_word(
    gold: Gold, sentences: Sequence[GoldLinks], lengths: Sequence[Link] | None, option: str
) -> int:
    """0 if a link has the index 0, 1 if one has the length of its sentence; otherwise an error.

    NAACL files count from 1 by definition, if nothing proves the contrary.
    """
    zero = any(0 in link for _, possible in sentences for link in possible)
    full = lengths is not None and any(
        s == length[0] or t == length[1]
        for (_, possible), length in zip(sentences, lengths, strict=True)
        for s, t in possible
    )
    if zero and full:
        raise RegardError(
            f"{gold.name}: some links count words from 0, others from 1: are these its "
            f"sentences, source first? {option} 0 or 1 shows where the bad lines are"
        )
    linked = any(possible for _, possible in sentences)
    if zero or not linked:
        return 0
    if full or gold.naacl or (lengths is not None and _outside(sentences, lengths)):
        return 1  # a link outside its sentence is wrong either way: `_check` reports it
    raise RegardError(
        f"{gold.name}: cannot infer whether words are counted from 0 or from 1: "
        f"give {option} 0 or {option} 1"
    )


def _outside(sentences: Sequence[GoldLinks], lengths: Sequence[Link]) -> bool:
    return any(
        s > length[0] or t > length[1]
        for (_, possible), length in zip(sentences, lengths, strict=True)
        for s, t in possible
    )


def _check(links: Iterable[Link], length: Link | None, gold: Gold, place: int, first: int) -> None:
    for s, t in links:
        if min(s, t) < 0:
            raise RegardError(
                f"{gold.name}:{place}: link {s + first}-{t + first}: words are counted from {first}"
            )
        if length is not None and (s >= length[0] or t >= length[1]):
            side, words = ("source", length[0]) if s >= length[0] else ("target", length[1])
            raise RegardError(
                f"{gold.name}:{place}: link {s + first}-{t + first}, counted from {first}: the "
                f"{side} sentence has {words} words"
            )


def _turn(links: Iterable[Link]) -> frozenset[Link]:
    return frozenset((t, s) for s, t in links)


def _down(links: Iterable[Link], first: int) -> frozenset[Link]:
    return frozenset((s - first, t - first) for s, t in links)
