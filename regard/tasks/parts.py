"""The parts of a corpus: what to train on and what to validate with, read as often as needed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from regard.data import Example, Source, Summary, resolve
from regard.data.builtin import make
from regard.data.corpus import Corpus
from regard.data.split import key_of, split_by

TRAIN, VALID = "train.arrow", "valid.arrow"
E = TypeVar("E", bound=Example)
Read = Callable[[Sequence[Source], Summary], Iterator[E]]


@dataclass(frozen=True)
class Parts(Generic[E]):
    """Two readers, and a way to say what was read."""

    train: Callable[[], Iterator[E]]
    valid: Callable[[], Iterator[E]]
    told: Callable[[], str]


def parts(
    task: str, data: list[str] | None, valid: list[str] | None, read: Read[E], seed: int
) -> Parts[E]:
    """The built-in corpus of the task, or the user's files; validation data is set aside if needed.

    A sentence that stands in the data several times falls into one part only.
    """
    if data is None:
        splits = make(task, seed=seed)
        return Parts(
            lambda: iter(splits.train),  # type: ignore[arg-type]
            lambda: iter(splits.valid),  # type: ignore[arg-type]
            lambda: f"{len(splits.train)} built-in examples",
        )
    first = _Reader(read, resolve(data))
    if valid is not None:
        second = _Reader(read, resolve(valid))
        return Parts(first, second, lambda: f"{first}; for validation {second}")
    split = split_by((key_of(example) for example in first()), most=1000, seed=seed)

    def part(name: str) -> Callable[[], Iterator[E]]:
        return lambda: (example for example in first() if split.part(key_of(example)) == name)

    return Parts(
        part("train"), part("valid"), lambda: f"{first}; a part was set aside for validation"
    )


class _Reader(Generic[E]):
    """Reads the same sources again at each call, and says what it found there."""

    def __init__(self, read: Read[E], sources: Sequence[Source]) -> None:
        self._read, self._sources = read, sources
        self._summary = Summary()

    def __call__(self) -> Iterator[E]:
        self._summary = Summary()
        yield from self._read(self._sources, self._summary)

    def __str__(self) -> str:
        return str(self._summary)


def there(corpus: Corpus | None) -> Corpus:
    """The corpus, which a task that was loaded to be used has not."""
    if corpus is None:
        raise ValueError("this task was loaded without its corpora")
    return corpus


def corpora(folder: Path) -> tuple[Corpus | None, Corpus | None]:
    """The corpora of a prepared run, as far as they are there."""
    train, valid = (
        Corpus(path) if (path := folder / name).exists() else None for name in (TRAIN, VALID)
    )
    return train, valid
