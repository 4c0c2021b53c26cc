"""Inline tags of HTML and XML: the text of a line, and the words that each tag encloses."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import unescape

from regard.errors import RegardError, unknown
from regard.tasks.shared.trace_sides import word_spans

MARKUP_KINDS = ("html", "xml")
VOID_ELEMENTS = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param"}
    | {"source", "track", "wbr"}
)
"""Elements of HTML that are never closed."""

_ATTRIBUTE = r"""\s+[^\s"'<>/=]+(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'=<>`]+))?"""
_MARK = re.compile(
    r"(?P<comment><!--.*?-->|<\?.*?\?>|<!\[CDATA\[.*?\]\]>|<![^>]*>)"
    rf"|<(?P<close>/?)(?P<name>[A-Za-z_][\w.:-]*)(?P<attributes>(?:{_ATTRIBUTE})*)\s*(?P<empty>/?)>"
)
_ENTITY = re.compile(r"&(#[0-9]+|#x[0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]*);")
_XML_ENTITIES = ("amp", "lt", "gt", "quot", "apos")


@dataclass(frozen=True)
class Tag:
    """An element: how it is written, and which words it encloses."""

    opening: str
    closing: str
    """Empty for tags that are not closed, such as <br/>."""
    start: int
    end: int
    """The words from `start` to before `end`; equal where there are none."""
    parent: int | None = None
    """The number of the element that encloses it."""
    glued: bool = False
    """Whether it follows a word without a space."""
    whole: bool = False
    """Whether it encloses all words of the line."""


def parse(line: str, kind: str, where: str = "line") -> tuple[str, list[Tag]]:
    """The text without tags, entities resolved, and the tags in the order in which they open.

    >>> text, tags = parse("a <i>b &amp; c</i><br/>", "xml")
    >>> text, [(tag.opening, tag.start, tag.end) for tag in tags]
    ('a b & c', [('<i>', 1, 4), ('<br/>', 4, 4)])
    """
    if kind not in MARKUP_KINDS:
        raise RegardError(unknown("markup", kind, MARKUP_KINDS))
    pieces: list[str] = []
    length = end = 0  # of the text so far, and where its last tag ended in the line
    # tags, names and spans run in parallel, one per element in the order of opening tags; spans are
    # places in the text without tags
    spans: list[tuple[int, int]] = []
    tags: list[Tag] = []
    names: list[str] = []
    open_tags: list[int] = []  # a stack of numbers of elements
    for match in _MARK.finditer(line):
        plain = _text(line[end : match.start()], kind, where)
        pieces.append(plain)
        length += len(plain)
        end = match.end()
        raw, name = match[0], _name(match["name"] or "", kind)
        if match["close"]:
            if not open_tags or names[open_tags[-1]] != name:
                last = f"expected </{names[open_tags[-1]]}>" if open_tags else "no tag is open"
                raise RegardError(f"{where}: {raw} has no matching opening tag: {last}")
            closed = open_tags.pop()
            tags[closed] = replace(tags[closed], closing=raw)
            spans[closed] = spans[closed][0], length
            continue
        parent = open_tags[-1] if open_tags else None
        if not (match["comment"] or match["empty"] or (kind == "html" and name in VOID_ELEMENTS)):
            open_tags.append(len(tags))
        tags.append(Tag(raw, "", 0, 0, parent))
        names.append(name)
        spans.append((length, length))
    if open_tags:
        opening = tags[open_tags[-1]].opening
        raise RegardError(f"{where}: {opening} is not closed: tags end in the line they begin in")
    pieces.append(_text(line[end:], kind, where))
    text = "".join(pieces)
    return text, _with_words(text, tags, spans)


def _with_words(text: str, tags: Sequence[Tag], spans: Sequence[tuple[int, int]]) -> list[Tag]:
    """The tags with the words that they enclose; a tag within a word encloses the whole word."""
    words = word_spans(text)
    starts, ends = [start for start, _ in words], [end for _, end in words]
    placed = []
    for tag, (start, end) in zip(tags, spans, strict=True):
        first = bisect_right(ends, start)  # the first word that ends after the opening tag
        last = max(first, bisect_left(starts, end))  # up to those that begin before the closing tag
        if not tag.closing or not text[start:end].strip():
            first = last = bisect_left(starts, start)  # no words: it stands before this one
        glued = start > 0 and not text[start - 1].isspace()
        whole = bool(words) and (first, last) == (0, len(words))
        placed.append(replace(tag, start=first, end=last, glued=glued, whole=whole))
    return placed


def _name(name: str, kind: str) -> str:
    return name.lower() if kind == "html" else name


def _text(raw: str, kind: str, where: str) -> str:
    """Text between tags, with its entities resolved."""
    if kind == "html":
        stray = re.search(r"<[/!?A-Za-z][^\s>]*", raw)
        if stray is not None:
            raise RegardError(f"{where}: {stray[0]} is not a whole tag: write &lt; for a plain <")
        return unescape(raw)
    if "<" in raw:
        piece = raw[raw.index("<") :].split()[0][:20]
        raise RegardError(f"{where}: {piece} is not a whole tag: write &lt; for a plain <")
    for ampersand in re.finditer("&", raw):
        entity = _ENTITY.match(raw, ampersand.start())
        if entity is None or (entity[1][0] != "#" and entity[1] not in _XML_ENTITIES):
            piece = raw[ampersand.start() :].split()[0][:20]
            raise RegardError(
                f"{where}: {piece} is not an entity of XML: write &amp; for a plain &"
            )
    return unescape(raw)
