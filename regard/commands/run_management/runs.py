"""`regard runs`: the runs in a folder."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.errors import RegardError, printable
from regard.examples import PREFIX, example_path, shown_path

HEADINGS = ("run", "task", "data", "best validation", "written", "size", "status")
MAX_WIDTH = 30
"""Characters of the names of data files."""


def add(commands: Any, arguments: Sequence[str] | None) -> None:
    """Add `runs`."""
    runs = commands.add_parser(
        "runs",
        help="list the runs in a folder",
        examples=("regard runs", "regard runs experiments --json", "regard runs example:"),
    )
    runs.add_argument(
        "folder",
        type=Path,
        nargs="?",
        default=Path("runs"),
        help="a folder that contains run folders; example: lists the runs that come with Regard "
        "(default: runs)",
    )
    runs.add_argument("--json", action="store_true", help="print all details as JSON")
    runs.set_defaults(run=_runs, parser=runs)


def _runs(chosen: argparse.Namespace) -> int:
    from regard.show.text_width import fit_table, terminal_width, truncate
    from regard.training.stored_runs.model_card import format_date, format_size
    from regard.training.stored_runs.run_summary import find_runs, summarize_run

    chosen.folder = example_path(chosen.folder)
    if not chosen.folder.is_dir():
        raise RegardError(
            f"{chosen.folder}: no such folder: give a folder with runs, or train one with `regard "
            f"train`; `regard runs {PREFIX}` lists the runs that come with Regard"
        )
    summaries = []
    for path in find_runs(chosen.folder):
        try:
            summaries.append(summarize_run(path))
        except RegardError as error:
            print(printable(f"regard: {error}"), file=sys.stderr)
    if chosen.json:
        records = [
            {
                "run": str(run.path),
                "task": run.task,
                "data": (run.config.get("data") or {}).get("data"),
                "main": (run.best or {}).get("main"),
                "metrics": (run.best or {}).get("metrics") or {},
                "modified": run.modified,
                "bytes": run.bytes,
                "status": run.status,
                "parameters": run.parameters,
            }
            for run in summaries
        ]
        print(json.dumps(records, ensure_ascii=False))
        return 0
    if not summaries:
        print(f"{chosen.folder}: contains no runs", file=sys.stderr)
        return 0
    rows = [
        (
            shown_path(run.path),
            run.task,
            truncate(run.files, MAX_WIDTH),
            run.metric() or "–",
            format_date(run.modified),
            format_size(run.size),
            run.status,
        )
        for run in sorted(summaries, key=lambda run: run.path)
    ]
    print(printable("\n".join(fit_table([HEADINGS, *rows], terminal_width(), right=False))))
    return 0
