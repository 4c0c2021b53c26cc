"""Where data comes from: files, globs, standard input, gzip of each, `hf:` names, or memory."""

import glob
import gzip
import os
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import SequenceMatcher, get_close_matches
from io import BufferedIOBase
from pathlib import Path
from typing import IO

from regard.data.readers.in_memory import MARK, ExamplesInMemory
from regard.errors import RegardError, check_utf8
from regard.verified_files import open_named

GZIP = b"\x1f\x8b"
MAX_COPY = 2**34
"""Most bytes of standard input, of a pipe or of a compressed table that are copied to a file."""
KEPT_FREE = 2**30
"""Bytes of the disk that such a copy leaves free, or a tenth of a small disk."""
COPY_BLOCK = 2**20


@dataclass(eq=False, slots=True)
class Source:
    """One input, which can be opened as often as needed and is decompressed if it is gzip.

    An input that can be read only once (standard input, a pipe) is copied to a temporary file.
    """

    name: str
    path: Path | None
    argument: int = 0
    examples: ExamplesInMemory | None = field(default=None, repr=False)
    """The examples themselves, where they are in memory."""
    _copy: "tempfile._TemporaryFileWrapper[bytes] | None" = field(default=None, repr=False)

    @property
    def suffix(self) -> str:
        """The ending that decides the format, without `.gz`; empty for `-` and `hf:`."""
        if self.path is None:
            return ""
        plain = self.path.with_suffix("") if self.path.suffix.lower() == ".gz" else self.path
        return plain.suffix.lower()

    @property
    def hub(self) -> bool:
        """Whether this is a data set of the Hugging Face hub."""
        return self.name.startswith("hf:")

    def where(self, number: int) -> str:
        """The place of a line or a record, for messages; `number` counts from 1."""
        return f"{self.name}:{number}" if self.examples is None else self.examples.where(number)

    @property
    def folder(self) -> Path:
        """The folder to which file names inside the file are relative."""
        return self.path.parent if self.path is not None else Path()

    @contextmanager
    def open(self) -> Iterator[BufferedIOBase]:
        """The decompressed bytes; an error while reading becomes a `RegardError`."""
        try:
            with open(self._readable(), "rb") as raw:
                compressed = raw.peek(2)[:2] == GZIP
                if compressed:
                    with gzip.GzipFile(fileobj=raw) as plain:
                        yield plain
                else:
                    yield raw
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise RegardError(
                f"{self.name}: damaged gzip file ({error}): check it with gzip -t"
            ) from error
        except OSError as error:
            raise RegardError(f"{self.name}: cannot be read ({error.strerror or error})") from error

    @contextmanager
    def seekable(self) -> Iterator[Path]:
        """A path to the decompressed bytes, for formats that need random access."""
        with self.open() as stream:
            if not isinstance(stream, gzip.GzipFile):
                yield self._readable()
                return
            with tempfile.NamedTemporaryFile(prefix="regard-") as plain:
                _copy(stream.read, plain, self.name)
                plain.flush()
                yield Path(plain.name)

    def fingerprint(self) -> str | None:
        """Path, size and modification time, or a digest of examples in memory; None for standard
        input and hub data sets."""
        if self.examples is not None:
            return self.examples.digest
        if self.path is None or self._copy is not None:
            return None
        status = self.path.stat()
        return f"{self.path.resolve()}:{status.st_size}:{status.st_mtime_ns}"

    def _readable(self) -> Path:
        if self.path is not None and stat.S_ISREG(self.path.stat().st_mode):
            return self.path
        if self._copy is None:
            self._copy = tempfile.NamedTemporaryFile(prefix="regard-")  # noqa: SIM115
            if self.path is None:
                _copy(sys.stdin.buffer.read, self._copy, self.name)
            else:
                with open_named(self.path) as pipe:
                    _copy(pipe.read, self._copy, self.name)
            self._copy.flush()
        return Path(self._copy.name)


