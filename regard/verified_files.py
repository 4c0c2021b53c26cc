"""Files that may be damaged or crafted: regular files only, of limited size, with known digests."""

import hashlib
import json
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from threading import Thread
from typing import Any

from regard.errors import RegardError

MEBIBYTE = 2**20
MAX_CONFIG = 4 * MEBIBYTE
MAX_JSON = 128 * MEBIBYTE
"""Default limit of JSON files: a vocabulary of a million words has about 50 MiB."""


PIPE_SECONDS = 10.0
"""How long a named pipe is waited for until a program is at its other end."""


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


def is_plain(path: Path) -> bool:
    """Whether a path is a regular file, a folder or missing: no link, pipe or device."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return True
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def is_file_below(name: str) -> bool:
    """Whether a name from a record is a path below its folder, written in the only usual way.

    Another spelling (`./a`, `b//a`) could name the same file many times.
    """
    path = Path(name)
    return (
        bool(path.parts)
        and not path.is_absolute()
        and ".." not in path.parts
        and (path.as_posix() == name)
    )


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file; what is opened is checked, so that nothing can take its place before."""
    return _regular_stream(os.open(path, os.O_RDONLY | os.O_NONBLOCK), path)  # a pipe would block


def open_inside(folder: Path, path: Path) -> BufferedReader:
    """Open a regular file in a folder; links are followed only to places in that folder.

    Where the links lead is found first, and the way there is then opened step by step without
    following any: a link that was put there in between is an `OSError`.
    """
    root, target = Path(os.path.realpath(folder)), Path(os.path.realpath(path))
    if target == root or not target.is_relative_to(root):
        raise RegardError(f"{path}: leads out of the folder {folder}")
    *folders, name = target.relative_to(root).parts
    handle = open_folder(root, folders)
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        return _regular_stream(os.open(name, flags, dir_fd=handle), path)
    finally:
        os.close(handle)


def open_folder(root: Path, names: Sequence[str], *, make: bool = False) -> int:
    """A descriptor of a folder below another one, for `dir_fd`; no link below it is followed."""
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    for name in names:
        outer = handle
        try:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=outer)
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
            handle = os.open(name, flags, dir_fd=outer)
        finally:
            os.close(outer)
    return handle


def _regular_stream(handle: int, path: Path) -> BufferedReader:
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        raise RegardError(f"{path}: expected a regular file, found {file_kind(mode)}")
    return os.fdopen(handle, "rb")


def read_bytes(path: Path, limit: int = MAX_JSON, *, within: Path | None = None) -> bytes:
    """The content of a regular file of at most `limit` bytes.

    With `within`, links are followed only to places in that folder. `FileNotFoundError` and
    `NotADirectoryError` are raised as they are.
    """
    check_regular(path, limit)
    try:
        with open_regular(path) if within is None else open_inside(within, path) as file:
            content = file.read(limit + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RegardError(f"{path}: cannot be read ({error.strerror or error})") from error
    if len(content) > limit:
        raise RegardError(f"{path}: has more than {limit:,} bytes")
    return content


def open_named(path: Path) -> BufferedReader:
    """Open a file or a pipe that a user named, see `open_pipe`; `OSError` is raised as it is."""
    return os.fdopen(open_pipe(path, os.O_RDONLY), "rb") if is_pipe(path) else path.open("rb")


def is_pipe(path: Path) -> bool:
    """Whether a path is a pipe with a name; not one of a shell, such as /dev/fd/63."""
    return Path(os.path.realpath(path)).is_fifo()  # /proc/…/pipe:[…] does not exist


def open_pipe(path: Path, flags: int) -> int:
    """Open one end of a pipe; an error if no program opens its other end within `PIPE_SECONDS`.

    A plain `open` would wait for that program for ever.

    Args:
        path: a pipe with a name.
        flags: `os.O_RDONLY` or `os.O_WRONLY`.
    """
    opened: list[int | OSError] = []

    def wait() -> None:
        try:
            opened.append(os.open(path, flags))
        except OSError as error:
            opened.append(error)

    waiting = Thread(target=wait, daemon=True)
    waiting.start()
    waiting.join(PIPE_SECONDS)
    late = waiting.is_alive()
    while waiting.is_alive():  # let it go, by the other end
        with suppress(OSError):
            os.close(os.open(path, (flags ^ os.O_WRONLY) | os.O_NONBLOCK))
        waiting.join(0.01)
    (end,) = opened
    if isinstance(end, OSError):
        raise end
    if late:
        os.close(end)
        action = "reads from" if flags == os.O_WRONLY else "writes to"
        raise RegardError(
            f"{path}: nobody {action} this pipe: start the program that does first (waited "
            f"{PIPE_SECONDS:g} seconds)"
        )
    return end


def read_named(path: Path, limit: int) -> str:
    """The text of a file or a pipe that a user named, of at most `limit` bytes.

    `OSError` and `ValueError` are raised as they are.
    """
    with open_named(path) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"it has more than {limit:,} bytes")
    return content.decode("utf-8")


def read_json(path: Path, limit: int = MAX_JSON, *, within: Path | None = None) -> Any:
    """The value in a JSON file.

    With `within`, links are followed only to places in that folder. `FileNotFoundError` and
    `NotADirectoryError` are raised as they are.
    """
    try:
        return parse_json(read_bytes(path, limit, within=within))
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
        with open_regular(path) as file:
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
