"""`regard steps`: attention with numbers, step by step."""

import argparse
from pathlib import Path
from typing import Any


def add(commands: Any) -> None:
    """Add `steps`."""
    steps = commands.add_parser(
        "steps", help="walk through attention with numbers, on “The early bird catches the worm”"
    )
    steps.add_argument("--word", default="bird", help="the word that looks (default: bird)")
    steps.add_argument("--picture", type=Path, help="also write the whole matrix as an SVG file")
    steps.set_defaults(run=_steps, parser=steps)


def _steps(chosen: argparse.Namespace) -> int:
    from regard.walk import walk

    print(walk(chosen.word, chosen.picture))
    return 0
