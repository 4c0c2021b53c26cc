"""Tagged sentences in columns (CoNLL): one word a line, a blank line after each sentence."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from regard.data.examples import Tagged
from regard.data.lines import lines
from regard.data.sources import Source
from regard.data.summary import Counts
from regard.data.tags import marks_spans
from regard.errors import RegardError

SUFFIXES = (".conll", ".conllu", ".conll2003", ".iob", ".iob2", ".bio", ".bioes", ".bilou", ".ner")
WIDEST = 10
LONGEST = 100_000
DOCUMENT = "-DOCSTART-"
_GAP = re.compile(r"[ \t]+")
_RANGE = re.compile(r"\d+[-.]\d+")


@dataclass(slots=True)
class Columns:
    """What the lines of one file have in common, learned as they pass."""

    name: str
    word: int
    tag: int
    width: int = 0
    tabs: bool = False
    tags: set[str] = field(default_factory=set)
    marked: bool = False
    plain: tuple[str, str] | None = None

    def split(self, text: str) -> list[str]:
        """The columns of a line: by tabs in a file of tabs, else by blanks."""
        return text.split("\t") if self.tabs else _GAP.split(text.strip(" \t"))

    def measure(self, text: str, number: int) -> None:
        """Learn the width from the first line that holds a word."""
        self.tabs = "\t" in text
        self.width = len(self.split(text))
        if not 2 <= self.width <= WIDEST:
            raise RegardError(
                f"{self.name}:{number}: {self.width} column{'s' * (self.width > 1)}: "
                f"expected 2 to {WIDEST}, a word first and its tag last"
            )
        for option, place in (("text", self.word), ("label", self.tag)):
            if not -1 <= place < self.width:
                raise RegardError(
                    f"{self.name}:{number}: no column {place + 1} for --{option}: "
                    f"the line has {self.width}"
                )

    def comment(self, text: str) -> bool:
        """Whether a line that begins with # before a sentence is a remark, not the word #."""
        cells = self.split(text)
        if len(cells) != self.width or (self.tabs and "\t" not in text):
            return True
        tag = cells[self.tag]
        return not (tag == "O" or marks_spans(tag) or tag in self.tags)

    def read(self, text: str, number: int) -> tuple[str, str]:
        """Word and tag of a line, or what is wrong with it."""
        cells = self.split(text)
        where = f"{self.name}:{number}"
        if len(cells) != self.width:
            raise RegardError(
                f"{where}: {len(cells)} column{'s' * (len(cells) > 1)} where the first word "
                f"has {self.width}"
            )
        word, tag = cells[self.word].strip(), cells[self.tag].strip()
        if not word or not tag:
            raise RegardError(f"{where}: no {'tag' if word else 'word'}")
        self._check(tag, where)
        return word, tag

    def _check(self, tag: str, where: str) -> None:
        """A tag such as B_PER in a file of BIO tags is a slip; O alone tells nothing yet."""
        if tag in self.tags:
            return
        self.tags.add(tag)
        if tag == "O":
            return
        spans = marks_spans(tag)
        if not spans:
            self.plain = self.plain or (tag, where)
        self.marked = self.marked or spans
        if self.marked and self.plain:
            slip, place = self.plain
            raise RegardError(f"{place}: tag {slip!r} among BIO tags: expected O, B-kind or I-kind")


def sentences(
    source: Source, counts: Counts, word: str | None = None, tag: str | None = None
) -> Iterator[Tagged | None]:
    """The sentences of a file; None for one with a line too long to be taken.

    `word` and `tag` number the columns from 1; the first and the last unless given (in `.conllu`
    files the form and the universal part of speech).
    """
    universal = source.suffix == ".conllu"
    columns = Columns(
        source.name,
        _column(word, 1 if universal else 0, "text"),
        _column(tag, 3 if universal else -1, "label"),
    )
    for block in _blocks(source):
        if any(text is None for _, text in block):
            yield None
            continue
        kept = _body([(n, text) for n, text in block if text is not None], columns, counts)
        if kept:
            rows = [columns.read(text, number) for number, text in kept]
            words, tags = zip(*rows, strict=True)
            yield Tagged(words, tags, f"{source.name}:{kept[0][0]}")


def _body(block: list[tuple[int, str]], columns: Columns, counts: Counts) -> list[tuple[int, str]]:
    """The lines of a block that hold words; the others are counted as skipped."""
    kept: list[tuple[int, str]] = []
    held: list[tuple[int, str]] = []
    for number, text in block:
        if text.startswith(DOCUMENT) or (number == 1 and _names_columns(text)):
            counts.skipped += 1
        elif text.startswith("#") and not kept:
            held.append((number, text))
        else:
            if not columns.width:
                columns.measure(text, number)
            if columns.word > 0 and _RANGE.fullmatch(columns.split(text)[0]):
                counts.skipped += 1
                continue
            if held:
                words = [line for line in held if not columns.comment(line[1])]
                counts.skipped += len(held) - len(words)
                kept, held = words, []
            kept.append((number, text))
    if held and columns.width:
        kept = [line for line in held if not columns.comment(line[1])]
    counts.skipped += len(held) - len(kept) if held else 0
    return kept


def _names_columns(text: str) -> bool:
    """Whether a first line is a header: the name for words first, one for tags last."""
    cells = text.lower().split()
    names = ("tag", "tags", "label", "ner", "pos", "upos", "ner_tag", "ner_tags")
    return len(cells) > 1 and cells[0] in ("word", "token", "form") and cells[-1] in names


def _blocks(source: Source) -> Iterator[list[tuple[int, str | None]]]:
    block: list[tuple[int, str | None]] = []
    for number, text in lines(source):
        if text is None or text.strip(" \t"):
            block.append((number, text))
            if len(block) > LONGEST:
                raise RegardError(
                    f"{source.name}:{block[0][0]}: {LONGEST:,} lines without a blank one: "
                    "a blank line ends each sentence"
                )
        elif block:
            yield block
            block = []
    if block:
        yield block


def _column(given: str | None, usual: int, option: str) -> int:
    if given is None:
        return usual
    if not given.isdecimal() or not 1 <= int(given) <= WIDEST:
        raise RegardError(
            f"--{option} {given}: CoNLL columns have no names: give a number from 1 to {WIDEST}"
        )
    return int(given) - 1
