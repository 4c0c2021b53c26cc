"""Files and folders that appear whole or not at all."""

import errno
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TypeVar

from regard.errors import RegardError
from regard.verified_files import file_kind, is_pipe, open_folder, open_pipe

T = TypeVar("T")
PART = ".part"
"""How the names of files end that are being written."""
_DESCRIPTORS = {"/dev/stdout": 1, "/dev/stderr": 2}
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")


def write_whole(path: Path, write: Callable[[BinaryIO], T]) -> T:
    """Let `write` fill a temporary file, make sure that it is on the disk, and put it in place.

    For files in a folder that Regard manages, which may come from somebody else: a link in the
    place of the file is replaced and never followed, and anything else but a regular file is an
    error. Files that users name are written with `write_output`.
    """
    with _described_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with _opened_folder(path.parent) as folder:
            return _replace_managed(folder, path, write)


def write_text(path: Path, text: str, *, within: Path | None = None) -> None:
    """A text file in a folder that Regard manages.

    With `within`, no link is followed below that folder, also not one that appears meanwhile.
    """
    content = text.encode("utf-8")
    with _described_errors(path):
        if within is None:
            path.parent.mkdir(parents=True, exist_ok=True)
        root = path.parent if within is None else within
        with _opened_folder(root, path.parent.relative_to(root).parts) as folder:
            _replace_managed(folder, path, lambda stream: stream.write(content))


def _replace_managed(folder: int, path: Path, write: Callable[[BinaryIO], T]) -> T:
    status = _status(path.name, folder, follow=False)
    if status is not None and stat.S_ISLNK(status.st_mode):
        status = None  # the link itself is replaced
    if status is not None and not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, f"it is {file_kind(status.st_mode)}, not a regular file")
    return _replace(folder, path, write, status)


def write_output(path: Path, write: Callable[[BinaryIO], T]) -> T:
    """Let `write` fill the file that a user named.

    Links are followed. A regular file appears, or gets its new content, whole or not at all. A
    pipe, a device or an open file descriptor such as /dev/stdout is written to directly.
    """
    with _described_errors(path):
        descriptor = _descriptor(path)
        if descriptor is not None:
            with os.fdopen(os.dup(descriptor), "wb") as stream:
                return write(stream)
        status = _status(path)
        target = Path(os.path.realpath(path))
        if status is not None and stat.S_ISDIR(status.st_mode):
            raise OSError(errno.EISDIR, "it is a folder")
        if status is None and not target.parent.is_dir():
            folder = target.parent if path.is_symlink() else path.parent
            raise OSError(errno.ENOENT, f"no folder {folder}")
        if status is None or (stat.S_ISREG(status.st_mode) and _is_at(target, status)):
            with _opened_folder(target.parent) as parent:
                return _replace(parent, target, write, status)
        with _open_special(path) as special:
            return write(special)


