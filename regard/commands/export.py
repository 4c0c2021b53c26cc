"""`regard export`: a trained model as a graph for other runtimes."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.commands.run_options import add_quiet


def add(commands: Any, arguments: Sequence[str] | None) -> None:
    """Add `export`."""
    export = commands.add_parser(
        "export",
        help="export a model to ONNX, transformers or CTranslate2",
        examples=(
            "regard export runs/en-fr",
            "regard export runs/en-fr --out onnx",
            "regard export runs/en-fr --to huggingface --out models/en-fr",
        ),
    )
    export.add_argument("folder", type=Path, help="the run folder")
    export.add_argument(
        "--to",
        default="onnx",
        help="output format: onnx, huggingface or ctranslate2 (default: onnx)",
    )
    export.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="output folder (default: one named after the format in the run folder)",
    )
    export.add_argument(
        "--overwrite",
        action="store_true",
        help="replace files in the output folder that were not written by an export",
    )
    add_quiet(export)
    export.set_defaults(run=_export, parser=export)


def _export(chosen: argparse.Namespace) -> int:
    from regard.commands.run_options import load_run
    from regard.inference.export import left_out
    from regard.inference.export.onnx import export

    run = load_run(chosen.folder, "cpu")
    for path in export(run, chosen.to, chosen.out, overwrite=chosen.overwrite):
        print(path)
    if (note := left_out(run.model)) and not chosen.quiet:
        print(f"regard: note: {note}", file=sys.stderr)
    return 0
