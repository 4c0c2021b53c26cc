"""`regard info`: what a run is, or what differs between two."""

import argparse
import json
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.errors import RegardError, printable

NAME_WIDTH = 12
"""Width of the names of a card."""
MAX_WIDTH = 40
"""Characters of a value that differs."""


def add(commands: Any, arguments: Sequence[str] | None) -> None:
    """Add `info`."""
    info = commands.add_parser(
        "info",
        help="describe a run, or what differs between two",
        examples=("regard info runs/en-fr", "regard info runs/small runs/large"),
    )
    info.add_argument("folders", nargs="+", type=Path, metavar="run", help="one or two run folders")
    info.add_argument("--json", action="store_true", help="print the card as JSON")
    info.set_defaults(run=_info, parser=info)


def _info(chosen: argparse.Namespace) -> int:
    from regard.examples import shown_path
    from regard.show.text_width import fit_table, terminal_width, truncate
    from regard.training.stored_runs.model_card import card_rows, differences
    from regard.training.stored_runs.run_summary import summarize_run

    if len(chosen.folders) > 2:
        raise RegardError(f"{len(chosen.folders)} runs: expected one, or two to compare")
    runs = [summarize_run(folder) for folder in chosen.folders]
    if len(runs) == 1:
        rows = card_rows(runs[0])
        if chosen.json:
            print(json.dumps(dict(rows), ensure_ascii=False))
            return 0
        width = terminal_width(100)
        print(printable(shown_path(runs[0].path)))
        for name, value in rows:
            lines = textwrap.wrap(
                printable(value), max(20, width - NAME_WIDTH), break_on_hyphens=False
            )
            print(f"{name:{NAME_WIDTH}}" + f"\n{' ' * NAME_WIDTH}".join(lines))
        return 0
    changed = differences(*runs)
    if chosen.json:
        record = {name: [one, other] for name, one, other in changed}
        print(json.dumps(record, ensure_ascii=False))
    elif not changed:
        names = [shown_path(run.path) for run in runs]
        print(f"{names[0]} and {names[1]} do not differ in options and metrics")
    else:
        differing: list[tuple[str, ...]] = [("", *(shown_path(run.path) for run in runs)), *changed]
        cells = [(row[0], *(truncate(cell, MAX_WIDTH) for cell in row[1:])) for row in differing]
        print(printable("\n".join(fit_table(cells, terminal_width(), right=False))))
    return 0
