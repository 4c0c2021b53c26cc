"""Prepared data that several runs share: the same corpus is tokenized once.

    CACHE/data/KEY/entry.json   digests of the files and its own, what was read, the size
    CACHE/data/KEY/…            tokenizers, labels and corpora, as in the data/ folder of a run

The key is a digest of everything that decides the result: the content of the files, the data
options, the seed (where it decides which examples are held out) and the code. Entries appear whole
or not at all, by renaming their folder. Where the file system allows it, runs get links to the same
bytes, which no command changes in place; what a run gets is compared with the digests first.
"""

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow  # type: ignore[import-untyped]
import tokenizers

from regard.atomic_files import is_partial_file, open_to_append, write_text
from regard.data import DataReport, resolve
from regard.errors import RegardError
from regard.tasks.registry import TaskSpec
from regard.training.run_identity import FILE_OPTIONS
from regard.verified_files import (
    MEBIBYTE,
    check_regular,
    file_digest,
    is_file_below,
    is_plain,
    json_digest,
    read_json,
)

DEFAULT_LIMIT = 10 * 2**30
"""Bytes that all entries may have together, unless another limit was set."""
LEAST = MEBIBYTE
"""Bytes of the data files below which preparing them again is quicker than keeping the result."""
FORMAT = 2
ENTRY = "entry.json"


@dataclass(frozen=True)
class Entry:
    """Prepared data in the cache."""

    path: Path
    size: int
    used: float
    """When it was used last, in seconds since 1970."""
    about: str
    """The task and the names of the data files."""


def default_cache() -> Path | None:
    """The user's cache folder for Regard; None where there is no home folder."""
    named = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(named) if named else Path.home() / ".cache") / "regard"
    except RuntimeError:
        return None


def cache_key(spec: TaskSpec, data: Any, seed: int) -> tuple[str, str] | None:
    """The key of a run's data, and a description; None for data that is not kept.

    That is data that is built in, in memory, small, or read from files that name other files.
    """
    options = asdict(data)
    names = {name: options.pop(name, None) for name in FILE_OPTIONS}
    vectors = str(options.get("condition") or "").endswith(".npy")
    own = spec.data.__module__.startswith("regard.tasks.")
    if not own or vectors or names.get("data") is None:
        return None
    pretrained = names.pop("pretrained", None)
    files = {name: resolve(value) for name, value in names.items() if value is not None}
    paths = [source.path for sources in files.values() for source in sources]
    if not all(path is not None and path.is_file() for path in paths):
        return None
    if sum(path.stat().st_size for path in paths if path is not None) < LEAST:
        return None
    digests = {
        name: [(s.name, s.argument, file_digest(s.path)) for s in sources if s.path is not None]
        for name, sources in files.items()
    }
    by_seed = names.get("valid") is None and not spec.running_text(data)
    about = " ".join([spec.name, *(source.name for source in files["data"])])
    versions = [FORMAT, tokenizers.__version__, pyarrow.__version__]
    parts = [versions, _code(), spec.name, options, digests, seed if by_seed else None]
    if pretrained is not None:
        parts.append([str(pretrained), _folder_digests(Path(pretrained))])
    return json_digest(parts), about


def _folder_digests(folder: Path) -> dict[str, str]:
    """The digest of each file that a pretrained model may be read from."""
    paths = [path for path in (*folder.glob("*"), *folder.glob("*/config.json")) if path.is_file()]
    return {path.relative_to(folder).as_posix(): file_digest(path) for path in sorted(paths)}


