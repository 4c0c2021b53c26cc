"""Formats of files: by the ending of the name, or by the first line that is not blank."""

import re
from collections.abc import Sequence

from regard.data.readers import conll
from regard.data.readers.lines import first_line
from regard.data.readers.sources import Source
from regard.data.readers.summary import Summary
from regard.errors import RegardError

TABLES = ("tsv", "csv", "jsonl", "parquet", "hub", "memory")
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
UNREADABLE = (
    ".xlsx",
    ".xls",
    ".ods",
    ".docx",
    ".odt",
    ".pdf",
    ".zip",
    ".tar",
    ".bz2",
    ".xz",
    ".zst",
)
LABEL_MARK = "__label__"


def detect_format(source: Source, sniff: bool = True) -> str:
    """The format of a source: a table's, `conll`, `npy`, `fasttext` or `text`.

    A known ending decides. Otherwise the first line that is not blank does: `__label__` is
    fastText, an object is JSONL, a tab is TSV, anything else is text. Without `sniff`, a file with
    an unknown ending is always text: running text may well contain a tab.
    """
    if source.examples is not None:
        return "memory"
    if source.hub:
        return "hub"
    if source.suffix in ENDINGS:
        return ENDINGS[source.suffix]
    if source.suffix in UNREADABLE:
        raise RegardError(
            f"{source.name}: {source.suffix} files cannot be read: save it as text, TSV or CSV"
        )
    if not sniff:
        return "text"
    first = first_line(source)
    if first.startswith(LABEL_MARK):
        return "fasttext"
    if re.match(r'\s*\{\s*"', first):
        return "jsonl"
    return "tsv" if "\t" in first else "text"


def check_formats(
    sources: Sequence[Source], formats: Sequence[str], accepted: Sequence[str], expected: str
) -> None:
    """Raise an error at the first source whose format is not accepted; `expected` is its end."""
    for source, form in zip(sources, formats, strict=True):
        if form not in accepted:
            raise RegardError(f"{source.name}: {_describe(form)}: expected {expected}")


def check_not_empty(name: str, summary: Summary, expected: str) -> None:
    """Raise an error after reading a file without any usable example."""
    counts = summary.of(name)
    if not counts.read:
        raise RegardError(f"{name}: the file is empty: expected {expected}")
    if not counts.kept:
        raise RegardError(f"{name}: no usable line ({counts}): expected {expected}")


def _describe(form: str) -> str:
    names = {
        "conll": "tagged words (CoNLL)",
        "npy": "an array of vectors",
        "text": "plain text",
        "fasttext": "texts with labels (fastText)",
        "hub": "a data set of the Hugging Face hub",
        "memory": "examples in memory",
    }
    return names.get(form, f"a {form.upper()} table")
