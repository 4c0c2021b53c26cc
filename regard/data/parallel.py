"""Parallel text: two files whose lines translate each other, one by one."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

import numpy as np

from regard.data.cells import text_cells
from regard.data.columns import SOURCE, TARGET
from regard.data.examples import Pair
from regard.data.formats import ENDINGS, TABLES, accept, complain_if_empty, form
from regard.data.lines import lines
from regard.data.sources import Data, Source, resolve
from regard.data.summary import Summary
from regard.data.tables import table
from regard.errors import RegardError

Sides = list[tuple[Source, Source]]


def read_pairs(
    data: Data,
    source: str | None = None,
    target: str | None = None,
    summary: Summary | None = None,
) -> Iterator[Pair]:
    """Sentence pairs: from two text files (or two globs), or from tables with both sides.

    `source` and `target` name the columns (or endings, for text files), and so the direction.
    """
    summary = Summary() if summary is None else summary
    sources = resolve(data)
    forms = [form(s) for s in sources]
    endings = {s.suffix for s in sources}
    if len(set(forms)) > 1 or (len(endings) == 2 and not endings & ENDINGS.keys()):
        # a text in each of two files, whatever their first lines look like
        forms = [form(s, sniff=False) for s in sources]
    accept(sources, forms, ("text", *TABLES), "pairs: two text files, or a table of both sides")
    if "text" in forms:
        accept(sources, forms, ("text",), "two text files, or tables, not both at once")
        for left, right in sides(sources, source, target):
            yield from _text_pairs(left, right, summary)
        return
    roles = [SOURCE.named(source), TARGET.named(target)]
    for origin, found in zip(sources, forms, strict=True):
        for where, values in table(origin, roles, found):
            one, other = text_cells(values, roles, where)
            if summary.admit(origin.name, one, other) and one and other:
                yield Pair(one, other, where)
        complain_if_empty(origin.name, summary, "source<TAB>target in each line")


def _text_pairs(left: Source, right: Source, summary: Summary) -> Iterator[Pair]:
    for number, one, other in line_pairs(left, right):
        one, other = one and one.strip(), other and other.strip()
        if summary.admit(left.name, one, other) and one and other:
            yield Pair(one, other, f"{left.name}:{number}")
    complain_if_empty(left.name, summary, "a sentence a line")


def sides(sources: Sequence[Source], source: str | None, target: str | None) -> Sides:
    """Which file is whose other half: one after the other, two globs, or two endings.

    `source` and `target` choose the direction by ending (`de`) or by number (`1`).
    """
    first = [s for s in sources if s.argument == sources[0].argument]
    second = [s for s in sources if s.argument != sources[0].argument]
    endings = list(dict.fromkeys(s.suffix for s in sources))
    if len({s.argument for s in sources}) != 2 or len(first) != len(second):
        if len(endings) == 2:
            first, second = ([s for s in sources if s.suffix == e] for e in endings)
        if len(endings) != 2 or len(first) != len(second):
            raise RegardError(_not_two(sources))
    if source is None and target is None:
        turned = False
    else:
        turned = _turned(first[0], second[0], source, target)
    return list(zip(second, first, strict=True) if turned else zip(first, second, strict=True))


def line_pairs(left: Source, right: Source) -> Iterator[tuple[int, str | None, str | None]]:
    """Line number and both lines, to the end of both files; unequal line counts are an error."""
    for one, other in zip_longest(lines(left), lines(right)):
        if one is None or other is None:
            raise RegardError(unequal(left, right))
        yield one[0], one[1], other[1]


def unequal(left: Source, right: Source) -> str:
    """The message for two files of different lengths, with the place where they seem to part."""
    a, b = _lengths(left), _lengths(right)
    counts = f"{left.name} has {len(a):,} lines but {right.name} has {len(b):,}"
    if not len(a) or not len(b):
        return f"{counts}: they must translate each other line by line"
    longer = left if len(a) > len(b) else right
    place = shifted(a, b)
    if place >= min(len(a), len(b)):
        surplus = abs(len(a) - len(b))
        return f"{counts}: the last {surplus:,} of {longer.name} have no partner"
    return f"{counts}: they look shifted from {longer.name}:{place + 1} on"


def shifted(a: np.ndarray, b: np.ndarray) -> int:
    """The line (from 0) of the longer text at which the surplus lines fit best.

    Sentences that translate each other have similar lengths (Gale and Church 1993,
    https://aclanthology.org/J93-1004): with misfit c(x, y) = |log x/y - median|, the k that
    minimises the sum of c(a_i, b_i) before k and of c(a_{i+n}, b_i) from k on.
    """
    if len(a) < len(b):
        a, b = b, a
    surplus = len(a) - len(b)
    x, y = np.log1p(a.astype(np.float64)), np.log1p(b.astype(np.float64))
    usual = np.median(x) - np.median(y)
    straight = np.minimum(np.abs(x[: len(b)] - y - usual), 2.0)
    moved = np.minimum(np.abs(x[surplus:] - y - usual), 2.0)
    before = np.concatenate(([0.0], np.cumsum(straight)))
    after = np.concatenate((np.cumsum(moved[::-1])[::-1], [0.0]))
    cost = before + after
    # Among equally good places the last: lines at the end are lost most often.
    return int(len(cost) - 1 - np.argmin(cost[::-1]))


def _lengths(source: Source) -> np.ndarray:
    return np.fromiter((len(text or "") for _, text in lines(source)), np.int32)


def _turned(first: Source, second: Source, source: str | None, target: str | None) -> bool:
    names = ["1", "2", first.suffix.lstrip("."), second.suffix.lstrip(".")]
    chosen = []
    for option, value in (("source", source), ("target", target)):
        if value is not None:
            if value.lstrip(".").lower() not in names:
                raise RegardError(
                    f"--{option} {value} is neither {first.name} nor {second.name}: "
                    f"give 1 or 2, or an ending ({names[2]}, {names[3]})"
                )
            place = names.index(value.lstrip(".").lower()) % 2
            chosen.append(place if option == "source" else 1 - place)
    if len(set(chosen)) > 1:
        raise RegardError(f"--source {source} and --target {target} are the same file")
    return chosen[0] == 1


def _not_two(sources: Sequence[Source]) -> str:
    if len(sources) == 1:
        return (
            f"{sources[0].name}: one side of the pairs: give two files (train.de train.en), "
            "or a table with both (pairs.tsv)"
        )
    names = ", ".join(s.name for s in sources[:4])
    return f"{len(sources)} text files ({names}): expected as many for one language as the other"
