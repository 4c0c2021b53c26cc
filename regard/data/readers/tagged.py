"""Tagged sentences: CoNLL columns, tables of token and tag lists, vectors from `.npy` files."""

from collections.abc import Iterator, Sequence

import numpy as np

from regard.data.examples import Tagged
from regard.data.readers.arrays import (
    VectorFiles,
    array_cell,
    arrays_with_lines,
    names_vector_file,
)
from regard.data.readers.cells import word_cell
from regard.data.readers.columns import TAGS, WORDS, Role, has_header
from regard.data.readers.conll import sentences
from regard.data.readers.formats import TABLES, check_formats, check_not_empty, detect_format
from regard.data.readers.lines import first_line
from regard.data.readers.sources import Data, Source, resolve
from regard.data.readers.summary import Summary
from regard.data.readers.tables import table_rows
from regard.errors import RegardError

MAX_SINGLE_WORDS = 30
"""Rows of a table that may begin it with one word each, before it is refused."""
ONE_WORD_PER_ROW = (
    "one word per row so far: a row of a table is a whole sentence, with its words and its tags "
    "separated by spaces. For one word per line, write word, tab and tag, and a blank line after "
    "each sentence, into a .conll file"
)


def read_tagged(
    data: Data,
    text: str | None = None,
    label: str | None = None,
    summary: Summary | None = None,
) -> Iterator[Tagged]:
    """The tagged sentences of all sources.

    `text` and `label` choose the columns of words and tags: by number in CoNLL files, by name in
    tables. An array `x.npy` [n, t, d] needs a text file with the tags of one sequence per line.
    """
    summary = Summary() if summary is None else summary
    sources = resolve(data)
    if any(s.suffix == ".npy" for s in sources):
        yield from _arrays(sources, summary)
        return
    roles = (WORDS.choose(text), TAGS.choose(label))
    formats = [_detect_format(source) for source in sources]
    check_formats(
        sources, formats, ("conll", *TABLES), "words with tags: CoNLL columns, JSONL or Parquet"
    )
    for source, form in zip(sources, formats, strict=True):
        if form == "conll":
            for sentence in sentences(source, summary, text, label):
                key = None if sentence is None else _key(sentence)
                if summary.admit(source.name, key) and sentence is not None:
                    yield sentence
        else:
            yield from _rows(source, roles, form, summary)
        check_not_empty(source.name, summary, "a word and its tag in each line")


def _detect_format(source: Source) -> str:
    """Text and TSV files are CoNLL, unless the first line shows that a line is a whole sentence:
    a JSON object, a header with the names of words and tags, or the name of a file of vectors."""
    form = detect_format(source, sniff=False)
    if form not in ("text", "tsv"):
        return form
    first = first_line(source)
    if first.startswith("{"):
        return "jsonl"
    cells = first.split("\t")
    plain = (WORDS, TAGS)
    whole = len(cells) > 1 and (
        has_header(cells, plain) or any(names_vector_file(c) for c in cells)
    )
    return "tsv" if whole else "conll"


def _rows(
    source: Source, roles: tuple[Role, Role], form: str, summary: Summary
) -> Iterator[Tagged]:
    files = VectorFiles(source.folder)
    read = single = 0
    for where, values in table_rows(source, roles, form, summary):
        if not values:
            summary.admit(source.name, None if values is None else "")
            continue
        if isinstance(values[0], np.ndarray):  # only examples in memory hold arrays
            vectors, tags = array_cell(values[0], where), word_cell(values[1], roles[1], where)
            _check_equal(len(vectors), len(tags or ()), "vectors", where)
            if tags and summary.admit(source.name, where):
                yield Tagged(vectors, tags, where)
            continue
        words = word_cell(values[0], roles[0], where)
        tags = word_cell(values[1], roles[1], where)
        if words is None or tags is None or not words:
            summary.admit(source.name, None if words is None or tags is None else "")
            continue
        if len(words) == 1 and names_vector_file(words[0]):
            frames = files.read(words[0], where)
            _check_equal(len(frames), len(tags), "vectors", where)
            summary.admit(source.name, where)
            yield Tagged(frames, tags, where)
            continue
        _check_equal(len(words), len(tags), "words", where)
        read += 1
        single += isinstance(values[0], str) and len(words) == 1
        if read == single == MAX_SINGLE_WORDS:
            raise RegardError(f"{where}: {ONE_WORD_PER_ROW}")
        sentence = Tagged(words, tags, where)
        summary.admit(source.name, _key(sentence))
        yield sentence


def _arrays(sources: Sequence[Source], summary: Summary) -> Iterator[Tagged]:
    for names, rows in arrays_with_lines(sources, "tags"):
        for where, line, sequence in rows:
            tags = tuple((line or "").split())
            if len(tags) > len(sequence):
                _check_equal(len(sequence), len(tags), "vectors", where)
            if summary.admit(names.name, None if line is None else where if tags else ""):
                yield Tagged(sequence[: len(tags)], tags, where)
        check_not_empty(names.name, summary, "the tags of a sequence in each line")


def _check_equal(count: int, tags: int, what: str, where: str) -> None:
    if count != tags:
        raise RegardError(f"{where}: {count} {what} but {tags} tags: expected one tag each")


def _key(sentence: Tagged) -> str:
    return " ".join(map(str, (*sentence.words, *sentence.tags)))
