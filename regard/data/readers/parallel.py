"""Parallel text: two files that are translated line by line, or tables of sentence pairs."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

import numpy as np

from regard.data.examples import Pair
from regard.data.readers.cells import text_cells
from regard.data.readers.column_layout import Column, Layout
from regard.data.readers.columns import SOURCE, TARGET
from regard.data.readers.formats import (
    ENDINGS,
    TABLES,
    check_formats,
    check_not_empty,
    detect_format,
)
from regard.data.readers.lines import clean_line, lines
from regard.data.readers.sources import Data, Source, resolve
from regard.data.readers.summary import Summary
from regard.data.readers.tables import table_rows
from regard.errors import RegardError

FilePairs = list[tuple[Source, Source]]


def read_pairs(
    data: Data,
    source: str | None = None,
    target: str | None = None,
    summary: Summary | None = None,
) -> Iterator[Pair]:
    """Sentence pairs: from two text files (or two globs), or from tables with both sides.

    `source` and `target` choose the columns (for text files, the endings): the direction.
    """
    summary = Summary() if summary is None else summary
    sources = resolve(data)
    formats = [detect_format(s) for s in sources]
    endings = {s.suffix for s in sources}
    if len(set(formats)) > 1 or (len(endings) == 2 and not endings & ENDINGS.keys()):
        # Two text files, one per language: a tab or a brace in a first line is no sign of a table.
        formats = [detect_format(s, sniff=False) for s in sources]
    check_formats(
        sources, formats, ("text", *TABLES), "pairs: two text files, or a table of both sides"
    )
    if "text" in formats:
        check_formats(sources, formats, ("text",), "two text files, or tables, not both")
        for left, right in pair_files(sources, source, target):
            yield from _text_pairs(left, right, summary)
        return
    roles = [SOURCE.choose(source), TARGET.choose(target)]
    for origin, form in zip(sources, formats, strict=True):
        for where, values in table_rows(origin, roles, form, summary):
            one, other = text_cells(values, roles, where)
            if summary.admit(origin.name, one, other) and one and other:
                yield Pair(one, other, where)
        check_not_empty(origin.name, summary, "source<TAB>target in each line")


def _text_pairs(left: Source, right: Source, summary: Summary) -> Iterator[Pair]:
    sides = (Column("source", name=left.name), Column("target", name=right.name))
    summary.layouts[left.name] = Layout("text", sides, chosen=True)
    for number, line, translation in line_pairs(left, right):
        line, translation = line and clean_line(line), translation and clean_line(translation)
        if summary.admit(left.name, line, translation) and line and translation:
            yield Pair(line, translation, f"{left.name}:{number}")
    check_not_empty(left.name, summary, "one sentence per line")


def pair_files(sources: Sequence[Source], source: str | None, target: str | None) -> FilePairs:
    """The files that belong together, source first: two files, two globs, or two endings.

    `source` and `target` choose the direction by ending (`de`) or by number (`1`).
    """
    first = [s for s in sources if s.argument == sources[0].argument]
    second = [s for s in sources if s.argument != sources[0].argument]
    endings = list(dict.fromkeys(s.suffix for s in sources))
    if len({s.argument for s in sources}) != 2 or len(first) != len(second):
        if len(endings) == 2:
            first, second = ([s for s in sources if s.suffix == e] for e in endings)
        if len(endings) != 2 or len(first) != len(second):
            raise RegardError(_unpaired_message(sources))
    if source is None and target is None:
        reverse = False
    else:
        reverse = _is_reversed(first[0], second[0], source, target)
    return list(zip(second, first, strict=True) if reverse else zip(first, second, strict=True))


def line_pairs(left: Source, right: Source) -> Iterator[tuple[int, str | None, str | None]]:
    """Line number and both lines, to the end of both files; unequal line counts are an error."""
    for one, other in zip_longest(lines(left), lines(right)):
        if one is None or other is None:
            raise RegardError(unequal_message(left, right))
        yield one[0], one[1], other[1]


def unequal_message(left: Source, right: Source) -> str:
    """The message for two files of different lengths, with the line where they seem to diverge."""
    a, b = _lengths(left), _lengths(right)
    counts = f"{left.name} has {len(a):,} lines but {right.name} has {len(b):,}"
    if not len(a) or not len(b):
        return f"{counts}: expected line n of one to translate line n of the other"
    longer = left if len(a) > len(b) else right
    place = find_shift(a, b)
    if place >= min(len(a), len(b)):
        surplus = abs(len(a) - len(b))
        return f"{counts}: the last {surplus:,} lines of {longer.name} have no translation"
    return f"{counts}: they seem to be shifted from {longer.name}:{place + 1} on"


def find_shift(a: np.ndarray, b: np.ndarray) -> int:
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
    shifted = np.minimum(np.abs(x[surplus:] - y - usual), 2.0)
    before = np.concatenate(([0.0], np.cumsum(straight)))
    after = np.concatenate((np.cumsum(shifted[::-1])[::-1], [0.0]))
    cost = before + after
    # Among equally good lines the last one: most often lines at the end are lost.
    return int(len(cost) - 1 - np.argmin(cost[::-1]))


def _lengths(source: Source) -> np.ndarray:
    return np.fromiter((len(text or "") for _, text in lines(source)), np.int32)


def _is_reversed(first: Source, second: Source, source: str | None, target: str | None) -> bool:
    names = ["1", "2", first.suffix.lstrip("."), second.suffix.lstrip(".")]
    # 1 in `sides` means: the source is the second file.
    sides = []
    for option, value in (("source", source), ("target", target)):
        if value is not None:
            if value.lstrip(".").lower() not in names:
                raise RegardError(
                    f"--{option} {value}: neither {first.name} nor {second.name}: "
                    f"expected 1 or 2, or an ending ({names[2]}, {names[3]})"
                )
            place = names.index(value.lstrip(".").lower()) % 2
            sides.append(place if option == "source" else 1 - place)
    if len(set(sides)) > 1:
        raise RegardError(
            f"--source {source} and --target {target} are the same file: expected one each"
        )
    return sides[0] == 1


def _unpaired_message(sources: Sequence[Source]) -> str:
    if len(sources) == 1:
        return (
            f"{sources[0].name}: one side of the pairs: expected two files (train.de train.en) "
            "or a table of both sides (pairs.tsv)"
        )
    names = ", ".join(s.name for s in sources[:4])
    return (
        f"{len(sources)} text files ({names}): expected as many for one language as for the other"
    )
