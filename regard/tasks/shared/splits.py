"""Training and validation data, read from files or built in."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Bool

from regard.data import Example, Labelled, Source, Summary, resolve
from regard.data.corpus import CHUNK, Corpus, Row, write_rows
from regard.data.data_report import DataReport, rank_labels
from regard.data.split import hold_out_by_label, key_hash, split_by_hash, split_key
from regard.data.stored_examples import StoredExamples
from regard.errors import OptionError, RegardError
from regard.progress import stage, track

TRAIN, VALID = "train.arrow", "valid.arrow"
E = TypeVar("E", bound=Example)
T = TypeVar("T")
Read = Callable[[Any, Sequence[Source], Summary], Iterator[E]]


@runtime_checkable
class FileOptions(Protocol):
    """Data options that name files."""

    @property
    def data(self) -> list[str] | None:
        """Training data."""
        ...

    @property
    def valid(self) -> list[str] | None:
        """Validation data."""
        ...


@dataclass(frozen=True)
class Splits(Generic[E]):
    """A reader of training and one of validation examples, and a summary of what was read."""

    train: Callable[[], Iterator[E]]
    valid: Callable[[], Iterator[E]]
    summary: Callable[[], str]
    columns: Callable[[], tuple[str, ...]] = tuple
    """What the columns of the files are for, once they have been read."""
    guessed: Callable[[], str] = str
    """The files whose columns the user did not choose, once they have been read."""
    notes: Callable[[], tuple[str, ...]] = tuple
    """What the readers noticed, once everything was read."""
    held_out: bool = True
    """Whether the validation data was held out from the training data."""

    def known(self) -> Iterator[E]:
        """The examples whose labels the model knows: all of the data given for training."""
        return chain(self.train(), self.valid()) if self.held_out else self.train()

    def write(
        self,
        folder: Path,
        rows: Callable[[Iterable[E]], Iterator[Row]],
        chunk: int = CHUNK,
        left_out: Callable[[], str] = str,
    ) -> dict[str, int]:
        """Write both splits as corpora, `chunk` rows at a time; the number of rows of each.

        A split without rows is an error, which says with `left_out` what `rows` did not take.
        """
        sizes: dict[str, int] = {}
        for name, split, purpose in (
            (TRAIN, self.train, "train on"),
            (VALID, self.valid, "validate with"),
        ):
            written = iter(rows(split()))
            first = next(written, None)
            if first is None:
                raise RegardError(
                    f"nothing is left to {purpose}: {join_notes(self.summary(), left_out())}"
                )
            kept = Path(name).stem
            sizes[kept] = 0
            write_rows(folder / name, _count(chain([first], written), sizes, kept), chunk=chunk)
        return sizes

    def report(
        self,
        sizes: Mapping[str, int],
        *,
        labels: Mapping[str, int] | None = None,
        vocabularies: Mapping[str, int] | None = None,
        notes: Iterable[str] = (),
    ) -> DataReport:
        """The facts about the data, once everything was read; empty notes are left out."""
        return DataReport(
            self.summary(),
            self.columns(),
            labels=rank_labels(labels or {}),
            sizes=dict(sizes),
            vocabularies=dict(vocabularies or {}),
            notes=tuple(note for note in (*self.notes(), *notes) if note),
        )


def _count(rows: Iterable[Row], sizes: dict[str, int], name: str) -> Iterator[Row]:
    for row in rows:
        sizes[name] += 1
        yield row


VALID_PROPORTION, MAX_VALID = 0.05, 1000
"""How much of the data is held out for validation, and the maximum number of examples."""
SMALL_VALID, SMALL_PROPORTION = 20, 0.2
"""Of small data that many examples are held out, but at most that proportion."""


def make_splits(
    corpus: str,
    data: FileOptions,
    read: Read[E],
    seed: int,
    *,
    running_text: bool = False,
    folder: Path | None = None,
) -> Splits[E]:
    """The user's files, or the built-in `corpus`; validation data is held out if none is given.

    Files are read once, wherever their examples can be stored in a temporary file, which is made in
    `folder` (default: the system's folder for such files).

    A sentence that occurs several times in the data falls into one split only. Small data is split
    by label, so that none is missing where it could be there in both parts. Of running text the
    end is held out, so that both splits stay coherent. The built-in corpus is the same for every
    seed: the one that `regard data make` writes, whose test split stays unseen.
    """
    if data.data is None:
        if data.valid is not None:
            raise OptionError("valid", "requires data, which was not given")
        from regard.corpora import make_corpus  # not needed to use a run

        splits = make_corpus(corpus)
        return Splits(
            lambda: track(splits.train, "reading data", unit="examples"),  # type: ignore[arg-type]
            lambda: track(splits.valid, "reading data", unit="examples"),  # type: ignore[arg-type]
            lambda: f"{len(splits.train):,} built-in examples",
        )
    first = _Reader(read, data, resolve(data.data), folder)
    if data.valid is not None:
        second = _Reader(read, data, resolve(data.valid), folder)

        def summary() -> str:
            validation = f"for validation {second}" if second.summary.files else ""
            return join_notes(str(first), validation)

        def columns() -> tuple[str, ...]:
            return tuple(dict.fromkeys((*first.summary.columns(), *second.summary.columns())))

        def notes() -> tuple[str, ...]:
            return (*first.notes(), *second.notes())

        return Splits(first, second, summary, columns, first.guessed, notes, held_out=False)
    if running_text:
        return _hold_out_end(first)
    in_valid, is_valid = _choose_held_out(first, seed)
    return Splits(
        lambda: first.read(~in_valid, lambda example: not is_valid(example)),
        lambda: first.read(in_valid, is_valid),
        lambda: f"{first}; a part was held out for validation",
        lambda: first.summary.columns(),
        first.guessed,
        first.notes,
    )


def _choose_held_out(
    examples: "_Reader[E]", seed: int
) -> tuple[Bool[np.ndarray, "n"], Callable[[E], bool]]:
    """Which examples are held out, by their number and as a function of the example."""

    def key(example: E) -> int:
        return key_hash(split_key(example), seed)

    hashes = np.fromiter((key(example) for example in examples()), np.uint64)
    different = len(np.unique(hashes))
    few = min(SMALL_VALID, round(SMALL_PROPORTION * different))
    if few > VALID_PROPORTION * different:
        labels = {key(example): _first_label(example) for example in examples()}
        held_out = hold_out_by_label(labels, few)
        chosen = np.fromiter((int(number) in held_out for number in hashes), bool)
        return chosen, lambda example: key(example) in held_out
    if different < 2:
        examples.summary.require()  # which names the files, if there are too few examples
        raise RegardError(
            f"{examples}, {different} of them different: at least two are needed, one to train on "
            "and one to validate with"
        )
    split = split_by_hash(hashes, valid=VALID_PROPORTION, most=MAX_VALID, seed=seed)
    chosen = hashes < np.uint64(split.valid_below)
    return chosen, lambda example: split.of(split_key(example)) == "valid"


def _first_label(example: Example) -> str:
    return example.labels[0] if isinstance(example, Labelled) and example.labels else ""


def _hold_out_end(text: "_Reader[E]") -> Splits[E]:
    """Running text: its end is held out."""
    total = sum(1 for _ in text())
    held_out = min(max(1, round(VALID_PROPORTION * total)), MAX_VALID)
    if held_out >= total:
        text.summary.require()
        raise RegardError(f"{total} line cannot be split in two: at least two are needed")
    lines = "line was" if held_out == 1 else f"{held_out:,} lines were"
    return Splits(
        lambda: islice(text(), total - held_out),
        lambda: islice(text(), total - held_out, None),
        lambda: f"{text}; the last {lines} held out for validation",
        lambda: text.summary.columns(),
        text.guessed,
        text.notes,
    )


class _Reader(Generic[E]):
    """Reads the same sources again at each call, from where the first reading stored them.

    What cannot be stored is read and counted again.
    """

    def __init__(
        self, read: Read[E], data: Any, sources: Sequence[Source], folder: Path | None
    ) -> None:
        self._read, self._data, self._sources = read, data, sources
        self._folder = folder
        self._stored: StoredExamples | None = None
        self.summary = Summary()
        self._count: int | None = None
        """Number of examples, once everything was read."""
        self.whole = False
        """Whether everything was read to the end without an error."""

    def __call__(self) -> Iterator[E]:
        return self.read(None, lambda _: True)

    def read(self, chosen: np.ndarray | None, is_chosen: Callable[[E], bool]) -> Iterator[E]:
        """The chosen examples: those with True in `chosen` or, if read again, by `is_chosen`."""
        if self._stored is not None and self._stored.whole:
            count = self._count if chosen is None else int(chosen.sum())
            with stage("reading data", count, "examples") as reading:
                for chunk in self._stored.chunks(chosen):
                    yield from chunk
                    reading.advance(len(chunk))
            return
        self.summary, self.whole = Summary(), False
        examples = self._read(self._data, self._sources, self.summary)
        stored = StoredExamples(self._folder)
        if self._count is None:  # else it was tried, in vain
            examples = stored.store(examples)
        with stage("reading data", self._count, "examples") as reading:
            for example in examples:
                if is_chosen(example):
                    yield example
                reading.advance()
        self.whole, self._count, self._stored = True, reading.done, stored

    def guessed(self) -> str:
        """The files whose columns the user did not choose."""
        return self.summary.guessed()

    def notes(self) -> tuple[str, ...]:
        """What was noticed in reading."""
        return tuple(self.summary.notes)

    def __str__(self) -> str:
        return str(self.summary.total)


def require_corpus(corpus: Corpus | None) -> Corpus:
    """The corpus of a task that was loaded for training; one loaded for use has none."""
    if corpus is None:
        raise ValueError("this task was loaded without its corpora")
    return corpus


def with_corpora(task: T, folder: Path) -> T:
    """The task with the corpora to train it on."""
    train, valid = Corpus(folder / TRAIN), Corpus(folder / VALID)
    return replace(task, train=train, valid=valid)  # type: ignore[type-var]


def vocabulary_size(kind: str, given: int | None, texts: Iterable[str]) -> int:
    """The maximum vocabulary size: the given one, or one chosen by the size of the corpus.

    >>> vocabulary_size("bpe", None, ["six words make one short sentence"] * 60_000)
    3600
    """
    if given is not None:
        return given
    if kind not in ("bpe", "unigram"):
        return 30_000
    words = sum(len(text.split()) for text in texts)
    return int(min(16000.0, max(1000.0, 6 * float(words) ** 0.5)))


def join_notes(*notes: str) -> str:
    """Several notes as one line."""
    return "; ".join(note for note in notes if note)