def open_to_append(path: Path) -> BinaryIO:
    """Open a file in a folder that Regard manages, to append to it; it is made if it is missing.

    That folder may come from somebody else: links are not followed, and only a regular file is
    opened.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    with _described_errors(path):
        descriptor = os.open(path, flags, 0o666)
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            os.close(descriptor)
            raise OSError(errno.EINVAL, f"it is {file_kind(mode)}, not a regular file")
    return os.fdopen(descriptor, "ab")


def write_folder(folder: Path, fill: Callable[[Path], T]) -> T:
    """Let `fill` write files into a temporary folder, which then becomes the new folder.

    Links are followed. An empty folder is replaced; one that contains anything is an error.
    """
    with _described_errors(folder):
        refuse_used_folder(folder)
        target = Path(os.path.realpath(folder))
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
        partial.mkdir()
        try:
            result = fill(partial)
            if target.is_dir():
                partial.chmod(_permissions(target.stat()))
            os.replace(partial, target)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        return result


def make_folder(folder: Path) -> None:
    """Make a folder that a user named, and those above it; links are followed."""
    with _described_errors(folder):
        Path(os.path.realpath(folder)).mkdir(parents=True, exist_ok=True)


def refuse_used_folder(folder: Path) -> None:
    """Raise an error unless a folder is new or empty."""
    with _described_errors(folder):
        if _status(folder) is None:
            return
        if not folder.is_dir():
            raise RegardError(f"{folder}: is not a folder: choose a new or empty folder")
        used = any(folder.iterdir())
    if used:
        raise RegardError(
            f"{folder}: already contains other files; nothing was written: choose a new or empty "
            "folder"
        )


def is_partial_file(path: Path) -> bool:
    """Whether a process was killed while it wrote this file."""
    return re.search(rf".\.\d+{re.escape(PART)}$", path.name) is not None and (
        path.is_symlink() or path.is_file()
    )


def _replace(
    folder: int,
    path: Path,
    write: Callable[[BinaryIO], T],
    replaced: os.stat_result | None,
) -> T:
    """Put a complete file in the place of a regular file or of none.

    Args:
        folder: a descriptor of the folder that `path` is in: whatever happens to the names of
            folders meanwhile, the file is written there.
        path: the file.
        write: fills the temporary file, which it gets as a stream: by the time a library opened
            its path, somebody could have put a link there.
        replaced: the status of the regular file that is replaced.
    """
    if replaced is not None:
        effective = os.access in os.supports_effective_ids
        if not os.access(path.name, os.W_OK, dir_fd=folder, effective_ids=effective):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    part = path.with_name(f"{path.name}.{os.getpid()}{PART}")
    _unlink(part.name, folder)
    # exclusively: nobody can have put a link there, through which another file would be written
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    descriptor = os.open(part.name, flags, 0o666, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            if replaced is not None:
                _copy_owner(replaced, descriptor)
                # before anything secret is in it
                os.fchmod(descriptor, _permissions(replaced) | stat.S_IWUSR)
            result = write(stream)
            stream.flush()
            if replaced is not None:
                os.fchmod(descriptor, _permissions(replaced))
            os.fsync(descriptor)
            named = _status(part.name, folder, follow=False)
            if named is None or not os.path.samestat(named, os.fstat(descriptor)):
                raise OSError(errno.ESTALE, "somebody replaced its temporary file")
        os.replace(part.name, path.name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        _unlink(part.name, folder)
    os.fsync(folder)
    return result


def _open_special(path: Path) -> BinaryIO:
    """What is not a regular file, opened to write; a pipe that nobody reads is an error."""
    return os.fdopen(open_pipe(path, os.O_WRONLY), "wb") if is_pipe(path) else path.open("wb")


def _unlink(name: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def _copy_owner(status: os.stat_result, descriptor: int) -> None:
    """Give a file the owner of the one that it replaces, if this process may."""
    own = os.fstat(descriptor)
    if (own.st_uid, own.st_gid) != (status.st_uid, status.st_gid):
        with suppress(OSError):
            os.fchown(descriptor, status.st_uid, status.st_gid)


def _permissions(status: os.stat_result) -> int:
    return status.st_mode & 0o777


def _status(
    path: Path | str, folder: int | None = None, *, follow: bool = True
) -> os.stat_result | None:
    """What is at a path; None for nothing, or for a link to nothing."""
    try:
        return os.stat(path, dir_fd=folder, follow_symlinks=follow)
    except FileNotFoundError:
        return None


@contextmanager
def _opened_folder(root: Path, names: Sequence[str] = ()) -> Iterator[int]:
    folder = open_folder(root, names, make=True)
    try:
        yield folder
    finally:
        os.close(folder)


def _is_at(path: Path, status: os.stat_result) -> bool:
    """Whether the file with this status is at a path; a link in /proc may name another one."""
    found = _status(path)
    return found is not None and os.path.samestat(found, status)


def _descriptor(path: Path) -> int | None:
    """The number of the open file that a path such as /dev/stdout stands for.

    Opening that path again would truncate a file that is being appended to.
    """
    name = str(path)
    match = _DESCRIPTOR.fullmatch(name)
    return _DESCRIPTORS.get(name) if match is None else int(match[1])


@contextmanager
def _described_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RegardError(f"{path}: cannot be written ({error.strerror or error})") from error
