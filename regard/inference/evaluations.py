"""Evaluations of a run, kept in its folder: a summary, and a line a sentence."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.tasks.task import Evaluation
from regard.training import RunFolder
from regard.training.folder import write_text


def summary(found: Evaluation) -> dict[str, Any]:
    """What was measured, without the sentences, in plain values."""
    return {
        "main": found.main,
        "higher": found.higher,
        "metrics": {name: asdict(value) for name, value in found.metrics.items()},
        "by_length": {name: asdict(value) for name, value in found.by_length.items()},
    }


def keep(folder: RunFolder, name: str, found: Evaluation, **options: Any) -> Path:
    """Write an evaluation into the run's folder, over an older one of that name."""
    path = folder.evaluations / f"{name}.json"
    record = {"name": name, "options": options, **summary(found)}
    lines = (json.dumps(line, ensure_ascii=False) + "\n" for line in found.lines)
    write_text(path.with_suffix(".jsonl"), "".join(lines))
    write_text(path, json.dumps(record, ensure_ascii=False, indent=2) + "\n")
    return path


def kept(folder: RunFolder) -> dict[str, dict[str, Any]]:
    """The summaries of all evaluations of a run, by name."""
    return {path.stem: _read(path) for path in sorted(folder.evaluations.glob("*.json"))}


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise RegardError(f"{path}: not an evaluation ({error})") from error
    if not isinstance(found, dict) or "metrics" not in found:
        raise RegardError(f"{path}: not an evaluation: write it with `regard evaluate`")
    return found


def named(data: str | PathLike[str] | Sequence[str | PathLike[str]]) -> str:
    """The name of an evaluation on some files: what their names have in common.

    >>> named(["data/test.de", "data/test.en"]), named("reviews.tsv.gz")
    ('test', 'reviews')
    """
    files = [data] if isinstance(data, str | PathLike) else data
    return "+".join(dict.fromkeys(Path(file).name.split(".")[0] or "data" for file in files))
