"""Running text: plain files, or a column of a table; conditioned on a label or a vector."""

from collections.abc import Iterator

import numpy as np

from regard.data.arrays import named_files, vectors
from regard.data.cells import text_cells
from regard.data.columns import CONDITION, TEXT, Role
from regard.data.examples import Line
from regard.data.formats import TABLES, accept, complain_if_empty, form
from regard.data.lines import cut_lines, lines
from regard.data.sources import Data, Source, resolve
from regard.data.summary import Summary
from regard.data.tables import table
from regard.errors import RegardError

Found = tuple[str, str | None, str | None]
"""Where a line stands, its text, and its label ("" where there is none to give)."""


def read_lines(
    data: Data,
    text: str | None = None,
    condition: str | None = None,
    summary: Summary | None = None,
) -> Iterator[Line]:
    """The lines of all sources.

    `condition` names a column of labels, or a `.npy` file [n, d] with a vector for each line.
    """
    summary = Summary() if summary is None else summary
    sources = resolve(data)
    if condition is not None and named_files(condition):
        yield from _with_vectors(sources, text, resolve(condition)[0], summary)
        return
    for found in _found(sources, text, condition, summary, cut=True):
        source, (where, line, label) = found
        known = (line,) if condition is None else (line, label)
        if summary.admit(source.name, *known) and line:
            yield Line(line, label if condition is not None else None, where)


def _with_vectors(
    sources: tuple[Source, ...], text: str | None, array: Source, summary: Summary
) -> Iterator[Line]:
    rows: Iterator[np.ndarray] = vectors(array)
    for source, (where, line, _) in _found(sources, text, None, summary, cut=False):
        vector = next(rows, None)
        if vector is None:
            raise RegardError(f"{array.name}: no vector for {where}: expected one for each line")
        if summary.admit(source.name, line) and line:
            yield Line(line, vector, where)
    if next(rows, None) is not None:
        raise RegardError(f"{array.name}: more vectors than lines of text")


def _found(
    sources: tuple[Source, ...],
    text: str | None,
    condition: str | None,
    summary: Summary,
    cut: bool,
) -> Iterator[tuple[Source, Found]]:
    named = text is not None or condition is not None
    forms = [form(s, sniff=named) for s in sources]
    wish = "running text: a plain file, or a table with a text column"
    accept(sources, forms, ("text", "fasttext", *TABLES), wish)
    roles = [TEXT.named(text)] + ([CONDITION.named(condition)] if condition else [])
    for source, found in zip(sources, forms, strict=True):
        if found in TABLES:
            rows = _rows(source, roles, found)
        elif named:
            raise RegardError(
                f"{source.name}: plain text has no column {text or condition!r}: expected a table"
            )
        else:
            rows = _cut(source, summary) if cut else _whole(source)
        for row in rows:
            yield source, row
        complain_if_empty(source.name, summary, "text")


def _rows(source: Source, roles: list[Role], found: str) -> Iterator[Found]:
    for where, values in table(source, roles, found):
        texts = text_cells(values, roles, where)
        yield where, texts[0], texts[1] if len(texts) > 1 else ""


def _whole(source: Source) -> Iterator[Found]:
    for number, line in lines(source):
        yield f"{source.name}:{number}", None if line is None else line.strip(), ""


def _cut(source: Source, summary: Summary) -> Iterator[Found]:
    """Every line, those over the limit in pieces, which are counted."""
    for number, line, more in cut_lines(source):
        summary.of(source.name).cut += more
        yield f"{source.name}:{number}", line.strip(), ""
