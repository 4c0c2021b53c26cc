"""Tagged sentences in columns (CoNLL): one word per line, a blank line after each sentence."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from regard.data.examples import Tagged
from regard.data.readers.column_layout import Column, Layout
from regard.data.readers.lines import lines
from regard.data.readers.sources import Source
from regard.data.readers.summary import Counts, Summary
from regard.data.tags import marks_spans
from regard.errors import RegardError

SUFFIXES = (".conll", ".conllu", ".conll2003", ".iob", ".iob2", ".bio", ".bioes", ".bilou", ".ner")
MAX_COLUMNS = 10
MAX_SENTENCE_LINES = 100_000
MAX_TEXTS = 4
"""Words with blanks in them that are accepted in any file."""
EXPECTED = (
    "expected one word and its tag per line, with a tab between them and a blank line after each "
    "sentence"
)
DOCUMENT = "-DOCSTART-"
_GAP = re.compile(r"[ \t]+")
_RANGE = re.compile(r"\d+[-.]\d+")


@dataclass(slots=True)
class Columns:
    """The column layout of one file, learned from its lines as they are read."""

    name: str
    word: int
    tag: int
    width: int = 0
    tabs: bool = False
    tags: set[str] = field(default_factory=set)
    has_span_tags: bool = False
    first_plain_tag: tuple[str, str] | None = None
    """The first tag that is neither O nor a span tag, and where it was read."""
    read_words: int = 0
    read_texts: int = 0
    """Words with a blank in them, as only texts should have."""

    @property
    def looks_like_text(self) -> bool:
        """Whether the lines so far may be sentences: blanks between columns, and hardly any tag
        has been found twice."""
        if self.tabs or self.has_span_tags or "O" in self.tags:
            return False
        return self.read_words < 3 or len(self.tags) > self.read_words / 2

    def split(self, text: str) -> list[str]:
        """The columns of a line: split at tabs if the file has tabs, else at blanks."""
        return text.split("\t") if self.tabs else _GAP.split(text.strip(" \t"))

    def measure(self, text: str, number: int) -> None:
        """Learn the number of columns from the first line with a word."""
        self.tabs = "\t" in text
        self.width = len(self.split(text))
        if not 2 <= self.width <= MAX_COLUMNS:
            plain = "looks like plain text: " if not self.tabs and self.width != 1 else ""
            raise RegardError(
                f"{self.name}:{number}: {plain}{self.width} column{'s' * (self.width > 1)}: "
                f"expected 2 to {MAX_COLUMNS}, the word first and its tag last"
            )
        for option, place in (("text", self.word), ("label", self.tag)):
            if not -1 <= place < self.width:
                raise RegardError(
                    f"{self.name}:{number}: no column {place + 1} for --{option}: "
                    f"the line has {self.width}"
                )

    def layout(self, chosen: bool) -> Layout:
        """Where words and tags are, once the number of columns is known."""
        return Layout(
            "conll",
            (
                Column("text", self.word % self.width + 1),
                Column("label", self.tag % self.width + 1),
            ),
            chosen,
        )

    def is_comment(self, text: str) -> bool:
        """Whether a line that begins with # before a sentence is a comment, not the word #.

        It is a word if it has the columns of a word line, and its tag looks like one of the file.
        """
        cells = self.split(text)
        if len(cells) != self.width or (self.tabs and "\t" not in text):
            return True
        tag = cells[self.tag]
        return not (tag == "O" or marks_spans(tag) or tag in self.tags)

    def read(self, text: str, number: int) -> tuple[str, str]:
        """Word and tag of a line; a malformed line is an error."""
        cells = self.split(text)
        where = f"{self.name}:{number}"
        if len(cells) != self.width:
            if self.looks_like_text:
                raise RegardError(
                    f"{where}: looks like plain text ({len(cells)} words, {self.width} in the "
                    f"first line): {EXPECTED}"
                )
            raise RegardError(
                f"{where}: {len(cells)} column{'s' * (len(cells) > 1)}: expected {self.width}, "
                "as in the first line"
            )
        word, tag = cells[self.word].strip(), cells[self.tag].strip()
        self.read_words += 1
        self.read_texts += " " in word
        if self.tabs and self.read_texts > MAX_TEXTS and self.read_texts > self.read_words / 2:
            raise RegardError(f"{where}: looks like a table of texts, one per line: {EXPECTED}")
        if not word or not tag:
            raise RegardError(
                f"{where}: no {'tag' if word else 'word'}: expected a word and its tag"
            )
        self._check(tag, where)
        return word, tag

    def _check(self, tag: str, where: str) -> None:
        """Raise an error for a tag such as B_PER in a file of BIO tags; O alone decides nothing.

        The mistake may come before the first span tag, so the first plain tag is remembered.
        """
        if tag in self.tags:
            return
        self.tags.add(tag)
        if tag == "O":
            return
        if marks_spans(tag):
            self.has_span_tags = True
        else:
            self.first_plain_tag = self.first_plain_tag or (tag, where)
        if self.has_span_tags and self.first_plain_tag:
            wrong, place = self.first_plain_tag
            raise RegardError(
                f"{place}: tag {wrong!r} among BIO tags: expected O, B-kind or I-kind"
            )


def sentences(
    source: Source, summary: Summary, word: str | None = None, tag: str | None = None
) -> Iterator[Tagged | None]:
    """The sentences of a file; None for a sentence with a line that is too long.

    `word` and `tag` are column numbers from 1 (default: the first and the last; in `.conllu` files
    the form and the universal part of speech).
    """
    universal = source.suffix == ".conllu"
    columns = Columns(
        source.name,
        _column(word, 1 if universal else 0, "text"),
        _column(tag, 3 if universal else -1, "label"),
    )
    counts = summary.of(source.name)
    for block in _blocks(source):
        if any(text is None for _, text in block):
            yield None
            continue
        kept = _body([(n, text) for n, text in block if text is not None], columns, counts)
        if kept:
            summary.layouts[source.name] = columns.layout(word is not None and tag is not None)
            rows = [columns.read(text, number) for number, text in kept]
            words, tags = zip(*rows, strict=True)
            yield Tagged(words, tags, f"{source.name}:{kept[0][0]}")


def _body(block: list[tuple[int, str]], columns: Columns, counts: Counts) -> list[tuple[int, str]]:
    """The lines of a block that hold words; the others are counted as skipped.

    Lines with # before the first word wait in `undecided` until the layout is known, since only the
    layout tells a comment from the word #.
    """
    kept: list[tuple[int, str]] = []
    undecided: list[tuple[int, str]] = []
    for number, text in block:
        if text.startswith(DOCUMENT) or (number == 1 and _is_header(text)):
            counts.skipped += 1
        elif text.startswith("#") and not kept:
            undecided.append((number, text))
        else:
            if not columns.width:
                columns.measure(text, number)
            # CoNLL-U: 1-2 is a contraction, 3.1 an empty node; their words have lines of their own.
            if columns.word > 0 and _RANGE.fullmatch(columns.split(text)[0]):
                counts.skipped += 1
                continue
            if undecided:
                words = [line for line in undecided if not columns.is_comment(line[1])]
                counts.skipped += len(undecided) - len(words)
                kept, undecided = words, []
            kept.append((number, text))
    if undecided and columns.width:
        kept = [line for line in undecided if not columns.is_comment(line[1])]
    counts.skipped += len(undecided) - len(kept) if undecided else 0
    return kept


def _is_header(text: str) -> bool:
    """Whether a first line names the columns: one for words first, one for tags last."""
    cells = text.lower().split()
    names = ("tag", "tags", "label", "ner", "pos", "upos", "ner_tag", "ner_tags")
    return len(cells) > 1 and cells[0] in ("word", "token", "form") and cells[-1] in names


def _blocks(source: Source) -> Iterator[list[tuple[int, str | None]]]:
    block: list[tuple[int, str | None]] = []
    for number, text in lines(source):
        if text is None or text.strip(" \t"):
            block.append((number, text))
            if len(block) > MAX_SENTENCE_LINES:
                raise RegardError(
                    f"{source.name}:{block[0][0]}: no blank line in {MAX_SENTENCE_LINES:,} lines: "
                    "expected a blank line after each sentence"
                )
        elif block:
            yield block
            block = []
    if block:
        yield block


def _column(chosen: str | None, default: int, option: str) -> int:
    if chosen is None:
        return default
    if not chosen.isdecimal() or not 1 <= int(chosen) <= MAX_COLUMNS:
        raise RegardError(
            f"--{option} {chosen}: CoNLL columns have no names: expected a number from 1 to "
            f"{MAX_COLUMNS}"
        )
    return int(chosen) - 1
