"""The parts of a corpus: what to train on and what to validate with, read as often as needed."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from regard.data import Example, Source, Summary, resolve
from regard.data.builtin import make
from regard.data.corpus import CHUNK, Corpus, Row, write
from regard.data.split import key_of, split_by
from regard.errors import RegardError

TRAIN, VALID = "train.arrow", "valid.arrow"
E = TypeVar("E", bound=Example)
T = TypeVar("T")
Read = Callable[[Any, Sequence[Source], Summary], Iterator[E]]


@runtime_checkable
class Named(Protocol):
    """Data options that name files."""

    @property
    def data(self) -> list[str] | None:
        """What to train on."""
        ...

    @property
    def valid(self) -> list[str] | None:
        """What to validate with."""
        ...


@dataclass(frozen=True)
class Parts(Generic[E]):
    """Two readers, and a way to say what was read."""

    train: Callable[[], Iterator[E]]
    valid: Callable[[], Iterator[E]]
    told: Callable[[], str]
    aside: bool = True
    """Whether validation data was set aside from the training data."""

    def known(self) -> Iterator[E]:
        """The examples whose labels count as known: all of what was given to train on."""
        return chain(self.train(), self.valid()) if self.aside else self.train()

    def write(
        self,
        folder: Path,
        rows: Callable[[Iterable[E]], Iterator[Row]],
        chunk: int = CHUNK,
        left_out: Callable[[], str] = str,
    ) -> None:
        """Write both parts as corpora, `chunk` rows at a time, or say that there are none, and why:
        `left_out` tells what `rows` did not take."""
        for name, part, purpose in (
            (TRAIN, self.train, "train on"),
            (VALID, self.valid, "validate with"),
        ):
            made = iter(rows(part()))
            first = next(made, None)
            if first is None:
                raise RegardError(f"nothing is left to {purpose}: {noted(self.told(), left_out())}")
            write(folder / name, chain([first], made), chunk=chunk)


SHARE, MOST = 0.05, 1000
"""How much is set aside for validation, and how many examples at most."""


def parts(task: str, data: Named, read: Read[E], seed: int, *, running: bool = False) -> Parts[E]:
    """The built-in corpus of the task, or the user's files; validation data is set aside if needed.

    A sentence that stands in the data several times falls into one part only; running text is cut
    once, so that both parts stay whole. The built-in corpus is the same for every seed: that which
    `regard data make` writes, whose test part stays unseen.
    """
    if data.data is None:
        if data.valid is not None:
            raise RegardError("option valid: expected with data, which was not given")
        splits = make(task)
        return Parts(
            lambda: iter(splits.train),  # type: ignore[arg-type]
            lambda: iter(splits.valid),  # type: ignore[arg-type]
            lambda: f"{len(splits.train)} built-in examples",
        )
    first = _Reader(read, data, resolve(data.data))
    if data.valid is not None:
        second = _Reader(read, data, resolve(data.valid))

        def told() -> str:
            return noted(str(first), f"for validation {second}" if second.summary.files else "")

        return Parts(first, second, told, aside=False)
    if running:
        return _cut(first)
    try:
        split = split_by(
            (key_of(example) for example in first()), valid=SHARE, most=MOST, seed=seed
        )
    except RegardError:
        if first.whole:
            first.summary.require()  # which names the files, if there are too few examples
        raise

    def part(name: str) -> Callable[[], Iterator[E]]:
        return lambda: (example for example in first() if split.part(key_of(example)) == name)

    return Parts(
        part("train"), part("valid"), lambda: f"{first}; a part was set aside for validation"
    )


def _cut(text: "_Reader[E]") -> Parts[E]:
    """Running text: its end is set aside."""
    total = sum(1 for _ in text())
    aside = min(max(1, round(SHARE * total)), MOST)
    if aside >= total:
        text.summary.require()
        raise RegardError(f"{total} line cannot be split in two parts: more are needed")
    told = f"the last {aside:,} lines were set aside for validation"
    return Parts(
        lambda: islice(text(), total - aside),
        lambda: islice(text(), total - aside, None),
        lambda: f"{text}; {told}" if aside > 1 else f"{text}; the last line was set aside",
    )


class _Reader(Generic[E]):
    """Reads the same sources again at each call, and says what it found there."""

    def __init__(self, read: Read[E], data: Any, sources: Sequence[Source]) -> None:
        self._read, self._data, self._sources = read, data, sources
        self.summary = Summary()
        self.whole = False
        """Whether all was read to the end, without a mistake in it."""

    def __call__(self) -> Iterator[E]:
        self.summary, self.whole = Summary(), False
        yield from self._read(self._data, self._sources, self.summary)
        self.whole = True

    def __str__(self) -> str:
        return str(self.summary)


def there(corpus: Corpus | None) -> Corpus:
    """The corpus, which a task that was loaded to be used has not."""
    if corpus is None:
        raise ValueError("this task was loaded without its corpora")
    return corpus


def with_corpora(task: T, folder: Path) -> T:
    """A task that was loaded, with the corpora to train it on."""
    train, valid = Corpus(folder / TRAIN), Corpus(folder / VALID)
    return replace(task, train=train, valid=valid)  # type: ignore[type-var]


def vocabulary_size(kind: str, wanted: int | None, texts: Iterable[str]) -> int:
    """How many tokens a tokenizer may have; by the size of the corpus unless said.

    >>> vocabulary_size("bpe", None, ["six words make one short sentence"] * 60_000)
    3600
    """
    if wanted is not None:
        return wanted
    if kind not in ("bpe", "unigram"):
        return 30_000
    words = sum(len(text.split()) for text in texts)
    return int(min(16000.0, max(1000.0, 6 * float(words) ** 0.5)))


def noted(*notes: str) -> str:
    """Several remarks as one."""
    return "; ".join(note for note in notes if note)
