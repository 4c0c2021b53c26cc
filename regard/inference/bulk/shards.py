"""Files divided into shards: pieces of whole lines that workers process one at a time.

A shard is a multiple of the blocks that the plain commands process together, so that its lines are
in the same batches as there: the output is the same to the byte, whoever computes it.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from io import BufferedIOBase
from pathlib import Path
from typing import Any

from regard.data.readers.formats import ENDINGS, UNREADABLE
from regard.data.readers.lines import BLOCK, LINE_LIMIT
from regard.data.readers.sources import GZIP, Source, resolve
from regard.errors import RegardError
from regard.inference.line_records import BLOCK_LINES

SHARD_LINES = 5 * BLOCK_LINES
"""Default number of lines of a shard: what is lost when a worker dies. A multiple of the chunks in
which lines are processed."""
MOST_SHARDS = 16
"""Shards of a file that has to be read from its beginning (gzip, Parquet)."""


@dataclass(frozen=True)
class InputFile:
    """One input file and the name of its output."""

    path: str
    form: str
    """lines, jsonl or parquet."""
    compressed: bool
    output: str
    """The name of the output file."""
    fingerprint: str
    """Changes with the path, size and modification time of the file."""
    columns: tuple[str, ...] = ()
    """Columns of a table that are read."""

    @property
    def source(self) -> Source:
        """The file as the readers of data take it."""
        return resolve(self.path)[0]


@dataclass(frozen=True)
class Shard:
    """Some lines, or rows, of one file."""

    file: InputFile
    first: int
    """Number of the first line, from 1."""
    count: int
    offset: int = 0
    """Byte at which the first line begins; 0 for files that are read from their beginning."""

    @property
    def name(self) -> str:
        """A name that no other shard of this output has, nor one of a changed file."""
        key = sha256(self.file.fingerprint.encode()).hexdigest()[:12]
        return f"{key}-{self.first:012}-{self.count}"

    def record(self) -> dict[str, Any]:
        """Plain values, for workers."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "Shard":
        """What `record` returned."""
        file = record["file"]
        return cls(InputFile(**file | {"columns": tuple(file["columns"])}), *_rest(record))


def _rest(record: dict[str, Any]) -> tuple[int, int, int]:
    return int(record["first"]), int(record["count"]), int(record["offset"])


def file_form(source: Source) -> str:
    """How a file is read: as lines of text, as JSON records, or as Parquet."""
    form = ENDINGS.get(source.suffix, "lines")
    if source.suffix in UNREADABLE or form == "npy":
        raise RegardError(
            f"{source.name}: {source.suffix} files cannot be read: save it as text, JSONL or "
            "Parquet"
        )
    return form if form in ("jsonl", "parquet") else "lines"


def is_compressed(path: Path) -> bool:
    """Whether a file is compressed by gzip."""
    with open(path, "rb") as stream:
        return stream.read(2) == GZIP


def divide(file: InputFile, lines: int = SHARD_LINES) -> list[Shard]:
    """The shards of a file, in order; an empty file has none."""
    if file.form == "parquet":
        return _divide_evenly(file, _parquet_rows(file), lines)
    with file.source.open() as stream:
        if not file.compressed:
            starts = list(_shard_starts(stream, lines))
            counts = [count for _, count in starts]
            firsts = [1 + lines * i for i in range(len(starts))]
            offsets = [offset for offset, _ in starts]
            return [Shard(file, *place) for place in zip(firsts, counts, offsets, strict=True)]
        return _divide_evenly(file, sum(count for _, count in _shard_starts(stream, lines)), lines)


def _divide_evenly(file: InputFile, total: int, lines: int) -> list[Shard]:
    """Few shards for a file whose shards are each read from its beginning."""
    size = lines * max(1, -(-total // (lines * MOST_SHARDS)))
    return [Shard(file, first + 1, min(size, total - first)) for first in range(0, total, size)]


def _parquet_rows(file: InputFile) -> int:
    from pyarrow import ArrowException, parquet  # type: ignore[import-untyped]

    try:
        with parquet.ParquetFile(file.path) as table:
            return int(table.metadata.num_rows)
    except (ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise RegardError(f"{file.path}: not a Parquet file ({reason})") from error


def _shard_starts(stream: BufferedIOBase, lines: int) -> Iterator[tuple[int, int]]:
    """Where each shard begins, in bytes, and its number of lines.

    Lines end where `raw_lines` ends them: at \\n, \\r\\n or \\r.
    """
    start = offset = count = 0
    pending, inside = b"", False  # inside a line that is too long, of which a part was counted
    while block := stream.read(BLOCK):
        parts = (pending + block).splitlines(keepends=True)
        pending = b"" if parts[-1].endswith(b"\n") else parts.pop()
        for part in parts:
            if not inside:
                if count == lines:
                    yield start, count
                    start, count = offset, 0
                count += 1
            inside = False
            offset += len(part)
        if len(pending) > LINE_LIMIT + 1 and not pending.endswith(b"\r"):
            if not inside:
                if count == lines:
                    yield start, count
                    start, count = offset, 0
                count += 1
            inside = True
            offset += len(pending)
            pending = b""
    if pending and not inside:
        if count == lines:
            yield start, count
            start, count = offset, 0
        count += 1
    if count:
        yield start, count
