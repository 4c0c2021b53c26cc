"""Reports of faithfulness, kept in the folder of the run that they are about."""

import hashlib
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from regard.inference.faithfulness import Faithfulness
from regard.training import RunFolder
from regard.training.folder import write_text


def plain(found: Faithfulness) -> dict[str, Any]:
    """A report in values that JSON has: what is undefined is null."""
    told: dict[str, Any] = _finite(asdict(found))
    return told


def keep(folder: RunFolder, name: str, found: Faithfulness, **options: Any) -> Path:
    """Write a report into the run's folder, over an older one on data of that name.

    It names the weights that it is true of: a run that was trained on has others.
    """
    path = folder.faithfulness / f"{name}.json"
    record = {"name": name, "weights": weights(folder), "options": options, **plain(found)}
    write_text(path, json.dumps(record, ensure_ascii=False, indent=2, allow_nan=False) + "\n")
    return path


def kept(folder: RunFolder) -> list[dict[str, Any]]:
    """All reports of a run that can be read, by name; `current` says whether its weights are still
    those that were measured."""
    found, now = [], ""
    for path in sorted(folder.faithfulness.glob("*.json")):
        try:
            report = json.loads(path.read_bytes())
        except (OSError, ValueError):
            continue
        if isinstance(report, dict) and isinstance(report.get("comprehensiveness"), dict):
            now = now or weights(folder)
            current = report.get("weights") == now
            found.append({**report, "name": path.stem, "current": current})
    return found


def weights(folder: RunFolder) -> str:
    """What tells the weights of a run from all others; nothing where there are none."""
    try:
        with folder.model.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:32]
    except OSError:
        return ""


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
