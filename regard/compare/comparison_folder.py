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
from regard.verified_files import read_json

FORMAT = "regard.comparison/1"
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
        return record if record.get("format") == FORMAT else None

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


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:59] + "…"
