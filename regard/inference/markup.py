"""Markup that survives translation: inline tags are put around the aligned words.

A tag around source words goes around the target words that are linked to them, in several pieces
if other words stand between; tags stay nested as they were. Compare Müller (2017), Treatment of
Markup in Statistical Machine Translation, https://aclanthology.org/W17-4804.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from html import escape
from typing import Any

from regard.data import Pair
from regard.inference.agreement import choose, own_pairs
from regard.inference.alignments import align
from regard.inference.runs import Run
from regard.inference.tags import Tag, parse
from regard.tasks.task import Prediction

_IDENTITY = re.compile(r"""\s+(?:xml:)?id\s*=\s*("[^"]*"|'[^']*'|[^\s"'>]+)""", re.IGNORECASE)


def translate_markup(
    run: Run, lines: Sequence[str], kind: str, *, name: str = "line", first: int = 1, **options: Any
) -> list[str]:
    """The translation of each line with its tags; arguments as in `predict_markup`."""
    return [
        found.output
        for found in predict_markup(run, lines, kind, name=name, first=first, **options)
    ]


def predict_markup(
    run: Run, lines: Sequence[str], kind: str, *, name: str = "line", first: int = 1, **options: Any
) -> list[Prediction]:
    """The translation of each line with its tags, and all that `Run.predict` tells of it.

    Every line is parsed before any is translated: if one is not well-formed, nothing comes out.

    Args:
        run: a translator.
        lines: text with inline tags; what is opened in a line is closed in it.
        kind: html or xml.
        name: of the file, for errors.
        first: the number of the first line, for errors.
        options: those of `Run.predict`.
    """
    parsed = [parse(line, kind, f"{name}:{number}") for number, line in enumerate(lines, first)]
    found = run.predict([text for text, _ in parsed], **options)
    pairs = [Pair(text, one.output) for (text, _), one in zip(parsed, found, strict=True)]
    if not any(tags for _, tags in parsed):
        outputs = [_escaped(one.output.split()) for one in found]
    else:
        place = choose(run, own_pairs(run) or pairs)
        aligned = align(run, pairs, place, extract="cover")
        outputs = [
            transfer(tags, links.links, links.target)
            for (_, tags), links in zip(parsed, aligned, strict=True)
        ]
    return [replace(one, output=output) for one, output in zip(found, outputs, strict=True)]


def transfer(
    tags: Sequence[Tag], links: Collection[tuple[int, int]], target_words: Sequence[str]
) -> str:
    """The target words with the tags of the source words that they are linked to.

    >>> text, tags = parse("the <b>white</b> cat", "xml")
    >>> transfer(tags, {(0, 0), (1, 2), (2, 1)}, ["le", "chat", "blanc"])
    'le chat <b>blanc</b>'
    """
    covered = [_covered(tag, links, len(target_words)) for tag in tags]
    points = _points(tags, covered)
    if not target_words:
        return "".join(
            points[i] for i, tag in enumerate(tags) if i in points and _top(tags, i, points)
        )
    stacks = [
        [i for i in range(len(tags)) if word in covered[i]] for word in range(len(target_words))
    ]
    before: dict[int, list[int]] = {}
    after: dict[int, list[int]] = {}
    for i in sorted(points):
        if _top(tags, i, points):
            word, ahead = _anchor(tags[i], covered, links, len(target_words))
            (before if ahead else after).setdefault(word, []).append(i)
    return _written(tags, target_words, stacks, points, before, after)


def _covered(tag: Tag, links: Collection[tuple[int, int]], count: int) -> set[int]:
    """The target words of a tag: those linked to its words, and unlinked ones between them."""
    if tag.start == tag.end:
        return set()
    if tag.whole:
        return set(range(count))
    inside = {t for s, t in links if tag.start <= s < tag.end}
    linked = {t for _, t in links}
    found = set(inside)
    for left, right in zip(sorted(inside), sorted(inside)[1:], strict=False):
        between = set(range(left + 1, right))
        if not between & linked:
            found |= between
    return found


def _points(tags: Sequence[Tag], covered: Sequence[set[int]]) -> dict[int, str]:
    """What stands for each tag that has no target word, with all that is nested in it."""
    points: dict[int, str] = {}
    for i in reversed(range(len(tags))):
        if not covered[i]:
            nested = [points[k] for k, tag in enumerate(tags) if tag.parent == i and k in points]
            points[i] = tags[i].opening + "".join(nested) + tags[i].closing
    return points


def _top(tags: Sequence[Tag], i: int, points: Collection[int]) -> bool:
    return tags[i].parent not in points


def _anchor(
    tag: Tag,
    covered: Sequence[set[int]],
    links: Collection[tuple[int, int]],
    count: int,
) -> tuple[int, bool]:
    """The target word that a tag without words stands beside, and whether before it."""
    inside = covered[tag.parent] if tag.parent is not None else set(range(count))
    near = sorted((s, t) for s, t in links if t in inside)
    following = [(s, t) for s, t in near if s >= tag.start]
    preceding = [(s, t) for s, t in near if s < tag.start]
    if following and not (tag.glued and preceding):
        nearest = following[0][0]
        return min(t for s, t in following if s == nearest), True
    if preceding:
        nearest = preceding[-1][0]
        return max(t for s, t in preceding if s == nearest), False
    return (max(inside), False) if tag.start else (min(inside), True)


def _written(
    tags: Sequence[Tag],
    words: Sequence[str],
    stacks: Sequence[list[int]],
    points: dict[int, str],
    before: dict[int, list[int]],
    after: dict[int, list[int]],
) -> str:
    """Words and tags in order: of two neighbours' tags, the outer ones they share stay open."""
    pieces: list[str] = []
    opened: set[int] = set()
    for t, word in enumerate(words):
        stack = stacks[t]
        kept = _shared(stacks[t - 1], stack) if t else 0
        following = _shared(stack, stacks[t + 1]) if t + 1 < len(words) else 0
        waiting = list(before.get(t, []))
        for depth in range(kept, len(stack) + 1):
            here = [i for i in waiting if _depth(tags, i, stack) <= depth]
            pieces += [points[i] for i in here]
            waiting = [i for i in waiting if i not in here]
            if depth < len(stack):
                pieces.append(_opening(tags[stack[depth]], stack[depth] in opened))
                opened.add(stack[depth])
        pieces.append(escape(word, quote=False))
        waiting = list(after.get(t, []))
        for depth in range(len(stack), following - 1, -1):
            here = [i for i in waiting if _depth(tags, i, stack) >= depth or depth == following]
            pieces += [points[i] for i in here]
            waiting = [i for i in waiting if i not in here]
            if depth > following:
                pieces.append(tags[stack[depth - 1]].closing)
        pieces.append(" ")
    return "".join(pieces).rstrip(" ")


def _depth(tags: Sequence[Tag], i: int, stack: Sequence[int]) -> int:
    """How many tags of a word are open where a tag without words stands."""
    parent = tags[i].parent
    return stack.index(parent) + 1 if parent in stack else 0


def _shared(one: Sequence[int], other: Sequence[int]) -> int:
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count


def _opening(tag: Tag, again: bool) -> str:
    """The opening tag; a second piece of the same element must not have the same id."""
    return _IDENTITY.sub("", tag.opening) if again else tag.opening


def _escaped(words: Sequence[str]) -> str:
    return escape(" ".join(words), quote=False)
