"""`regard export`: a trained model as a graph for other runtimes."""

import argparse
from pathlib import Path
from typing import Any


def add(commands: Any) -> None:
    """Add `export`."""
    export = commands.add_parser(
        "export", help="write a trained model as ONNX graphs that still return attention"
    )
    export.add_argument("folder", type=Path, help="the folder of the run")
    export.add_argument("--to", default="onnx", help="the format: onnx (default)")
    export.add_argument(
        "--out", type=Path, metavar="FOLDER", help="default: a folder `onnx` in that of the run"
    )
    export.set_defaults(run=_export, parser=export)


def _export(chosen: argparse.Namespace) -> int:
    from regard.inference import load
    from regard.inference.export import export

    for path in export(load(chosen.folder), chosen.to, chosen.out):
        print(path)
    return 0
