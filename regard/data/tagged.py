"""Tagged sentences: CoNLL columns, tables of token and tag lists, vectors from `.npy` files."""

from collections.abc import Iterator, Sequence

from regard.data.arrays import Files, beside, named_files
from regard.data.cells import word_cell
from regard.data.columns import TAGS, WORDS, Role, has_header
from regard.data.conll import sentences
from regard.data.examples import Tagged
from regard.data.formats import TABLES, accept, complain_if_empty, form
from regard.data.lines import first_line
from regard.data.sources import Data, Source, resolve
from regard.data.summary import Summary
from regard.data.tables import table
from regard.errors import RegardError


def read_tagged(
    data: Data,
    text: str | None = None,
    label: str | None = None,
    summary: Summary | None = None,
) -> Iterator[Tagged]:
    """The tagged sentences of all sources.

    `text` and `label` give the columns of words and tags: by number in CoNLL files, by name in
    tables. An array `x.npy` [n, t, d] goes with a text file of one line of tags a sequence.
    """
    summary = Summary() if summary is None else summary
    sources = resolve(data)
    if any(s.suffix == ".npy" for s in sources):
        yield from _arrays(sources, summary)
        return
    roles = (WORDS.named(text), TAGS.named(label))
    forms = [_form(s, roles) for s in sources]
    accept(sources, forms, ("conll", *TABLES), "words with tags: CoNLL columns, JSONL or Parquet")
    for source, found in zip(sources, forms, strict=True):
        if found == "conll":
            for sentence in sentences(source, summary.of(source.name), text, label):
                key = None if sentence is None else _key(sentence)
                if summary.admit(source.name, key) and sentence is not None:
                    yield sentence
        else:
            yield from _rows(source, roles, found, summary)
        complain_if_empty(source.name, summary, "a word and its tag in each line")


def _form(source: Source, roles: tuple[Role, Role]) -> str:
    """Columns between tabs are CoNLL, unless the first line says that a line is a sentence."""
    found = form(source, sniff=False)
    if found not in ("text", "tsv"):
        return found
    first = first_line(source)
    if first.startswith("{"):
        return "jsonl"
    cells = first.split("\t")
    plain = (WORDS, TAGS)
    whole = len(cells) > 1 and (has_header(cells, plain) or any(named_files(c) for c in cells))
    return "tsv" if whole else "conll"


def _rows(
    source: Source, roles: tuple[Role, Role], found: str, summary: Summary
) -> Iterator[Tagged]:
    files = Files(source.folder)
    for where, values in table(source, roles, found):
        if not values:
            summary.admit(source.name, None if values is None else "")
            continue
        words = word_cell(values[0], roles[0], where)
        tags = word_cell(values[1], roles[1], where)
        if words is None or tags is None or not words:
            summary.admit(source.name, None if words is None or tags is None else "")
            continue
        if len(words) == 1 and named_files(words[0]):
            frames = files.read(words[0], where)
            _equal(len(frames), len(tags), "vectors", where)
            summary.admit(source.name, where)
            yield Tagged(frames, tags, where)
            continue
        _equal(len(words), len(tags), "words", where)
        sentence = Tagged(words, tags, where)
        summary.admit(source.name, _key(sentence))
        yield sentence


def _arrays(sources: Sequence[Source], summary: Summary) -> Iterator[Tagged]:
    for names, rows in beside(sources, "tags"):
        for where, line, sequence in rows:
            tags = tuple((line or "").split())
            if len(tags) > len(sequence):
                _equal(len(sequence), len(tags), "vectors", where)
            if summary.admit(names.name, None if line is None else where if tags else ""):
                yield Tagged(sequence[: len(tags)], tags, where)
        complain_if_empty(names.name, summary, "the tags of a sequence in each line")


def _equal(found: int, tags: int, what: str, where: str) -> None:
    if found != tags:
        raise RegardError(f"{where}: {found} {what} but {tags} tags")


def _key(sentence: Tagged) -> str:
    return " ".join(map(str, (*sentence.words, *sentence.tags)))
