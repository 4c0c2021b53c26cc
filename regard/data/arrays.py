"""Sequences of vectors where words usually are: frames and features from `.npy` files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from regard.data.lines import lines
from regard.data.sources import Source
from regard.errors import RegardError


@contextmanager
def array(source: Source) -> Iterator[np.ndarray]:
    """A `.npy` array of numbers, mapped into memory rather than read."""
    with source.seekable() as path:
        yield _load(path, source.name)


def sequences(source: Source) -> Iterator[np.ndarray]:
    """The examples of one array: [t, d] each, from [n, t, d], or from [n, d] with t = 1."""
    with array(source) as values:
        if values.ndim not in (2, 3):
            raise RegardError(f"{source.name}: shape {list(values.shape)}: expected [n, t, d]")
        for i in range(len(values)):
            yield _finite(np.atleast_2d(values[i]), f"{source.name}[{i}]")


def vectors(source: Source) -> Iterator[np.ndarray]:
    """The rows [d] of one array [n, d]."""
    with array(source) as values:
        if values.ndim != 2:
            raise RegardError(f"{source.name}: shape {list(values.shape)}: expected [n, d]")
        for i in range(len(values)):
            yield _finite(values[i], f"{source.name}[{i}]")


def beside(
    sources: Sequence[Source], what: str
) -> Iterator[tuple[Source, Iterator[tuple[str, str | None, np.ndarray]]]]:
    """Arrays [n, t, d] with the text files of n lines that belong to them (`what` they hold).

    Yields each text file, and its lines (where, line, sequence); unequal counts are an error.
    """
    arrays = [s for s in sources if s.suffix == ".npy"]
    others = [s for s in sources if s.suffix != ".npy"]
    if len(arrays) != len(others):
        raise RegardError(
            f"{len(arrays)} arrays and {len(others)} files of {what}: expected one for each, "
            f"such as x.npy {what}.txt"
        )
    for one, other in zip(arrays, others, strict=True):
        yield other, _joined(one, other)


def _joined(one: Source, other: Source) -> Iterator[tuple[str, str | None, np.ndarray]]:
    rows = sequences(one)
    number = 0
    for number, line in lines(other):
        sequence = next(rows, None)
        if sequence is None:
            raise RegardError(f"{other.name}:{number}: more lines than sequences in {one.name}")
        yield f"{other.name}:{number}", line, sequence
    if next(rows, None) is not None:
        raise RegardError(f"{other.name}: {number:,} lines, but {one.name} holds more sequences")


class Files:
    """Sequences [t, d] (or one vector [d]) that a column of a table names, one file each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._width: int | None = None

    def read(self, name: str, where: str) -> np.ndarray:
        """The sequence of one file; all must have vectors of one size."""
        path = self._folder / name
        if not path.is_file():
            raise RegardError(f"{where}: no file {path}")
        values = _load(path, f"{where}: {name}")
        if values.ndim not in (1, 2):
            raise RegardError(f"{where}: {name}: shape {list(values.shape)}: expected [t, d]")
        sequence = _finite(np.atleast_2d(values), f"{where}: {name}")
        if self._width not in (None, sequence.shape[1]):
            raise RegardError(
                f"{where}: {name}: vectors of {sequence.shape[1]} numbers, {self._width} before"
            )
        self._width = sequence.shape[1]
        return sequence


def named_files(value: object) -> bool:
    """Whether a cell names a file of vectors rather than being a text."""
    return isinstance(value, str) and value.strip().lower().endswith(".npy")


def _load(path: Path, name: str) -> np.ndarray:
    try:
        values = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError, MemoryError, SyntaxError, TypeError) as error:
        what = (str(error).splitlines() or ["unreadable"])[0]
        raise RegardError(f"{name}: not a .npy array ({what}): write it with numpy.save") from error
    if not isinstance(values, np.ndarray):
        raise RegardError(f"{name}: several arrays in one file: expected one (numpy.save)")
    if values.dtype.kind not in "fiub":
        raise RegardError(f"{name}: an array of {values.dtype}: expected numbers")
    if values.ndim and not values.shape[-1]:
        raise RegardError(f"{name}: shape {list(values.shape)}: vectors of no numbers")
    return values


def _finite(values: np.ndarray, where: str) -> np.ndarray:
    numbers = np.asarray(values, dtype=np.float32)
    if not np.isfinite(numbers).all():
        raise RegardError(f"{where}: holds NaN or infinite values")
    return numbers
