"""Sequences of vectors in place of words: frames and features from `.npy` files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from regard.data.readers.lines import lines
from regard.data.readers.sources import Source
from regard.errors import RegardError


@contextmanager
def open_array(source: Source) -> Iterator[np.ndarray]:
    """A `.npy` array of numbers, memory-mapped."""
    with source.seekable() as path:
        yield _load(path, source.name)


def sequences(source: Source) -> Iterator[np.ndarray]:
    """The examples of one array: [t, d] each, from [n, t, d], or from [n, d] with t = 1."""
    with open_array(source) as values:
        if values.ndim not in (2, 3):
            raise RegardError(f"{source.name}: shape {list(values.shape)}: expected [n, t, d]")
        for i in range(len(values)):
            yield _finite(np.atleast_2d(values[i]), f"{source.name}[{i}]")


def vectors(source: Source) -> Iterator[np.ndarray]:
    """The rows [d] of one array [n, d]."""
    with open_array(source) as values:
        if values.ndim != 2:
            raise RegardError(f"{source.name}: shape {list(values.shape)}: expected [n, d]")
        for i in range(len(values)):
            yield _finite(values[i], f"{source.name}[{i}]")


def arrays_with_lines(
    sources: Sequence[Source], what: str
) -> Iterator[tuple[Source, Iterator[tuple[str, str | None, np.ndarray]]]]:
    """Arrays [n, t, d] with the text files of n lines that belong to them; `what` the lines are.

    Yields each text file, and its lines as (where, line, sequence); unequal counts are an error.
    """
    arrays = [s for s in sources if s.suffix == ".npy"]
    text_files = [s for s in sources if s.suffix != ".npy"]
    if len(arrays) != len(text_files):
        raise RegardError(
            f"{len(arrays)} .npy files and {len(text_files)} files of {what}: expected one file of "
            f"{what} per array, such as x.npy {what}.txt"
        )
    for array, text_file in zip(arrays, text_files, strict=True):
        yield text_file, _zip_lines(array, text_file)


def _zip_lines(array: Source, text_file: Source) -> Iterator[tuple[str, str | None, np.ndarray]]:
    rows = sequences(array)
    number = 0
    for number, line in lines(text_file):
        sequence = next(rows, None)
        if sequence is None:
            raise RegardError(
                f"{text_file.name}:{number}: no sequence for this line in {array.name}: "
                "expected as many lines as sequences"
            )
        yield f"{text_file.name}:{number}", line, sequence
    if next(rows, None) is not None:
        raise RegardError(
            f"{text_file.name}: {number:,} lines, but {array.name} has more sequences: "
            "expected as many lines as sequences"
        )


class VectorFiles:
    """Sequences [t, d] (or vectors [d]) in files of their own, named in a column of a table."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._width: int | None = None

    def read(self, name: str, where: str) -> np.ndarray:
        """The sequence of one file; the vectors of all files must have the same size."""
        path = self._folder / name
        if not path.is_file():
            raise RegardError(f"{where}: {path}: no such file (names are relative to the table)")
        values = _load(path, f"{where}: {name}")
        if values.ndim not in (1, 2):
            raise RegardError(f"{where}: {name}: shape {list(values.shape)}: expected [t, d]")
        sequence = _finite(np.atleast_2d(values), f"{where}: {name}")
        if self._width not in (None, sequence.shape[1]):
            raise RegardError(
                f"{where}: {name}: vectors of {sequence.shape[1]} numbers: expected {self._width} "
                "as in the rows before"
            )
        self._width = sequence.shape[1]
        return sequence


def array_cell(values: np.ndarray, where: str) -> np.ndarray:
    """The sequence [t, d] of a cell that holds an array, [t, d] or [d]."""
    if values.ndim not in (1, 2) or not values.shape[-1]:
        raise RegardError(f"{where}: an array of shape {list(values.shape)}: expected [t, d]")
    return _finite(np.atleast_2d(values), where)


def names_vector_file(value: object) -> bool:
    """Whether a cell is the name of a file of vectors rather than a text."""
    return isinstance(value, str) and value.strip().lower().endswith(".npy")


def _load(path: Path, name: str) -> np.ndarray:
    try:
        values = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError, MemoryError, SyntaxError, TypeError) as error:
        reason = (str(error).splitlines() or ["unreadable"])[0]
        raise RegardError(
            f"{name}: not a .npy array ({reason}): write it with numpy.save"
        ) from error
    if not isinstance(values, np.ndarray):
        raise RegardError(
            f"{name}: several arrays in one file: expected one, written with numpy.save"
        )
    if values.dtype.kind not in "fiub":
        raise RegardError(f"{name}: array of type {values.dtype}: expected numbers")
    if values.ndim and not values.shape[-1]:
        raise RegardError(f"{name}: shape {list(values.shape)}: the vectors are empty")
    return values


def _finite(values: np.ndarray, where: str) -> np.ndarray:
    with np.errstate(over="ignore"):  # a number that is too large becomes infinite
        numbers = np.asarray(values, dtype=np.float32)
    if not np.isfinite(numbers).all():
        raise RegardError(f"{where}: contains NaN or infinite values: expected finite numbers")
    return numbers
