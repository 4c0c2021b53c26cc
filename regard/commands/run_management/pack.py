"""`regard pack`: a run for others, without training text."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def add(commands: Any, arguments: Sequence[str] | None) -> None:
    """Add `pack`."""
    pack = commands.add_parser(
        "pack",
        help="copy only what is needed to use a run, without training text",
        description="Copy the weights, tokenizers, labels, metrics and a model card of a run. "
        "Training text, checkpoints and the state of the optimizer are left out. The copy is used "
        "like any run; unpack an archive before use.",
        examples=(
            "regard pack runs/en-fr",
            "regard pack runs/en-fr --to en-fr.zip --half",
        ),
    )
    pack.add_argument("folder", type=Path, metavar="run", help="the run folder")
    pack.add_argument(
        "--to",
        type=Path,
        metavar="FOLDER",
        help="a new folder, or a .zip file (default: RUN-packed, next to the run)",
    )
    pack.add_argument(
        "--half", action="store_true", help="store the weights in half precision: half the size"
    )
    pack.set_defaults(run=_pack, parser=pack)


def _pack(chosen: argparse.Namespace) -> int:
    from regard.inference import load
    from regard.training.stored_runs.model_card import format_size
    from regard.training.stored_runs.run_packing import pack_run
    from regard.training.stored_runs.run_summary import summarize_run

    load(chosen.folder, "cpu")  # a damaged run is not handed on
    whole = summarize_run(chosen.folder).size
    target = chosen.to or _default_target(chosen.folder)
    size = pack_run(chosen.folder, target, half=chosen.half)
    print(f"{target}: {format_size(size)}, of the {format_size(whole)} of {chosen.folder}")
    return 0


def _default_target(folder: Path) -> Path:
    """`RUN-packed` next to the run; in the current folder for an example."""
    if folder.name.startswith("example:"):
        return Path(f"{folder.name.removeprefix('example:')}-packed")
    whole = folder if folder.name not in ("", "..") else folder.resolve()
    return whole.with_name(f"{whole.name}-packed")
