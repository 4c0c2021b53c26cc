"""Texts with labels: tables, fastText lines, and vectors from `.npy` files."""

from collections.abc import Iterator, Sequence

from regard.data.arrays import Files, beside, named_files
from regard.data.cells import label_cell, text_cell
from regard.data.columns import LABEL, TEXT, Role
from regard.data.examples import Labelled
from regard.data.formats import LABEL_MARK, TABLES, accept, complain_if_empty, form
from regard.data.lines import lines
from regard.data.sources import Data, Source, resolve
from regard.data.summary import Summary
from regard.data.tables import table
from regard.errors import RegardError

WISH = f"texts with labels: text<TAB>label, {LABEL_MARK}name text, JSONL, Parquet, or .npy"


def read_labelled(
    data: Data,
    text: str | None = None,
    label: str | None = None,
    separator: str | None = None,
    summary: Summary | None = None,
) -> Iterator[Labelled]:
    """The labelled examples of all sources.

    `text` and `label` name columns of tables, by name or by number from 1; `separator` parts
    several labels in one cell. An array `x.npy` goes with a text file of one label a line.
    """
    summary = Summary() if summary is None else summary
    sources = resolve(data)
    if any(s.suffix == ".npy" for s in sources):
        yield from _arrays(sources, separator, summary)
        return
    forms = [form(s) for s in sources]
    accept(sources, forms, ("fasttext", *TABLES), WISH)
    roles = (TEXT.named(text), LABEL.named(label))
    for source, found in zip(sources, forms, strict=True):
        if found == "fasttext":
            yield from _fasttext(source, summary)
        else:
            yield from _rows(source, roles, found, separator, summary)
        complain_if_empty(source.name, summary, "a text and a label in each line")


def _rows(
    source: Source,
    roles: tuple[Role, Role],
    found: str,
    separator: str | None,
    summary: Summary,
) -> Iterator[Labelled]:
    files = Files(source.folder)
    vectors: bool | None = None
    for where, values in table(source, roles, found):
        if not values:
            summary.admit(source.name, None if values is None else "")
            continue
        text = text_cell(values[0], roles[0], where)
        if not text:
            summary.admit(source.name, text)
            continue
        labels = label_cell(values[1], roles[1], where, separator)
        if vectors is None:
            vectors = named_files(text)
        found_text = files.read(text, where) if vectors else text
        if len(found_text):
            summary.admit(source.name, text, "\t".join(("labels", *labels)))
            yield Labelled(found_text, labels, where)
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
    for names, rows in beside(sources, "labels"):
        for where, line, sequence in rows:
            labels = label_cell(line or "", LABEL, where, separator)
            if summary.admit(names.name, where if len(sequence) else ""):
                yield Labelled(sequence, labels, where)
        complain_if_empty(names.name, summary, "a label in each line")
