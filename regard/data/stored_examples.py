"""Examples that are read several times: kept by column in a temporary file by the first reading."""

import mmap
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from regard.data.examples import Example, Labelled, Line, Pair, Tagged

_ROWS = 2048
"""Examples per record batch."""
_TEXT, _TEXTS = pa.large_string(), pa.large_list(pa.large_string())
_SCHEMAS: Mapping[type, Any] = {
    Pair: pa.schema({"source": _TEXT, "target": _TEXT, "where": _TEXT}),
    Labelled: pa.schema({"text": _TEXT, "labels": _TEXTS, "where": _TEXT}),
    Tagged: pa.schema({"words": _TEXTS, "tags": _TEXTS, "where": _TEXT}),
    Line: pa.schema({"text": _TEXT, "condition": _TEXT, "where": _TEXT}),
}
_E = TypeVar("_E", bound=Example)


class StoredExamples:
    """Examples of one kind in a temporary file, which is memory-mapped and has no name.

    Reading them again takes a tenth of the time of reading, checking and counting the lines of the
    user's files. Sequences of vectors and pairs with links are not stored, and nothing is where
    there is no room for the file: `whole` is then False, and the user's files have to be read
    again.

    >>> stored = StoredExamples()
    >>> [pair.source for pair in stored.store(iter([Pair("a", "b"), Pair("c", "d")]))]
    ['a', 'c']
    >>> stored.whole, [pair.target for chunk in stored.chunks() for pair in chunk]
    (True, ['b', 'd'])
    """

    def __init__(self, folder: Path | None = None) -> None:
        """The file is made in `folder`, or in the system's folder of temporary files."""
        self._folder = folder
        self._kind: type | None = None
        self._batches: list[Any] = []
        self.whole = False
        """Whether every example was stored."""

    def store(self, examples: Iterable[_E]) -> Iterator[_E]:
        """The examples one by one, which are stored when the last one was taken."""
        try:
            file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 (closed below)
        except OSError:
            yield from examples
            return
        with file:
            writer, chunk, storable = None, [], True
            for example in examples:
                if storable:
                    chunk.append(example)
                yield example
                if len(chunk) == _ROWS:
                    writer = self._write(file, writer, chunk)
                    storable, chunk = writer is not None, []
            if chunk:
                writer = self._write(file, writer, chunk)
                storable = writer is not None
            if storable:
                self._finish(file, writer)

    def chunks(self, chosen: np.ndarray | None = None) -> Iterator[list[Any]]:
        """Lists of examples in order; only those with True in `chosen`, a bool for each."""
        start = 0
        for stored in self._batches:
            batch, end = stored, start + stored.num_rows
            if chosen is not None:
                batch = stored.filter(pa.array(chosen[start:end]))
            start = end
            if batch.num_rows and self._kind is not None:
                columns = [
                    map(tuple, column.to_pylist()) if column.type == _TEXTS else column.to_pylist()
                    for column in batch.columns
                ]
                yield list(map(self._kind, *columns))

    def _write(self, file: Any, writer: Any, chunk: list[Any]) -> Any:
        """Write a chunk; the writer, or None where the examples cannot be stored."""
        if self._kind is None:
            self._kind = type(chunk[0])
        schema = _SCHEMAS.get(self._kind)
        if schema is None or any(type(example) is not self._kind for example in chunk):
            return None
        try:
            columns = [
                pa.array([getattr(example, field.name) for example in chunk], field.type)
                for field in schema
            ]
            if writer is None:
                writer = pa.ipc.new_file(file, schema)
            writer.write_batch(pa.record_batch(columns, schema=schema))
        except (OSError, pa.ArrowException, UnicodeError):  # no room, vectors, no UTF-8
            return None
        return writer

    def _finish(self, file: Any, writer: Any) -> None:
        try:
            if writer is not None:
                writer.close()
                file.flush()
                # The map keeps the pages when the file, which has no name, is closed.
                pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                reader = pa.ipc.open_file(pa.BufferReader(pa.py_buffer(pages)))
                self._batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
        except (OSError, pa.ArrowException):
            return
        self.whole = True
