"""The folder of a comparison: its plan, one record per finished training, runs and reports.

A training that has a record is never repeated, so that the same command resumes a comparison that
was interrupted.
"""

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.atomic_files import make_folder, open_to_append, refuse_used_folder, write_text
from regard.errors import RegardError
from regard.verified_files import file_digest, read_json

FORMAT = "regard.comparison/1"
_COUNTS = ("parameters", "updates", "examples")
_NUMBERS = ("seconds", "processor_seconds", "items_per_second", "peak_memory", "constant")
MAY_CHANGE = ("seeds",)
"""Parts of the plan that may differ when a comparison resumes: more seeds extend it."""


@dataclass(frozen=True)
class ComparisonFolder:
    """Files of a comparison."""

    path: Path

    @property
    def plan(self) -> Path:
        """What is compared."""
        return self.path / "comparison.json"

    @property
    def data(self) -> Path:
        """Data that was split for this comparison."""
        return self.path / "data"

    @property
    def prepared(self) -> Path:
        """Data as the systems read it, to count parameters and to estimate the time."""
        return self.path / "prepared"

    def job(self, name: str) -> Path:
        """What a worker has to train."""
        return self.path / "cells" / f"{name}.job.json"

    def record(self, name: str) -> Path:
        """What came out of a training."""
        return self.path / "cells" / f"{name}.json"

    def log(self, name: str) -> Path:
        """What a worker printed."""
        return self.path / "cells" / f"{name}.log"

    def lock(self, name: str) -> Path:
        """Held by the worker of a training."""
        return self.path / "cells" / f"{name}.lock"

    def run(self, name: str) -> Path:
        """The run folder of a training."""
        return self.path / "runs" / name

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep other processes from working on the same comparison."""
        if not self.plan.exists() and not self._is_barely_begun():
            refuse_used_folder(self.path)
        make_folder(self.path / "cells")
        with open_to_append(self.path / ".lock") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RegardError(
                    f"{self.path}: another process is working on this comparison"
                ) from None
            yield

    def _is_barely_begun(self) -> bool:
        """Whether a comparison ended here before it could write its plan."""
        if not (self.path / ".lock").is_file():
            return False
        return all(
            path.name == ".lock" or (path.name == "cells" and not any(path.iterdir()))
            for path in self.path.iterdir()
        )

    def begin(self, plan: Mapping[str, Any]) -> bool:
        """Write the plan of a new comparison, or check that the folder has the same one.

        Returns:
            Whether the comparison was begun before.
        """
        wanted = json.loads(json.dumps({"format": FORMAT, **plan}))
        if not self.plan.exists():
            self.write(self.plan, wanted)
            return False
        known = self.read(self.plan)
        for name in {*known, *wanted} - {*MAY_CHANGE}:
            if known.get(name) != wanted.get(name):
                raise RegardError(
                    f"{self.path}: contains a different comparison "
                    f"({name} is {_short(known.get(name))} there, "
                    f"{_short(wanted.get(name))} here): choose another --out"
                )
        if known != wanted:
            self.write(self.plan, wanted)
        return True

    def result(self, name: str) -> dict[str, Any] | None:
        """The record of a training; None where there is none yet."""
        path = self.record(name)
        if not path.exists():
            return None
        record = self.read(path)
        if record.get("format") != FORMAT:
            return None
        if not _is_record(record):
            raise RegardError(
                f"{path}: is damaged: restore it from a copy, or remove it to train this again"
            )
        return record

    def is_intact(self, folder: Path) -> bool:
        """Whether a folder holds what it held when `seal` was called."""
        record = _seal(folder)
        return record.exists() and folder.is_dir() and self.read(record) == _digests(folder)

    def seal(self, folder: Path) -> None:
        """Record the digests of the files in a folder, beside it."""
        self.write(_seal(folder), _digests(folder))

    def seal_or_verify(self, folder: Path) -> None:
        """Record the digests of the files in a folder; an error if they are not as recorded."""
        if not _seal(folder).exists():
            self.seal(folder)
        elif not self.is_intact(folder):
            raise RegardError(
                f"{folder}: is damaged: restore it from a copy, or remove it to make it again"
            )

    def write(self, path: Path, value: Mapping[str, Any]) -> None:
        """A file of the comparison, written whole."""
        write_text(path, json.dumps(value, ensure_ascii=False, indent=1) + "\n")

    def read(self, path: Path) -> dict[str, Any]:
        """A file of the comparison."""
        try:
            value = read_json(path)
        except (OSError, ValueError) as error:
            raise RegardError(f"{path}: cannot be read ({error})") from error
        if not isinstance(value, dict):
            raise RegardError(f"{path}: not a file of a comparison")
        return value


def failure(label: str, error: str) -> dict[str, Any]:
    """The record of a training that failed."""
    return {"format": FORMAT, "label": label, "error": error}


def _seal(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.digests.json")


def _digests(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if not path.is_dir())
    return {path.relative_to(folder).as_posix(): file_digest(path) for path in files}


def _is_record(record: Mapping[str, Any]) -> bool:
    """Whether a record is one that a worker writes: of a failure, or with all its numbers."""
    if not isinstance(record.get("label"), str):
        return False
    if "error" in record:
        return isinstance(record["error"], str)
    metric, buckets = record.get("metric"), record.get("by_length")
    if not isinstance(metric, dict) or not isinstance(buckets, dict):
        return False
    if not all(isinstance(one, dict) and _is_number(one.get("value")) for one in buckets.values()):
        return False
    numbers = [metric.get(name) for name in ("value", "low", "high")]
    numbers += [record.get(name) for name in _NUMBERS]
    resampled, counts = record.get("resampled"), [record.get(name) for name in _COUNTS]
    return (
        all(isinstance(metric.get(name), str) for name in ("name", "unit"))
        and isinstance(resampled, list)
        and all(map(_is_number, [*numbers, *resampled]))
        and all(map(_is_count, counts))
    )


def _is_number(value: Any) -> bool:
    return value is None or isinstance(value, float) or _is_count(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and 0 <= value < 2**63


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:59] + "…"
