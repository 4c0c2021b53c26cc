"""Files that may be damaged or crafted: regular files only, of limited size, with known digests."""

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

from regard.errors import RegardError

MEBIBYTE = 2**20
MAX_JSON = 128 * MEBIBYTE
"""Default limit of JSON files: a vocabulary of a million words has about 50 MiB."""


def check_regular(path: Path, limit: int | None = None) -> int:
    """The size of a regular file; an error for anything else, which could block or never end.

    `FileNotFoundError` and `NotADirectoryError` are raised as they are.
    """
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise RegardError(f"{path}: cannot be read ({error.strerror or error})") from error
    if not stat.S_ISREG(status.st_mode):
        raise RegardError(f"{path}: expected a regular file, found {file_kind(status.st_mode)}")
    if limit is not None and status.st_size > limit:
        raise RegardError(f"{path}: has {status.st_size:,} bytes: expected at most {limit:,}")
    return status.st_size


def read_bytes(path: Path, limit: int = MAX_JSON) -> bytes:
    """The content of a regular file of at most `limit` bytes.

    `FileNotFoundError` and `NotADirectoryError` are raised as they are.
    """
    check_regular(path, limit)
    try:
        # What is opened may be another file than what was checked: a pipe must not block.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise RegardError(f"{path}: expected a regular file")
            content = file.read(limit + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RegardError(f"{path}: cannot be read ({error.strerror or error})") from error
    if len(content) > limit:
        raise RegardError(f"{path}: has more than {limit:,} bytes")
    return content


def read_json(path: Path, limit: int = MAX_JSON) -> Any:
    """The value in a JSON file.

    `FileNotFoundError` and `NotADirectoryError` are raised as they are.
    """
    try:
        return parse_json(read_bytes(path, limit))
    except ValueError as error:
        raise RegardError(f"{path}: cannot be read as JSON ({error})") from error


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text; ValueError also for one that is nested too deeply."""
    try:
        return json.loads(text if isinstance(text, str) else text.decode("utf-8"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def file_digest(path: Path, limit: int | None = None) -> str:
    """The SHA-256 digest of a regular file of at most `limit` bytes."""
    try:
        check_regular(path, limit)
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise RegardError(f"{path}: is missing: restore it from a copy of the run") from None
    except OSError as error:
        raise RegardError(f"{path}: cannot be read ({error.strerror or error})") from error


def json_digest(value: Any) -> str:
    """The SHA-256 digest of a JSON value, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def file_kind(mode: int) -> str:
    """What is at a path that is not a regular file, from the mode in its status."""
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")
