"""Part files: the result of one shard, in one file that is written whole."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO

from regard.atomic_files import write_whole
from regard.verified_files import MEBIBYTE, parse_json

MOST_ERRORS = 1000
"""Messages that are kept per shard and per file; further ones are counted."""
MAX_HEADER = 16 * MEBIBYTE
Summary = dict[str, Any]
"""Of a shard or a file: number of `lines`, of those `truncated` and `failed`, and `errors`: the
messages."""


def write_part(path: Path, header: Summary, content: bytes) -> None:
    """The result of a shard: one line of JSON about it, and its bytes of the output file."""
    first = json.dumps(header).encode() + b"\n"

    def fill(file: BinaryIO) -> None:
        file.write(first)
        file.write(content)

    write_whole(path, fill)


@contextmanager
def open_part(path: Path) -> Iterator[tuple[Summary, IO[bytes]]]:
    """What a part says of its shard, and a stream of its content."""
    with path.open("rb") as part:
        yield parse_json(part.readline(MAX_HEADER)), part


def add_summary(total: Summary, part: Summary) -> None:
    """Add the counts and messages of a part."""
    for name in ("lines", "truncated", "failed"):
        total[name] = total.get(name, 0) + part[name]
    total["errors"] = [*total.get("errors", ()), *part["errors"]][:MOST_ERRORS]
