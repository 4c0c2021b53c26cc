"""Faithfulness reports, saved in the folder of the run that was measured."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from regard.atomic_files import write_text
from regard.errors import RegardError
from regard.inference.explain.faithfulness import Faithfulness
from regard.training import RunFolder
from regard.verified_files import file_digest, read_json


def report_record(report: Faithfulness) -> dict[str, Any]:
    """A report in plain values; NaN, which JSON does not have, becomes null."""
    record: dict[str, Any] = _finite(asdict(report))
    return record


def save_report(
    folder: RunFolder,
    name: str,
    report: Faithfulness,
    *,
    data: Sequence[str] = (),
    **options: Any,
) -> Path:
    """Write a report on these data files into the run folder; one of the same name is replaced.

    It has a digest of the weights that were measured, since training may continue.
    """
    folder.refuse_links(folder.faithfulness)
    path = folder.faithfulness / f"{name}.json"
    about = {"name": name, "data": list(data), "weights": weights_digest(folder)}
    record = {**about, "options": options, **report_record(report)}
    text = json.dumps(record, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    write_text(path, text, within=folder.path)
    return path


def saved_reports(folder: RunFolder) -> list[dict[str, Any]]:
    """All readable reports in a run folder, by name.

    `current` says whether the run still has the weights that were measured.
    """
    reports, digest = [], ""
    for path in folder.files("faithfulness/*.json"):
        try:
            report = read_json(path, within=folder.path)
        except (OSError, RegardError):
            continue
        if isinstance(report, dict) and isinstance(report.get("comprehensiveness"), dict):
            digest = digest or weights_digest(folder)
            current = report.get("weights") == digest
            reports.append({**report, "name": path.stem, "current": current})
    return reports


def weights_digest(folder: RunFolder) -> str:
    """The SHA-256 digest of the weights of a run, shortened; empty if it has none."""
    try:
        return file_digest(folder.model)[:32]
    except RegardError:
        return ""


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
