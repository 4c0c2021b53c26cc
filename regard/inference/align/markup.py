"""Translation of text with markup: inline tags are placed around the aligned words.

A tag that encloses source words is placed around the target words that are linked to them, in
several pieces if other words stand between; nesting is preserved. A tag without words, or whose
words have no link, is a *point*: it is placed beside one target word. Compare Müller (2017),
Treatment of Markup in Statistical Machine Translation, https://aclanthology.org/W17-4804.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from html import escape
from typing import Any

from regard.data import Pair
from regard.inference.align.alignments import align
from regard.inference.align.choose_head import choose_head, validation_pairs
from regard.inference.align.inline_tags import Tag, parse
from regard.inference.run import Run
from regard.tasks.prediction import Prediction

_IDENTITY = re.compile(r"""\s+(?:xml:)?id\s*=\s*("[^"]*"|'[^']*'|[^\s"'>]+)""", re.IGNORECASE)


def translate_markup(
    run: Run, lines: Sequence[str], kind: str, *, name: str = "line", first: int = 1, **options: Any
) -> list[str]:
    """The translation of each line with its tags; arguments as in `predict_markup`."""
    predictions = predict_markup(run, lines, kind, name=name, first=first, **options)
    return [prediction.output for prediction in predictions]


def predict_markup(
    run: Run, lines: Sequence[str], kind: str, *, name: str = "line", first: int = 1, **options: Any
) -> list[Prediction]:
    """The translation of each line with its tags, with the details of `Run.predict`.

    Every line is parsed before any is translated: if one is not well-formed, none is translated.

    Args:
        run: a translator.
        lines: text with inline tags; each tag is closed in the line in which it is opened.
        kind: html or xml.
        name: the name of the file, for errors.
        first: the number of the first line, for errors.
        options: those of `Run.predict`.
    """
    parsed = [parse(line, kind, f"{name}:{number}") for number, line in enumerate(lines, first)]
    predictions = run.predict([text for text, _ in parsed], **options)
    translations = [prediction.output for prediction in predictions]
    if any(tags for _, tags in parsed):
        pairs = [Pair(text, output) for (text, _), output in zip(parsed, translations, strict=True)]
        place = choose_head(run, validation_pairs(run) or pairs)
        alignments = align(run, pairs, place, extract="cover")
        outputs = [
            transfer(tags, alignment.links, alignment.target)
            for (_, tags), alignment in zip(parsed, alignments, strict=True)
        ]
    else:
        outputs = [escape(" ".join(output.split()), quote=False) for output in translations]
    return [
        replace(prediction, output=output)
        for prediction, output in zip(predictions, outputs, strict=True)
    ]


def transfer(
    tags: Sequence[Tag], links: Collection[tuple[int, int]], target_words: Sequence[str]
) -> str:
    """The target words with the tags of the source words that they are linked to.

    >>> text, tags = parse("the <b>white</b> cat", "xml")
    >>> transfer(tags, {(0, 0), (1, 2), (2, 1)}, ["le", "chat", "blanc"])
    'le chat <b>blanc</b>'
    """
    enclosed = [_enclosed_words(tag, links, len(target_words)) for tag in tags]
    points = _points(tags, enclosed)
    # a point within another point is written with it
    outermost = [i for i in sorted(points) if tags[i].parent not in points]
    if not target_words:
        return "".join(points[i] for i in outermost)
    # tags are in the order in which they open, so each stack is from the outermost tag inwards
    stacks = [
        [i for i in range(len(tags)) if word in enclosed[i]] for word in range(len(target_words))
    ]
    before: dict[int, list[int]] = {}
    after: dict[int, list[int]] = {}
    for i in outermost:
        word, is_before = _anchor(tags[i], enclosed, links, len(target_words))
        (before if is_before else after).setdefault(word, []).append(i)
    return _join(tags, target_words, stacks, points, before, after)


