"""Files that appear whole or not at all."""

import os
from collections.abc import Callable
from pathlib import Path

from regard.errors import RegardError

PART = ".part"
"""How the names of files end that are being written."""


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file, make sure that it is on the disk, and put it in place."""
    part = path.with_name(f"{path.name}.{os.getpid()}{PART}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            write(part)
            _to_disk(part)
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
        _to_disk(path.parent)
    except OSError as error:
        raise RegardError(f"{path}: cannot be written ({error.strerror or error})") from error


def write_text(path: Path, text: str) -> None:
    """A text file that appears whole or not at all."""
    write_whole(path, lambda part: part.write_bytes(text.encode("utf-8")))


def _to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
