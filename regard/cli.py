"""The command line: parse, call, print."""

import argparse
import signal
import sys
from collections.abc import Sequence

from regard import __version__
from regard.commands import (
    align,
    corpora,
    demo,
    evaluate,
    explain,
    export,
    generate,
    serve,
    show,
    steps,
    train,
    use,
)
from regard.errors import RegardError
from regard.options import Parser

DESCRIPTION = "Train attention models on your own text, use them, and see where they look."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; bad input ends in one line on standard error and exit code 2."""
    try:
        given = list(sys.argv[1:] if arguments is None else arguments)
        chosen, strange = _parser(given).parse_known_args(given)
        if strange:
            chosen.parser.error(f"unrecognized arguments: {' '.join(strange)}")
        return int(chosen.run(chosen))
    except RegardError as error:
        print(f"regard: {' '.join(str(error).splitlines())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("regard: stopped", file=sys.stderr)
        return 128 + signal.SIGINT
    except BrokenPipeError:
        sys.stderr.close()
        return 1


def _parser(arguments: list[str]) -> argparse.ArgumentParser:
    parser = Parser(prog="regard", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"regard {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    demo.add(commands, main)
    train.add(commands, arguments)
    for group in (evaluate, use, generate, align, explain, export, show, corpora, steps, serve):
        group.add(commands)
    return parser
