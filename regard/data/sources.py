"""Where data comes from: files, globs, standard input, gzip of each, and `hf:` names."""

import glob
import gzip
import os
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from io import BufferedIOBase
from pathlib import Path

from regard.errors import RegardError

GZIP = b"\x1f\x8b"


@dataclass(eq=False, slots=True)
class Source:
    """One input, which can be opened as often as needed, always decompressed.

    What can be read only once (standard input, a pipe) is copied to a temporary file first.
    """

    name: str
    path: Path | None
    argument: int = 0
    _copy: "tempfile._TemporaryFileWrapper[bytes] | None" = field(default=None, repr=False)

    @property
    def suffix(self) -> str:
        """The ending that tells the format: lower case, without `.gz`; none for `-` and `hf:`."""
        if self.path is None:
            return ""
        plain = self.path.with_suffix("") if self.path.suffix.lower() == ".gz" else self.path
        return plain.suffix.lower()

    @property
    def hub(self) -> bool:
        """Whether it is the name of a data set at the Hugging Face hub."""
        return self.name.startswith("hf:")

    @property
    def folder(self) -> Path:
        """Where file names inside the file are looked for."""
        return self.path.parent if self.path is not None else Path()

    @contextmanager
    def open(self) -> Iterator[BufferedIOBase]:
        """The bytes, decompressed; what goes wrong while reading becomes one line."""
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
                f"{self.name}: broken gzip file ({error}): check it with gzip -t"
            ) from error
        except OSError as error:
            raise RegardError(f"{self.name}: cannot be read ({error.strerror or error})") from error

    @contextmanager
    def seekable(self) -> Iterator[Path]:
        """A path whose bytes are not compressed, for formats read in any order."""
        with self.open() as stream:
            if not isinstance(stream, gzip.GzipFile):
                yield self._readable()
                return
            with tempfile.NamedTemporaryFile(prefix="regard-") as plain:
                shutil.copyfileobj(stream, plain)
                plain.flush()
                yield Path(plain.name)

    def fingerprint(self) -> str | None:
        """Path, size and time of change; None for what cannot be known unread."""
        if self.path is None or self._copy is not None:
            return None
        known = self.path.stat()
        return f"{self.path.resolve()}:{known.st_size}:{known.st_mtime_ns}"

    def _readable(self) -> Path:
        if self.path is not None and stat.S_ISREG(self.path.stat().st_mode):
            return self.path
        if self._copy is None:
            self._copy = tempfile.NamedTemporaryFile(prefix="regard-")  # noqa: SIM115
            if self.path is None:
                shutil.copyfileobj(sys.stdin.buffer, self._copy)
            else:
                with open(self.path, "rb") as pipe:
                    shutil.copyfileobj(pipe, self._copy)
            self._copy.flush()
        return Path(self._copy.name)


Data = str | os.PathLike[str] | Source | Sequence["str | os.PathLike[str] | Source"]


def resolve(data: Data) -> tuple[Source, ...]:
    """The sources that `--data` names, globs expanded in sorted order.

    `Source.argument` says which of the names each came from. Sources pass through unchanged, so
    that standard input is read once.
    """
    given = [data] if isinstance(data, (str, os.PathLike, Source)) else list(data)
    if not given:
        raise RegardError("no data: name at least one file")
    if sum(item == "-" for item in given) > 1:
        raise RegardError("standard input (-) can be named once")
    return tuple(s for i, item in enumerate(given) for s in _expand(item, i))


def _expand(item: "str | os.PathLike[str] | Source", argument: int) -> list[Source]:
    if isinstance(item, Source):
        return [item]
    name = os.fspath(item)
    if name == "-" or name.startswith("hf:"):
        return [Source(name, None, argument)]
    if "\0" in name:
        raise RegardError(f"{name!r} is not a file name")
    path = Path(name)
    if not _exists(path):
        found = sorted(glob.glob(name, recursive=True)) if glob.has_magic(name) else []
        files = [Path(f) for f in found if not Path(f).is_dir()]
        if not files:
            raise RegardError(_missing(path))
        return [Source(str(f), f, argument) for f in files]
    if path.is_dir():
        inside = sorted(p.name for p in path.iterdir() if p.is_file())[:3]
        hint = f"for example {path / inside[0]}" if inside else "it holds none"
        raise RegardError(f"{name} is a folder: name the files in it, {hint}")
    return [Source(name, path, argument)]


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _missing(path: Path) -> str:
    """The message for a file that is not there, with the nearest name that is."""
    if glob.has_magic(str(path)):
        return f"no file matches {str(path)!r}"
    folder = path.parent
    if not _exists(folder) or not folder.is_dir():
        return f"{path}: no such file, and no folder {folder}"
    nearest = get_close_matches(path.name, sorted(os.listdir(folder)), n=1, cutoff=0.5)
    hint = f": did you mean {folder / nearest[0]}?" if nearest else f" in {folder.resolve()}"
    return f"{path}: no such file{hint}"