def _enclosed_words(tag: Tag, links: Collection[tuple[int, int]], count: int) -> set[int]:
    """The target words of a tag: those linked to its words, and unlinked words between them."""
    if tag.start == tag.end:
        return set()
    if tag.whole:
        return set(range(count))
    inside = {t for s, t in links if tag.start <= s < tag.end}
    linked = {t for _, t in links}
    words = set(inside)
    for left, right in zip(sorted(inside), sorted(inside)[1:], strict=False):
        between = set(range(left + 1, right))
        if not between & linked:
            words |= between
    return words


def _points(tags: Sequence[Tag], enclosed: Sequence[set[int]]) -> dict[int, str]:
    """The text of each tag without target words, with the tags nested in it, by number."""
    points: dict[int, str] = {}
    for i in reversed(range(len(tags))):  # nested tags have higher numbers
        if not enclosed[i]:
            nested = [points[k] for k, tag in enumerate(tags) if tag.parent == i and k in points]
            points[i] = tags[i].opening + "".join(nested) + tags[i].closing
    return points


def _anchor(
    tag: Tag,
    enclosed: Sequence[set[int]],
    links: Collection[tuple[int, int]],
    count: int,
) -> tuple[int, bool]:
    """The target word that a point is placed beside, and whether before it.

    It is placed before the translation of the source word that follows it, or after that of the
    word that precedes it if it is glued to that word or nothing follows; always within its parent.
    """
    inside = enclosed[tag.parent] if tag.parent is not None else set(range(count))
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


def _join(
    tags: Sequence[Tag],
    words: Sequence[str],
    stacks: Sequence[list[int]],
    points: dict[int, str],
    before: dict[int, list[int]],
    after: dict[int, list[int]],
) -> str:
    """Words and tags as one text.

    The outer tags that two neighbouring words share stay open between them; the others are closed
    after the first word and opened before the second. Between these, each point is written at the
    depth of its parent.

    Args:
        tags: all tags of the line.
        words: the target words.
        stacks: for each word, the numbers of the tags that enclose it, from the outermost inwards.
        points: the text of each tag without words, by number.
        before: the points before each word.
        after: the points after each word.
    """
    pieces: list[str] = []
    opened_before: set[int] = set()
    for t, word in enumerate(words):
        stack = stacks[t]
        shared_left = _shared_depth(stacks[t - 1], stack) if t else 0
        shared_right = _shared_depth(stack, stacks[t + 1]) if t + 1 < len(words) else 0
        # `depth` tags are open: write the points that belong here, then open one more
        waiting = list(before.get(t, []))
        for depth in range(shared_left, len(stack) + 1):
            here = [i for i in waiting if _depth(tags, i, stack) <= depth]
            pieces += [points[i] for i in here]
            waiting = [i for i in waiting if i not in here]
            if depth < len(stack):
                pieces.append(_opening(tags[stack[depth]], stack[depth] in opened_before))
                opened_before.add(stack[depth])
        pieces.append(escape(word, quote=False))
        # the same backwards: write the points of this depth, then close the innermost tag
        waiting = list(after.get(t, []))
        for depth in range(len(stack), shared_right - 1, -1):
            here = [i for i in waiting if _depth(tags, i, stack) >= depth or depth == shared_right]
            pieces += [points[i] for i in here]
            waiting = [i for i in waiting if i not in here]
            if depth > shared_right:
                pieces.append(tags[stack[depth - 1]].closing)
        pieces.append(" ")
    return "".join(pieces).rstrip(" ")


def _depth(tags: Sequence[Tag], i: int, stack: Sequence[int]) -> int:
    """How many tags of a word are open where a point belongs: those up to its parent."""
    parent = tags[i].parent
    return stack.index(parent) + 1 if parent in stack else 0


def _shared_depth(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tags two stacks have in common from the outermost inwards."""
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count


def _opening(tag: Tag, again: bool) -> str:
    """The opening tag; a further piece of the same element must not repeat its id."""
    return _IDENTITY.sub("", tag.opening) if again else tag.opening