class DataCache:
    """A folder of prepared data, of limited size."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._data = folder / "data"

    def restore(self, key: str, to: Path) -> DataReport | None:
        """Put the files of an entry into the data folder of a run; None if there is no such entry.

        A damaged entry is removed.
        """
        path = self._data / key
        _require_folder(path)
        if not (path / ENTRY).exists():
            return None
        with self._locked(fcntl.LOCK_SH):
            try:
                record = _read_entry(path)
                report = DataReport.from_record(record["report"])
                for name, digest in record["digests"].items():
                    if not is_file_below(name):
                        raise RegardError(f"{path / ENTRY}: {name!r} is not one of its files")
                    (to / name).parent.mkdir(parents=True, exist_ok=True)
                    _link(path / name, to / name)
                    if file_digest(to / name) != digest:
                        raise RegardError(f"{path / name}: is damaged")
                os.utime(path / ENTRY)
                return report
            except FileNotFoundError:  # removed meanwhile
                damaged = False
            except OSError:
                _empty(to)
                raise
            except (RegardError, KeyError, TypeError, ValueError, AttributeError):
                damaged = True
        _empty(to)
        if damaged:
            self.remove(key)
        return None

    def store(self, key: str, about: str, data: Path, report: DataReport, keep: str) -> None:
        """Keep the files of a run's data folder but `keep`, which stays the run's own."""
        files = [
            path
            for path in sorted(data.rglob("*"))
            if path.is_file() and not is_partial_file(path) and path.name != keep
        ]
        size = sum(path.stat().st_size for path in files)
        if size > self.limit():
            return
        _require_folder(self._data)
        self._data.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=".", suffix=".part", dir=self._data))
        try:
            digests = {}
            for path in files:
                name = path.relative_to(data).as_posix()
                (part / name).parent.mkdir(parents=True, exist_ok=True)
                _link(path, part / name)
                digests[name] = file_digest(part / name)
            record = {"about": about, "size": size, "digests": digests, "report": report.as_dict()}
            record["digest"] = json_digest(record)
            write_text(part / ENTRY, json.dumps(record, ensure_ascii=False))
            with self._locked(fcntl.LOCK_EX):
                if not (self._data / key).exists():  # else another process was faster
                    part.rename(self._data / key)
                self._trim(self.limit())
        finally:
            shutil.rmtree(part, ignore_errors=True)

    def entries(self) -> list[Entry]:
        """What is in the cache, the most recently used first."""
        found = []
        for path in self._data.glob("*/" + ENTRY):
            with suppress(OSError, RegardError, KeyError, TypeError, ValueError, OverflowError):
                record = _read_entry(path.parent)
                used = path.stat().st_mtime
                found.append(Entry(path.parent, int(record["size"]), used, str(record["about"])))
        return sorted(found, key=lambda entry: -entry.used)

    def limit(self) -> int:
        """Bytes that all entries may have together."""
        with suppress(OSError, RegardError, KeyError, TypeError, ValueError, OverflowError):
            return int(read_json(self.folder / "settings.json", MEBIBYTE)["limit"])
        return DEFAULT_LIMIT

    def set_limit(self, limit: int) -> None:
        """Set that limit, and remove what exceeds it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_text(self.folder / "settings.json", json.dumps({"limit": limit}))
        with self._locked(fcntl.LOCK_EX):
            self._trim(limit)

    def clear(self) -> int:
        """Remove all entries; the bytes that they had."""
        if not self._data.exists():
            return 0
        freed = sum(entry.size for entry in self.entries())
        with self._locked(fcntl.LOCK_EX):
            shutil.rmtree(self._data)
        return freed

    def remove(self, key: str) -> None:
        """Remove one entry."""
        with self._locked(fcntl.LOCK_EX):
            shutil.rmtree(self._data / key, ignore_errors=True)

    def _trim(self, limit: int) -> None:
        """Remove the entries that were not used for the longest time, until the limit is kept."""
        total = 0
        for entry in self.entries():
            total += entry.size
            if total > limit:
                shutil.rmtree(entry.path, ignore_errors=True)

    @contextmanager
    def _locked(self, kind: int) -> Iterator[None]:
        _require_folder(self._data)
        self.folder.mkdir(parents=True, exist_ok=True)
        with open_to_append(self.folder / "lock") as lock:
            fcntl.flock(lock, kind)
            yield


def _require_folder(path: Path) -> None:
    """Refuse anything else: through a link, files of another folder were removed."""
    if not is_plain(path) or path.is_file():
        raise RegardError(f"{path}: expected a folder: remove it")


def _read_entry(path: Path) -> dict[str, Any]:
    """The record of an entry; an error where it is not what was written."""
    record: dict[str, Any] = read_json(path / ENTRY, MEBIBYTE)
    if record.pop("digest") != json_digest(record):
        raise RegardError(f"{path / ENTRY}: is damaged")
    return record


def _link(path: Path, to: Path) -> None:
    """Another name for the same bytes, or a copy where that is not possible."""
    if path.is_symlink():
        raise RegardError(f"{path}: is a link")
    check_regular(path)
    to.unlink(missing_ok=True)
    try:
        os.link(path, to, follow_symlinks=False)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(path, to, follow_symlinks=False)


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@cache
def _code() -> str:
    """A digest of the modules that read and prepare data."""
    root = Path(__file__).parents[2]
    digest = sha256()
    read = ("data", "tasks", "pretrained")
    for path in sorted(path for name in read for path in (root / name).rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
