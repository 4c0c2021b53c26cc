"""Evaluations of a run, saved in its folder: a summary, and one line per example."""

import hashlib
import json
import os
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from regard.atomic_files import write_text
from regard.errors import RegardError
from regard.inference.run import without_surrogates
from regard.tasks.task import Evaluation
from regard.training import RunFolder
from regard.verified_files import read_json

MAX_NAME = 60
"""Maximum length of the part of an evaluation's name that comes from file names."""


def summary(evaluation: Evaluation) -> dict[str, Any]:
    """The metrics of an evaluation in plain values, without the examples."""
    report = {} if evaluation.report is None else {"report": evaluation.report.record()}
    return {
        "main": evaluation.main,
        "higher": evaluation.higher,
        "metrics": {name: value.record() for name, value in evaluation.metrics.items()},
        "by_length": {name: value.record() for name, value in evaluation.by_length.items()},
        **report,
    }


def save_evaluation(
    folder: RunFolder,
    name: str,
    evaluation: Evaluation,
    *,
    data: Sequence[str] = (),
    **options: Any,
) -> Path:
    """Write an evaluation into the run folder; one of the same name is replaced.

    Args:
        folder: that of the run.
        name: see `evaluation_name`.
        evaluation: the metrics and the lines to write.
        data: the files that it was made on, see `full_paths`.
        options: those of the evaluation.
    """
    folder.refuse_links(folder.evaluations)
    path = folder.evaluations / f"{name}.json"
    record = {"name": name, "data": list(data), "options": options, **summary(evaluation)}
    lines = (json.dumps(line, ensure_ascii=False) + "\n" for line in evaluation.lines)
    write_text(path.with_suffix(".jsonl"), "".join(lines), within=folder.path)
    text = json.dumps(record, ensure_ascii=False, indent=2) + "\n"
    write_text(path, text, within=folder.path)
    return path


def saved_evaluations(folder: RunFolder) -> dict[str, dict[str, Any]]:
    """The summaries of all evaluations of a run, by name."""
    return {path.stem: _read(path) for path in sorted(folder.evaluations.glob("*.json"))}


def _read(path: Path) -> dict[str, Any]:
    try:
        record = read_json(path)
    except OSError as error:
        raise RegardError(f"{path}: not an evaluation ({error})") from error
    if not isinstance(record, dict) or "metrics" not in record:
        raise RegardError(f"{path}: not an evaluation: write it with `regard evaluate`")
    return record


def evaluation_name(data: str | PathLike[str] | Sequence[str | PathLike[str]]) -> str:
    """The name of an evaluation on some files: their names, and a digest of their full paths.

    The digest keeps evaluations on files of the same name in different folders apart.

    >>> evaluation_name(["data/test.de", "data/test.en"]).rpartition("-")[0]
    'test'
    >>> evaluation_name("old/test.tsv") == evaluation_name("new/test.tsv")
    False
    """
    paths = full_paths(data)
    names = dict.fromkeys(Path(path).name.split(".")[0].strip("-") or "data" for path in paths)
    digest = hashlib.sha256("\0".join(paths).encode()).hexdigest()
    return f"{'+'.join(names)[:MAX_NAME]}-{digest[:8]}"


def full_paths(data: str | PathLike[str] | Sequence[str | PathLike[str]]) -> list[str]:
    """The full paths of data files; standard input and names of the hub as they are."""
    given = [data] if isinstance(data, str | PathLike) else data
    names = [os.fspath(name) for name in given]
    return [
        without_surrogates(
            name if name == "-" or name.startswith("hf:") else os.path.realpath(name)
        )
        for name in names
    ]
