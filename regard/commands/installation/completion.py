"""`regard completion`: a script that completes commands and options in a shell."""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SHELLS = ("bash", "zsh", "fish")


def add(commands: Any, arguments: Sequence[str] | None) -> None:
    """Add `completion`."""
    completion = commands.add_parser(
        "completion",
        help="print a script that completes commands and options in a shell",
        description='Print a completion script. bash: put `eval "$(regard completion bash)"` '
        "into ~/.bashrc. zsh: save it as _regard in a folder of $fpath. fish: save it as "
        "~/.config/fish/completions/regard.fish.",
        examples=(
            "regard completion bash",
            "regard completion fish",
        ),
    )
    completion.add_argument("shell", choices=SHELLS, help="bash, zsh or fish")
    completion.set_defaults(run=_completion, parser=completion)


def _completion(chosen: argparse.Namespace) -> int:
    import shtab

    parser = chosen.make_parser(None)
    _add_values(parser, shtab.FILE, shtab.DIRECTORY)
    print(shtab.complete(parser, chosen.shell))
    return 0


def _add_values(parser: argparse.ArgumentParser, file: Any, folder: Any) -> None:
    """Say which values of options are one of some names, a file or a folder."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _add_values(command, file, folder)
        elif isinstance(action.metavar, str) and re.fullmatch(r"\{.*\}", action.metavar):
            action.choices = action.metavar[1:-1].split(",")
        elif action.metavar in ("FOLDER", "RUN", "run", "folder") or action.dest == "folder":
            action.complete = folder  # type: ignore[attr-defined]
        elif action.metavar == "FILE" or action.type is Path:
            action.complete = file  # type: ignore[attr-defined]
