"""Corpora larger than memory: tokenized once into Arrow files that are memory-mapped."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from regard.atomic_files import write_whole
from regard.data.readers.sources import Source
from regard.errors import RegardError

CHUNK = 2048
_KEY = b"regard"
_Item = TypeVar("_Item")

Row = Mapping[str, Any]
"""Columns by name: a sequence of int, an array of numbers [t, d], an int, a float or a text."""


class Corpus:
    """A table on disk: rows of token sequences, vectors, numbers and texts.

    The file is memory-mapped, so the operating system caches as much of it as fits; the process
    itself allocates only the rows and lengths that are read.
    """

    def __init__(self, path: Path) -> None:
        try:
            reader = pa.ipc.open_file(pa.memory_map(str(path)))
            header = json.loads((reader.schema.metadata or {})[_KEY])
            last = reader.num_record_batches - 1
            chunks = [reader.get_batch(i) for i in range(last)]
            metadata = json.loads(reader.get_batch_with_custom_metadata(last).custom_metadata[_KEY])
            self._size: int = header["chunk"]
        except (OSError, pa.ArrowException, KeyError, ValueError, TypeError) as error:
            reason = (str(error).splitlines() or [""])[0]
            raise RegardError(f"{path}: not a tokenized corpus of Regard ({reason})") from error
        self.fingerprint: str = header["fingerprint"]
        self.metadata: dict[str, Any] = metadata
        self.columns: tuple[str, ...] = tuple(reader.schema.names)
        self._length: int = sum(chunk.num_rows for chunk in chunks)
        self._views = {name: [_view(c.column(name)) for c in chunks] for name in self.columns}

    def __len__(self) -> int:
        return self._length

    def lengths(self, column: str) -> np.ndarray:
        """The length of each sequence of a column, int32 [n]."""
        by_chunk = [np.diff(view.offsets) for view in self._views[column]]
        return np.concatenate([np.zeros(0, np.int32), *by_chunk]).astype(np.int32)

    def rows(self, indices: Sequence[int] | np.ndarray) -> Mapping[str, list[Any]]:
        """The chosen rows by column: arrays for sequences, plain values for the others.

        A column is read when it is taken.
        """
        return _Rows(self._views, [divmod(int(i), self._size) for i in indices])

    def column(self, name: str) -> Iterator[Any]:
        """The values of one column, in order."""
        for view in self._views[name]:
            for row in range(len(view)):
                yield view[row]

    def stream(self, column: str) -> "Stream":
        """All sequences of a column end to end."""
        return Stream([view.values for view in self._views[column]])


class _Rows(Mapping[str, list[Any]]):
    """Some rows of a table, column by column."""

    def __init__(self, views: Mapping[str, list[Any]], chosen: list[tuple[int, int]]) -> None:
        self._views, self._chosen = views, chosen

    def __getitem__(self, name: str) -> list[Any]:
        views = self._views[name]
        return [views[chunk][row] for chunk, row in self._chosen]

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def __len__(self) -> int:
        return len(self._views)


class Stream:
    """Pieces of one long sequence, sliced as if they were one array."""

    def __init__(self, parts: Sequence[np.ndarray]) -> None:
        self._parts = [part for part in parts if len(part)]
        self._starts = np.cumsum([0] + [len(part) for part in self._parts])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, place: slice) -> np.ndarray:
        start, stop, _ = place.indices(len(self))
        first = int(np.searchsorted(self._starts, start, "right")) - 1
        pieces: list[np.ndarray] = []
        for begin, part in zip(self._starts[first:], self._parts[first:], strict=False):
            if begin >= stop:
                break
            pieces.append(part[max(start - int(begin), 0) : stop - int(begin)])
        return np.concatenate(pieces) if pieces else np.zeros(0, np.int32)


class _Lists:
    """A column of sequences: one array of values, and the offset where each sequence begins."""

    def __init__(self, array: Any) -> None:
        self.offsets: np.ndarray = array.offsets.to_numpy()
        inner = array.values
        if pa.types.is_fixed_size_list(inner.type):
            width = inner.type.list_size
            self.values: np.ndarray = inner.values.to_numpy().reshape(-1, width)
        else:
            self.values = inner.to_numpy()
        self.offsets = self.offsets - self.offsets[0] if self.offsets[0] else self.offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> np.ndarray:
        return self.values[self.offsets[row] : self.offsets[row + 1]]


class _Scalars:
    """A column of single values."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, row: int) -> Any:
        return self._array[row].as_py()


def _view(array: Any) -> Any:
    return _Lists(array) if pa.types.is_list(array.type) else _Scalars(array)


