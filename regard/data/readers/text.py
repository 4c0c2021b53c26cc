"""Running text: plain files, or a column of a table, perhaps conditioned on a label or a vector."""

from collections.abc import Iterator

import numpy as np

from regard.data.examples import Line
from regard.data.readers.arrays import names_vector_file, vectors
from regard.data.readers.cells import text_cells
from regard.data.readers.columns import CONDITION, TEXT, Role
from regard.data.readers.formats import TABLES, check_formats, check_not_empty, detect_format
from regard.data.readers.lines import clean_line, line_pieces, lines
from regard.data.readers.sources import Data, Source, resolve
from regard.data.readers.summary import Summary
from regard.data.readers.tables import table_rows
from regard.errors import RegardError

LocatedLine = tuple[str, str | None, str | None]
"""Where a line is, its text, and its label (empty if there are no labels)."""


def read_lines(
    data: Data,
    text: str | None = None,
    condition: str | None = None,
    summary: Summary | None = None,
) -> Iterator[Line]:
    """The lines of all sources.

    `condition` is a column of labels, or a `.npy` file [n, d] with one vector per line.
    """
    summary = Summary() if summary is None else summary
    sources = resolve(data)
    if condition is not None and names_vector_file(condition):
        yield from _with_vectors(sources, text, resolve(condition)[0], summary)
        return
    for source, located in _located_lines(sources, text, condition, summary, split=True):
        where, line, label = located
        texts = (line,) if condition is None else (line, label)
        if summary.admit(source.name, *texts) and line:
            yield Line(line, label if condition is not None else None, where)


def _with_vectors(
    sources: tuple[Source, ...], text: str | None, array: Source, summary: Summary
) -> Iterator[Line]:
    rows: Iterator[np.ndarray] = vectors(array)
    for source, (where, line, _) in _located_lines(sources, text, None, summary, split=False):
        vector = next(rows, None)
        if vector is None:
            raise RegardError(f"{array.name}: no vector for {where}: expected one per line")
        if summary.admit(source.name, line) and line:
            yield Line(line, vector, where)
    if next(rows, None) is not None:
        raise RegardError(f"{array.name}: more vectors than lines of text: expected one per line")


def _located_lines(
    sources: tuple[Source, ...],
    text: str | None,
    condition: str | None,
    summary: Summary,
    split: bool,
) -> Iterator[tuple[Source, LocatedLine]]:
    named = text is not None or condition is not None
    formats = [detect_format(s, sniff=named) for s in sources]
    expected = "running text: a plain file, or a table with a text column"
    check_formats(sources, formats, ("text", "fasttext", *TABLES), expected)
    roles = [TEXT.choose(text)] + ([CONDITION.choose(condition)] if condition else [])
    for source, form in zip(sources, formats, strict=True):
        if form in TABLES:
            rows = _table_lines(source, roles, form, summary)
        elif named:
            raise RegardError(
                f"{source.name}: plain text has no column {text or condition!r}: expected a table"
            )
        else:
            rows = _split_lines(source, summary) if split else _whole_lines(source)
        for row in rows:
            yield source, row
        check_not_empty(source.name, summary, "text")


def _table_lines(
    source: Source, roles: list[Role], form: str, summary: Summary
) -> Iterator[LocatedLine]:
    for where, values in table_rows(source, roles, form, summary):
        texts = text_cells(values, roles, where)
        yield where, texts[0], texts[1] if len(texts) > 1 else ""


def _whole_lines(source: Source) -> Iterator[LocatedLine]:
    for number, line in lines(source):
        yield f"{source.name}:{number}", None if line is None else clean_line(line), ""


def _split_lines(source: Source, summary: Summary) -> Iterator[LocatedLine]:
    """Every line; those over the limit are split, and the splits are counted."""
    for number, line, more in line_pieces(source):
        summary.of(source.name).split += more
        yield f"{source.name}:{number}", clean_line(line), ""
