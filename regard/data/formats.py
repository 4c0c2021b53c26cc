"""Formats told apart: by the ending of the name, or by the first line that holds something."""

import re
from collections.abc import Sequence

from regard.data import conll
from regard.data.lines import first_line
from regard.data.sources import Source
from regard.data.summary import Summary
from regard.errors import RegardError

TABLES = ("tsv", "csv", "jsonl", "parquet", "hub")
ENDINGS = {
    ".tsv": "tsv",
    ".tab": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npy": "npy",
    **dict.fromkeys(conll.SUFFIXES, "conll"),
}
OFFICE = (".xlsx", ".xls", ".ods", ".docx", ".odt", ".pdf", ".zip", ".tar", ".bz2", ".xz", ".zst")
LABEL_MARK = "__label__"


def form(source: Source, sniff: bool = True) -> str:
    """The format of a source: a table's, `conll`, `npy`, `fasttext` or `text`.

    A name without a known ending is told by its first line, unless `sniff` is off.
    """
    if source.hub:
        return "hub"
    if source.suffix in ENDINGS:
        return ENDINGS[source.suffix]
    if source.suffix in OFFICE:
        raise RegardError(
            f"{source.name}: {source.suffix} files are not read: save it as text, TSV or CSV"
        )
    if not sniff:
        return "text"
    first = first_line(source)
    if first.startswith(LABEL_MARK):
        return "fasttext"
    if re.match(r'\s*\{\s*"', first):
        return "jsonl"
    return "tsv" if "\t" in first else "text"


def accept(
    sources: Sequence[Source], forms: Sequence[str], known: Sequence[str], wish: str
) -> None:
    """Raise at the first source whose format is of no use for the task; `wish` says what is."""
    for source, found in zip(sources, forms, strict=True):
        if found not in known:
            raise RegardError(f"{source.name}: {_described(found)}: expected {wish}")


def complain_if_empty(name: str, summary: Summary, expected: str) -> None:
    """Raise after reading a file in which there was nothing to keep."""
    counts = summary.of(name)
    if not counts.read:
        raise RegardError(f"{name} is empty: expected {expected}")
    if not counts.kept:
        raise RegardError(f"{name}: nothing to keep ({counts}): expected {expected}")


def _described(found: str) -> str:
    names = {
        "conll": "words with tags (CoNLL)",
        "npy": "an array of vectors",
        "text": "plain text",
        "fasttext": "texts with labels (fastText)",
        "hub": "a data set of the hub",
    }
    return names.get(found, f"a {found.upper()} table")
