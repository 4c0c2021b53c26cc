"""Part files: the result of one shard, in one file that is written whole, with a digest."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO

from regard.atomic_files import write_whole
from regard.errors import RegardError
from regard.verified_files import MEBIBYTE, open_regular, parse_json

MOST_ERRORS = 1000
"""Messages that are kept per shard and per file; further ones are counted."""
MAX_HEADER = 16 * MEBIBYTE
COUNTS, DIGEST = ("lines", "truncated", "failed"), "digest"
Summary = dict[str, Any]
"""Of a shard or a file: number of `lines`, of those `truncated` and `failed`, and `errors`: the
messages."""


def write_part(path: Path, header: Summary, content: bytes) -> None:
    """The result of a shard: one line of JSON about it, and its bytes of the output file."""
    first = json.dumps({**header, DIGEST: _digest(header, [content])}).encode() + b"\n"

    def fill(file: BinaryIO) -> None:
        file.write(first)
        file.write(content)

    write_whole(path, fill)


@contextmanager
def open_part(path: Path) -> Iterator[tuple[Summary, IO[bytes]]]:
    """What a part says of its shard, and a stream of its content."""
    with open_regular(path) as part:
        header = parse_json(part.readline(MAX_HEADER))
        if not isinstance(header, dict):
            raise ValueError("its first line is not an object")
        yield header, part


def is_whole_part(path: Path) -> bool:
    """Whether a shard has a result, and that is what `write_part` wrote."""
    try:
        with open_part(path) as (header, content):
            digest = header.pop(DIGEST, None)
            blocks = iter(lambda: content.read(MEBIBYTE), b"")
            return is_summary(header) and digest == _digest(header, blocks)
    except (OSError, ValueError, RegardError):
        return False


def is_summary(record: object) -> bool:
    """Whether a record has the counts and messages of a shard or a file."""
    if not isinstance(record, dict) or {*record} != {*COUNTS, "errors"}:
        return False
    counts = all(type(record[name]) is int and record[name] >= 0 for name in COUNTS)
    errors = record["errors"]
    return counts and isinstance(errors, list) and all(isinstance(e, str) for e in errors)


def add_summary(total: Summary, part: Summary) -> None:
    """Add the counts and messages of a part."""
    for name in COUNTS:
        total[name] = total.get(name, 0) + part[name]
    total["errors"] = [*total.get("errors", ()), *part["errors"]][:MOST_ERRORS]


def _digest(header: Summary, blocks: Iterable[bytes]) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for block in blocks:
        digest.update(block)
    return digest.hexdigest()
