"""Texts with labels: tables, fastText lines, and vectors from `.npy` files."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from regard.data.examples import Labelled
from regard.data.readers.arrays import (
    VectorFiles,
    array_cell,
    arrays_with_lines,
    names_vector_file,
)
from regard.data.readers.cells import label_cell, text_cell
from regard.data.readers.columns import LABEL, TEXT, Role
from regard.data.readers.formats import (
    LABEL_MARK,
    TABLES,
    check_formats,
    check_not_empty,
    detect_format,
)
from regard.data.readers.lines import lines
from regard.data.readers.sources import Data, Source, resolve
from regard.data.readers.summary import Summary
from regard.data.readers.tables import table_rows
from regard.errors import RegardError

EXPECTED = f"texts with labels: text<TAB>label, {LABEL_MARK}name text, JSONL, Parquet, or .npy"


def read_labelled(
    data: Data,
    text: str | None = None,
    label: str | None = None,
    separator: str | None = None,
    summary: Summary | None = None,
) -> Iterator[Labelled]:
    """The labelled examples of all sources.

    `text` and `label` choose columns of tables by name, or by number from 1; `separator` stands
    between several labels in one cell. An array `x.npy` needs a text file with one label per line.
    """
    summary = Summary() if summary is None else summary
    sources = resolve(data)
    if any(s.suffix == ".npy" for s in sources):
        yield from _arrays(sources, separator, summary)
        return
    formats = [detect_format(source) for source in sources]
    check_formats(sources, formats, ("fasttext", *TABLES), EXPECTED)
    roles = (TEXT.choose(text), LABEL.choose(label))
    first_lines, counts = list[Labelled](), Counter[str]()
    for source, form in zip(sources, formats, strict=True):
        if form == "fasttext":
            yield from _fasttext(source, summary)
        else:
            rows = _rows(source, roles, form, separator, summary)
            first = next(rows, None)
            if first is not None:
                if summary.layouts[source.name].without_header:
                    first_lines.append(first)
                else:
                    counts.update(first.labels)
                yield first
            for example in rows:
                counts.update(example.labels)
                yield example
        check_not_empty(source.name, summary, "a text and a label in each line")
    summary.notes += _possible_headers(first_lines, counts)


def _possible_headers(first_lines: Sequence[Labelled], counts: Mapping[str, int]) -> Iterator[str]:
    """Notes on first lines that look like column names: no other example has their label."""
    for example in first_lines:
        if len(counts) > 1 and len(example.labels) == 1 and example.labels[0] not in counts:
            yield (
                f"{example.where} counts as an example, though no other has its label: if it is a "
                f"header, name the column with --label {example.labels[0]!r}"
            )


def _rows(
    source: Source,
    roles: tuple[Role, Role],
    form: str,
    separator: str | None,
    summary: Summary,
) -> Iterator[Labelled]:
    files = VectorFiles(source.folder)
    vectors: bool | None = None
    for where, values in table_rows(source, roles, form, summary):
        if not values:
            summary.admit(source.name, None if values is None else "")
            continue
        if isinstance(values[0], np.ndarray):  # only examples in memory hold arrays
            labels = label_cell(values[1], roles[1], where, separator)
            if summary.admit(source.name, where if len(values[0]) else ""):
                yield Labelled(array_cell(values[0], where), labels, where)
            continue
        text = text_cell(values[0], roles[0], where)
        if not text:
            summary.admit(source.name, text)
            continue
        labels = label_cell(values[1], roles[1], where, separator)
        if vectors is None:  # the first row decides for the whole file
            vectors = names_vector_file(text)
        content = files.read(text, where) if vectors else text
        if len(content):
            summary.admit(source.name, text, "\t".join(("labels", *labels)))
            yield Labelled(content, labels, where)
        else:
            summary.admit(source.name, "")


def _fasttext(source: Source, summary: Summary) -> Iterator[Labelled]:
    for number, line in lines(source):
        where = f"{source.name}:{number}"
        words = (line or "").split()
        labels = [w.removeprefix(LABEL_MARK) for w in words if w.startswith(LABEL_MARK)]
        text = None if line is None else " ".join(w for w in words if not w.startswith(LABEL_MARK))
        if words and not all(labels or [""]):
            raise RegardError(f"{where}: no label: expected {LABEL_MARK}name before the text")
        if summary.admit(source.name, text) and text:
            yield Labelled(text, tuple(dict.fromkeys(labels)), where)


def _arrays(
    sources: Sequence[Source], separator: str | None, summary: Summary
) -> Iterator[Labelled]:
    for names, rows in arrays_with_lines(sources, "labels"):
        for where, line, sequence in rows:
            labels = label_cell(line or "", LABEL, where, separator)
            if summary.admit(names.name, where if len(sequence) else ""):
                yield Labelled(sequence, labels, where)
        check_not_empty(names.name, summary, "a label in each line")