def _copy(read: Callable[[int], bytes], copy: IO[bytes], name: str) -> None:
    """Copy a stream to a temporary file, unless it does not end or fills the disk."""
    total = 0
    while block := read(COPY_BLOCK):
        total += len(block)
        disk = shutil.disk_usage(tempfile.gettempdir())
        if total > MAX_COPY or disk.free - len(block) < min(KEPT_FREE, disk.total // 10):
            limit = f"has more than {MAX_COPY:,} bytes"
            full = f"leaves no space in {tempfile.gettempdir()} (after {total:,} bytes)"
            raise RegardError(
                f"{name}: {limit if total > MAX_COPY else full}: save its beginning in a file and "
                "name that file"
            )
        copy.write(block)


Data = str | os.PathLike[str] | Source | Sequence["str | os.PathLike[str] | Source"]


def resolve(data: Data) -> tuple[Source, ...]:
    """The sources that `--data` names, globs expanded in sorted order.

    `Source.argument` says which of the names each came from. Sources pass through unchanged, so
    that standard input is read once.
    """
    names = [data] if isinstance(data, (str, os.PathLike, Source)) else list(data)
    if not names:
        raise RegardError("no data: expected at least one file name")
    if sum(item == "-" for item in names) > 1:
        raise RegardError("standard input (-) is named twice: it can be read only once")
    return tuple(s for i, item in enumerate(names) for s in _expand(item, i))


def _expand(item: "str | os.PathLike[str] | Source", argument: int) -> list[Source]:
    if isinstance(item, Source):
        return [item]
    if isinstance(item, ExamplesInMemory):
        return [Source(item.name, None, argument, item)]
    name = os.fspath(item)
    if name.startswith(MARK):
        raise RegardError(f"{name}: these examples were in memory: pass them to regard.train again")
    if name == "-" or name.startswith("hf:"):
        return [Source(name, None, argument)]
    if "\0" in name:
        raise RegardError(f"{name!r}: not a file name")
    check_utf8(name, "file name")
    path = Path(name)
    if not _exists(path):
        matches = sorted(glob.glob(name, recursive=True)) if glob.has_magic(name) else []
        files = [Path(match) for match in matches if not Path(match).is_dir()]
        if not files:
            raise RegardError(_missing(path))
        for file in files:
            check_utf8(str(file), "file name")
        return [Source(str(f), f, argument) for f in files]
    if path.is_dir():
        inside = sorted(p.name for p in path.iterdir() if p.is_file())[:3]
        hint = f"for example {path / inside[0]}" if inside else "but it has none"
        raise RegardError(f"{name}: is a folder: expected files in it, {hint}")
    if _is_device(path):
        raise RegardError(f"{name}: is a device: expected a file or a pipe")
    return [Source(name, path, argument)]


def _is_device(path: Path) -> bool:
    """Whether a path is a device, which may never end; a terminal, as /dev/stdin may be, does."""
    mode = path.stat().st_mode
    if not stat.S_ISCHR(mode):
        return stat.S_ISBLK(mode)
    with open(path, "rb") as file:
        return not file.isatty()


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _missing(path: Path) -> str:
    """The message for a missing file, with the nearest name that exists."""
    if glob.has_magic(str(path)):
        return f"{path}: no file matches this pattern"
    if os.path.islink(path):  # which is False where the name cannot even be looked up
        return f"{path}: is a link to {os.readlink(path)}, which does not exist"
    folder = path.parent
    if not _exists(folder) or not folder.is_dir():
        return f"{path}: no such file, since there is no folder {folder}"
    nearest = _nearest_name(path.name, [p.name for p in folder.iterdir() if _exists(p)])
    hint = f": did you mean {folder / nearest}?" if nearest else f" in {folder.resolve()}"
    return f"{path}: no such file{hint}"


def _nearest_name(name: str, names: Sequence[str]) -> str | None:
    """The name that is most like another; an ending that they share does not count.

    >>> _nearest_name("trian.csv", ["kaggle.csv", "train.csv"])
    'train.csv'
    >>> _nearest_name("nope.csv", ["kaggle.csv"])
    """
    by_stem: dict[str, list[str]] = {}
    for other in sorted(names):
        by_stem.setdefault(other.split(".")[0].lower() or other, []).append(other)
    stems = get_close_matches(name.split(".")[0].lower() or name, by_stem, n=1, cutoff=0.6)
    if not stems:
        return None
    return max(by_stem[stems[0]], key=lambda other: SequenceMatcher(None, name, other).ratio())
