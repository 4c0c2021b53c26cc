"""Results of experiments and comparisons that were saved in folders, for the app to show."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.verified_files import read_bytes, read_json

RESULT, PLAN, REPORT = "result.json", "comparison.json", "report.json"
MAX_RECORD, MAX_PICTURE = 8 * 2**20, 2 * 2**20
MAX_PICTURES = 8
"""Pictures of an experiment that are shown."""
MAX_RESULTS, MAX_BYTES = 200, 64 * 2**20
"""Results that are listed, and the bytes of their files that are read for one request."""
MAX_DEPTH = 32
"""Levels of nesting of a result."""
DEFAULT_FOLDERS = ("experiments", "comparisons")
"""Where `regard experiment` and `regard compare` save their results if nothing else is chosen."""


def holds_evidence(folder: Path) -> bool:
    """Whether a folder is a result of an experiment or a comparison, or contains one."""
    return any(True for _ in _folders_with((RESULT, PLAN), [folder]))


@dataclass(frozen=True)
class EvidenceFolders:
    """Folders with results, or with folders that have some; read anew for every request.

    Of two results with the same name, the one in the folder that was named first counts.
    """

    folders: tuple[Path, ...] = ()

    def experiments(self) -> list[dict[str, Any]]:
        """The saved results of experiments, with the date but without the pictures."""
        return [_with_date(record, path) for path, record in self._experiments().values()]

    def experiment(self, name: str) -> dict[str, Any] | None:
        """One result with its pictures as SVG; None where there is none of that name."""
        if (found := self._experiments().get(name)) is None:
            return None
        path, record = found
        named = record.get("pictures")
        names = [one for one in named if isinstance(one, str)] if isinstance(named, list) else []
        svgs = [_picture(path, one) for one in names[:MAX_PICTURES]]
        return _with_date(record, path) | {"svg": [svg for svg in svgs if svg is not None]}

    def comparisons(self) -> list[dict[str, Any]]:
        """All comparisons, without the tables; `finished` is false while there is no report."""
        return [
            {
                "id": name,
                "finished": record is not None,
                **{key: plan.get(key) for key in ("task", "vary", "seeds", "budget")},
                "verdict": record["verdict"] if record else "",
                "written": _written(path / (REPORT if record else PLAN)),
            }
            for name, (path, plan, record) in self._comparisons().items()
        ]

    def comparison(self, name: str) -> dict[str, Any] | None:
        """The report of a comparison; None where there is none of that name."""
        if (found := self._comparisons().get(name)) is None or found[2] is None:
            return None
        return {"id": name, **found[2], "written": _written(found[0] / REPORT)}

    def _experiments(self) -> dict[str, tuple[Path, dict[str, Any]]]:
        found: dict[str, tuple[Path, dict[str, Any]]] = {}
        left = Allowance(MAX_BYTES)
        for path in _folders_with((RESULT,), self.folders):
            record = _record(path, RESULT, ("name", "claim", "summary"), left)
            if record is not None and isinstance(record.get("numbers"), dict):
                found.setdefault(record["name"], (path, record))
        return found

    def _comparisons(self) -> dict[str, tuple[Path, dict[str, Any], dict[str, Any] | None]]:
        found: dict[str, tuple[Path, dict[str, Any], dict[str, Any] | None]] = {}
        left = Allowance(MAX_BYTES)
        for path in _folders_with((PLAN,), self.folders):
            plan = _record(path, PLAN, ("format",), left)
            report = _record(path, REPORT, ("task", "metric", "verdict"), left)
            if report is not None and not _is_report(report):
                report = None
            if plan is not None:
                found.setdefault(path.name, (path, plan, report))
        return found


def _folders_with(names: Iterable[str], folders: Iterable[Path]) -> Iterator[Path]:
    """The folders that contain one of these files, and the folders right inside that do.

    Links that lead out of a folder are left out: nothing outside it is served.
    """
    for folder in folders:
        try:
            root = folder.resolve(strict=True)
            inside = sorted(folder.iterdir())
        except (OSError, RuntimeError):  # a loop of links is a RuntimeError
            continue
        within = (path for path in inside if _is_inside(path, root))
        usable = (path for path in (root, *within) if _has_file(path, names))
        yield from islice(usable, MAX_RESULTS)


def _is_inside(path: Path, root: Path) -> bool:
    try:
        return path.is_dir() and Path(os.path.realpath(path)).is_relative_to(root)
    except OSError:
        return False


def _has_file(folder: Path, names: Iterable[str]) -> bool:
    try:
        return any((folder / name).is_file() for name in names)
    except OSError:  # a folder of somebody else
        return False


@dataclass
class Allowance:
    """Bytes that may still be read for a request."""

    left: int


def _record(
    folder: Path, name: str, texts: Iterable[str], allowance: Allowance
) -> dict[str, Any] | None:
    """The object in a JSON file of a folder, which must have certain texts; else None."""
    path = folder / name
    try:
        limit = min(MAX_RECORD, max(0, allowance.left))
        allowance.left -= path.stat().st_size
        record = read_json(path, limit, within=folder)
    except (OSError, RegardError):
        return None
    if not isinstance(record, dict) or not all(isinstance(record.get(t), str) for t in texts):
        return None
    return record if _is_shallow(record, MAX_DEPTH) else None


def _is_shallow(value: Any, levels: int) -> bool:
    """Whether a value has at most so many levels of nesting."""
    if not isinstance(value, dict | list):
        return True
    parts = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_shallow(part, levels - 1) for part in parts)


def _is_report(report: dict[str, Any]) -> bool:
    return all(
        isinstance(report.get(name), list) and all(isinstance(one, dict) for one in report[name])
        for name in ("systems", "pairs")
    )


def _picture(folder: Path, name: str) -> str | None:
    try:
        content = read_bytes(folder / Path(name).name, MAX_PICTURE, within=folder)
        return content.decode("utf-8") if name.endswith(".svg") else None
    except (OSError, ValueError, RegardError):
        return None


def _with_date(record: dict[str, Any], folder: Path) -> dict[str, Any]:
    return {**record, "written": _written(folder / RESULT)}


def _written(path: Path) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0
