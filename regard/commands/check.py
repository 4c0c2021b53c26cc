"""`regard check`: look for silent bugs in a module that a Python file defines."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.errors import RegardError


def add(commands: Any, arguments: Sequence[str] | None) -> None:
    """Add `check`."""
    check = commands.add_parser(
        "check",
        help="look for leaks and wrong masks in a module of your own",
        description="Run a Python file that defines `module` and `make_inputs`, and check the "
        "module for silent bugs; then call its functions test_…, if there are any. The file runs "
        "in a process of its own, with your rights.",
        examples=("regard check my_layer.py", "regard check homework/mask.py --seconds 20"),
        note="exit codes: 0 all passed; 1 something failed; 2 bad input",
    )
    check.add_argument("file", type=Path, help="the Python file, which is executed")
    check.add_argument(
        "--seconds",
        type=float,
        default=60.0,
        metavar="NUMBER",
        help="stop the file after this time (default: 60)",
    )
    check.set_defaults(run=_check, parser=check)


def _check(chosen: argparse.Namespace) -> int:
    from regard.check.checked_file import check_file

    if not 0 < chosen.seconds < 1e6:
        raise RegardError(f"--seconds: expected more than 0, got {chosen.seconds:g}")
    grade = check_file(chosen.file, chosen.seconds)
    print(grade.report)
    return 0 if grade.passed else 1
