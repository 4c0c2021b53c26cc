"""The command line: parse, call, print."""

import argparse
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module

from regard import __version__
from regard.argument_parser import Parser
from regard.commands.terminal.standard_streams import (
    describe_failure,
    discard_output,
    prepare_streams,
    print_error,
)
from regard.errors import OptionError, RegardError, check_utf8, unknown

DESCRIPTION = "Train attention models on your own text, use them, and see where they look."
COMMANDS = {
    "demo": "regard.commands.demo",
    "train": "regard.commands.train",
    "evaluate": "regard.commands.evaluate",
    "compare": "regard.commands.evidence.compare",
    "experiment": "regard.commands.evidence.experiment",
    "predict": "regard.commands.predict",
    "generate": "regard.commands.generate",
    "score": "regard.commands.score",
    "align": "regard.commands.align",
    "explain": "regard.commands.explain",
    "show": "regard.commands.show",
    "serve": "regard.commands.serve",
    "import": "regard.commands.run_management.import_model",
    "export": "regard.commands.export",
    "data": "regard.commands.data",
    "steps": "regard.commands.steps",
    "check": "regard.commands.check",
    "runs": "regard.commands.run_management.runs",
    "info": "regard.commands.run_management.info",
    "pack": "regard.commands.run_management.pack",
    "prune": "regard.commands.run_management.prune",
    "doctor": "regard.commands.installation.doctor",
    "completion": "regard.commands.installation.completion",
}
"""Each command and its module, in the order of the help."""
EXAMPLES = (
    "regard demo",
    "regard train translation --data train.en train.fr --out runs/en-fr",
    'regard show runs/en-fr --text "The black cat sleeps ." --to look.html',
    "regard serve runs/en-fr",
)
SYNONYMS = {
    "app": "serve",
    "continue": "train --resume",
    "eval": "evaluate",
    "infer": "predict",
    "list": "runs",
    "ls": "runs",
    "plot": "show",
    "resume": "train --resume",
    "run": "predict",
    "test": "evaluate",
    "ui": "serve",
    "visualize": "show",
    "web": "serve",
}
"""Words that other tools use for a command."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; bad input ends in one line on standard error and exit code 2."""
    with warnings.catch_warnings():
        warnings.showwarning = _print_warning  # type: ignore[assignment]
        return _run(list(sys.argv[1:] if arguments is None else arguments))


def _run(arguments: list[str]) -> int:
    try:
        prepare_streams()
        code = _command(arguments)
        sys.stdout.flush()
        return code
    except RegardError as error:
        message = error.on_command_line() if isinstance(error, OptionError) else str(error)
        print_error(f"regard: {' '.join(message.splitlines())}")
        return 2
    except KeyboardInterrupt:
        print_error("regard: stopped")
        return 128 + signal.SIGINT
    except BrokenPipeError:  # the reader has read enough
        discard_output()
        return 1
    except OSError as error:
        print_error(f"regard: {describe_failure(error)}")
        if error.filename is None:
            discard_output()
        return 2


def _command(arguments: list[str]) -> int:
    """Parse the arguments and run the command that they name."""
    for argument in arguments:
        check_utf8(argument, "argument")
        if "\0" in argument:
            raise RegardError(f"argument {argument!r}: NUL character: expected text")
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    if not arguments:
        make_parser([]).print_help()
        return 0
    if not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        raise RegardError(_unknown_command(arguments[0]))
    parser = make_parser(arguments)
    if arguments[0].startswith("-") and arguments[0] not in parser._option_string_actions:
        parser.error(f"unrecognized arguments: {arguments[0]}")
    chosen, unrecognized = parser.parse_known_args(arguments)
    rest = getattr(getattr(chosen, "parser", None), "rest", None)
    if rest is not None and not any(word.startswith("-") for word in unrecognized):
        getattr(chosen, rest).extend(unrecognized)
    elif unrecognized:
        chosen.parser.error(f"unrecognized arguments: {' '.join(unrecognized)}")
    chosen.main, chosen.make_parser = main, make_parser  # for commands about others
    return _call(chosen)


def _call(chosen: argparse.Namespace) -> int:
    """Run a command; those that may take long show their progress on standard error."""
    if not hasattr(chosen, "quiet"):
        return int(chosen.run(chosen))
    from regard.commands.terminal.display import Display
    from regard.progress import reporting

    chosen.display = Display(sys.stderr, quiet=chosen.quiet)
    with reporting(chosen.display):
        try:
            return int(chosen.run(chosen))
        finally:
            chosen.display.close()


def make_parser(arguments: Sequence[str] | None) -> argparse.ArgumentParser:
    """The parser of the command that is asked for; of all commands, where none is.

    Args:
        arguments: of the command line; None for all commands with all their options.
    """
    parser = Parser(prog="regard", description=DESCRIPTION, examples=EXAMPLES)
    parser.add_argument("--version", action="version", version=f"regard {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    asked = [name for name in COMMANDS if name in (arguments or [])[:1]]
    for name in asked or COMMANDS:
        import_module(COMMANDS[name]).add(commands, arguments)
    return parser


def _unknown_command(name: str) -> str:
    """The message for an unknown command; one named after a task gets the commands for it."""
    from regard.tasks.registry import TASKS

    if name in SYNONYMS:
        return f"unknown command {name!r}: did you mean {SYNONYMS[name]!r}?"
    for task, spec in TASKS.items():
        if name in (task, spec.summary.split()[0]):
            return (
                f"unknown command {name!r}: `regard train {task}` trains such a model, `regard "
                "predict RUN` uses it"
            )
    if os.path.isdir(name):
        return f"{name!r} is a folder: the command comes first, as in `regard predict {name}`"
    return unknown("command", name, COMMANDS)


def _print_warning(message: Warning | str, category: type[Warning], *place: object) -> None:
    """A warning in one line, without the line of code that it comes from."""
    print(f"regard: warning: {message}", file=sys.stderr)
