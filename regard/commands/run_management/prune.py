"""`regard prune`: free the space that only further training needs."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def add(commands: Any, arguments: Sequence[str] | None) -> None:
    """Add `prune`."""
    prune = commands.add_parser(
        "prune",
        help="remove what is only needed to train finished runs further",
        description="Remove checkpoints, the state of the optimizer and the tokenized training "
        "data from finished runs. They can still be used and evaluated, but not trained further, "
        "and the app cannot replay their training.",
        examples=("regard prune runs/en-fr", "regard prune runs/* --dry-run"),
    )
    prune.add_argument("folders", nargs="+", type=Path, metavar="run", help="run folders")
    prune.add_argument("--dry-run", action="store_true", help="only say how much would be freed")
    prune.set_defaults(run=_prune, parser=prune)


def _prune(chosen: argparse.Namespace) -> int:
    from regard.inference import load
    from regard.training.stored_runs.model_card import format_size
    from regard.training.stored_runs.run_packing import prune_run
    from regard.training.stored_runs.run_summary import summarize_run

    for folder in chosen.folders:
        freed = prune_run(folder, dry_run=True)
        if any(freed.values()) and not chosen.dry_run:
            load(folder, "cpu")  # what could restore a damaged run is not removed
            prune_run(folder)
        parts = ", ".join(f"{name} {format_size(n)}" for name, n in freed.items() if n)
        left = summarize_run(folder).size
        total = format_size(sum(freed.values()))
        if not parts:
            print(f"{folder}: nothing to remove, {format_size(left)}")
        elif chosen.dry_run:
            print(f"{folder}: {total} of {format_size(left)} can be freed ({parts})")
        else:
            print(f"{folder}: {total} freed ({parts}), {format_size(left)} left")
    return 0