def write_rows(
    path: Path,
    rows: Iterable[Row],
    fingerprint: str = "",
    metadata: Callable[[], Mapping[str, Any]] = dict,
    chunk: int = CHUNK,
) -> Corpus:
    """Write rows to a corpus file, one chunk at a time, and open it.

    The file appears whole or not at all. `metadata` is called after the last row; its result (any
    JSON value, such as the reader's summary) is stored in the file.
    """
    header = {"fingerprint": fingerprint, "chunk": chunk}

    write_whole(path, lambda stream: _write(stream, iter(rows), header, metadata, path))
    return Corpus(path)


def reuse_or_write(
    path: Path,
    rows: Callable[[], Iterable[Row]],
    fingerprint: str | None,
    metadata: Callable[[], Mapping[str, Any]] = dict,
) -> Corpus:
    """The corpus at `path` if it has this fingerprint; otherwise write it again.

    Without a fingerprint (standard input) nothing is reused.
    """
    if fingerprint is not None and path.exists():
        try:
            existing = Corpus(path)
        except RegardError:
            existing = None
        if existing is not None and existing.fingerprint == fingerprint:
            return existing
    return write_rows(path, rows(), fingerprint or "", metadata)


def fingerprint(sources: Iterable[Source], *options: object) -> str | None:
    """A hash of the inputs (paths, sizes, modification times) and of everything else that decides
    the rows, such as the tokenizer's fingerprint; None for inputs such as standard input."""
    files = [source.fingerprint() for source in sources]
    if any(file is None for file in files):
        return None
    return sha256(json.dumps([files, options], sort_keys=True).encode()).hexdigest()


def in_chunks(items: Iterable[_Item], size: int = CHUNK) -> Iterator[list[_Item]]:
    """Lists of `size` items, the last one shorter.

    >>> list(in_chunks("abcde", 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk


def _write(
    file: BinaryIO,
    rows: Iterator[Row],
    header: dict[str, Any],
    metadata: Callable[[], Mapping[str, Any]],
    path: Path,
) -> None:
    first = next(rows, None)
    if first is None:
        raise RegardError(f"{path}: no examples to write")
    fields = [pa.field(name, _type(value, name)) for name, value in first.items()]
    schema = pa.schema(fields, metadata={_KEY: json.dumps(header)})
    with pa.ipc.new_file(file, schema) as writer:
        for chunk in in_chunks(chain([first], rows), header["chunk"]):
            columns = [_column([row[f.name] for row in chunk], f.type) for f in schema]
            writer.write_batch(pa.record_batch(columns, schema=schema))
        # The metadata is known only after the last row, when the schema has long been written: the
        # custom metadata of an empty last batch carries it.
        empty = pa.record_batch([pa.array([], f.type) for f in schema], schema=schema)
        writer.write_batch(empty, custom_metadata={_KEY: json.dumps(metadata())})


def _type(value: Any, name: str) -> Any:
    if isinstance(value, str):
        return pa.string()
    if isinstance(value, (bool, int, np.integer)):
        return pa.int64()
    if isinstance(value, (float, np.floating)):
        return pa.float64()
    array = np.asarray(value)
    if array.ndim == 1:
        return pa.list_(pa.float32() if array.dtype.kind == "f" and len(array) else pa.int32())
    if array.ndim == 2:
        return pa.list_(pa.list_(pa.float32(), array.shape[1]))
    raise ValueError(f"column {name!r}: shape {array.shape}: expected [t] or [t, d]")


def _column(values: list[Any], arrow_type: Any) -> Any:
    if not pa.types.is_list(arrow_type):
        return pa.array(values, arrow_type)
    offsets = np.cumsum([0] + [len(value) for value in values], dtype=np.int32)
    inner = arrow_type.value_type
    if pa.types.is_fixed_size_list(inner):
        shape = (0, inner.list_size)
        flat = np.concatenate([np.zeros(shape), *(np.reshape(v, (-1, shape[1])) for v in values)])
        values_array = pa.array(flat.astype(np.float32).ravel())
        return pa.ListArray.from_arrays(
            pa.array(offsets),
            pa.FixedSizeListArray.from_arrays(values_array, inner.list_size),
            type=arrow_type,
        )
    if all(isinstance(value, list) for value in values):
        flat = np.array(list(chain.from_iterable(values)))
    else:
        flat = np.concatenate([np.asarray(value) for value in values])
    values_array = pa.array(flat.astype(inner.to_pandas_dtype()))
    return pa.ListArray.from_arrays(pa.array(offsets), values_array, type=arrow_type)
