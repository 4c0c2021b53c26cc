"""The parser of the command line: mistakes in one line, help with examples."""

import argparse
import os
import re
import shlex
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from regard.errors import RegardError, unknown
from regard.options import NAMES_OF_TYPES, not_a_choice

MAX_USAGE_OPTIONS = 8
"""A command with more options has only [options] in its usage line: the list follows below."""


class Parser(argparse.ArgumentParser):
    """A parser whose mistakes are one line each, and whose help ends with examples."""

    explain_unknown: Callable[[str], None] | None = None
    """Called with an unknown option, to raise a better error than "unknown option"."""

    rest: str | None = None
    """The positional argument that words between options belong to: argparse only takes those
    before the first option."""

    def __init__(self, *, examples: Sequence[str] = (), note: str = "", **options: Any) -> None:
        """Make a parser.

        Args:
            examples: commands that are shown at the end of the help.
            note: a line below the examples.
            options: those of argparse.
        """
        self.examples = tuple(examples)
        listing = "examples:\n" + "\n".join(f"  {line}" for line in examples) if examples else ""
        epilog = "\n\n".join(part for part in (listing, note) if part)
        super().__init__(
            **{
                "allow_abbrev": False,
                "epilog": epilog or None,
                "formatter_class": HelpFormat,
                **options,
            }
        )

    def format_help(self) -> str:
        """The help; the usage of a command with many options is one line."""
        optional = [action for action in self._actions if action.option_strings]
        if self.usage is None and len(optional) > MAX_USAGE_OPTIONS:
            required = [a for a in optional if a.required]
            words = [_in_usage(a) for a in (*self._get_positional_actions(), *required)]
            self.usage = " ".join(["%(prog)s", *words, "[options]"])
        return super().format_help()

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """The values of one option; argparse takes `--beam=--` for an option without a value."""
        if action.option_strings and "--" in arg_strings:
            self.error(f"argument {action.option_strings[-1]}: expected a value, got '--'")
        return super()._get_values(action, arg_strings)

    def error(self, message: str) -> NoReturn:
        """Raise what the command line prints; argparse would print its usage first."""
        unrecognized = message.removeprefix("unrecognized arguments: ")
        if unrecognized != message:
            if not unrecognized.strip():
                raise RegardError(f"blank argument {unrecognized!r}. See {self.prog} --help")
            raise RegardError(self._unknown_argument(unrecognized.split()[0]))
        missing = re.fullmatch(r"the following arguments are required: (.*)", message)
        if missing and self.examples:
            place = "" if missing[1].startswith("-") else ": expected before the options"
            which = f"{missing[1]} missing{place}"
            raise RegardError(f"{which}, as in `{self.examples[0]}`. See {self.prog} --help")
        problem = re.fullmatch(r"argument ([^:]+): (.*)", message, re.DOTALL)
        if problem is None:
            raise RegardError(f"{message}. See {self.prog} --help")
        name, what = problem.groups()
        choice = re.fullmatch(r"invalid choice: '(.*)' \(choose from (.*)\)", what, re.DOTALL)
        if choice:
            known = [one.strip("' ") for one in choice[2].split(",")]
            if name.startswith("-"):
                raise RegardError(f"{name}: {not_a_choice(choice[1], known)}")
            raise RegardError(unknown(name, choice[1], known))
        value = re.fullmatch(r"invalid (\w+) value: (.*)", what, re.DOTALL)
        if value:
            what = f"expected {NAMES_OF_TYPES.get(value[1], value[1])}, got {value[2]}"
        what = what.replace("not allowed with argument", "cannot be combined with")
        what = re.sub("^expected one argument$", "expected a value", what)
        what = re.sub("^expected at least one argument$", "expected one value or more", what)
        raise RegardError(f"{name}: {what}")

    def _unknown_argument(self, name: str) -> str:
        if self.explain_unknown is not None:
            self.explain_unknown(name)
        if not name.startswith("-"):
            where = ""
            if "--data" in self._option_string_actions and os.path.exists(name):
                where = f": files are given with --data, as in `--data {shlex.quote(name)}`"
            return f"unexpected argument {name!r}{where}. See {self.prog} --help"
        known = [option for option in self._option_string_actions if option.startswith("--")]
        message = unknown("option", name.split("=")[0], known, listed=False)
        return message + (" " if message.endswith("?") else ". ") + f"See {self.prog} --help"


class HelpFormat(argparse.HelpFormatter):
    """Help whose indented lines stay as they are; other text is wrapped."""

    def add_argument(self, action: argparse.Action) -> None:
        """Make room for the names of commands, whose indentation argparse forgets."""
        super().add_argument(action)
        for command in self._iter_indented_subactions(action):
            length = len(self._format_action_invocation(command)) + self._current_indent
            self._action_max_length = max(self._action_max_length, length)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        wrapped = []
        for paragraph in text.split("\n\n"):
            if "\n  " in paragraph:
                wrapped.append("\n".join(indent + line for line in paragraph.splitlines()))
            else:
                wrapped.append(super()._fill_text(paragraph, width, indent))
        return "\n\n".join(wrapped)


def _in_usage(action: argparse.Action) -> str:
    name = action.metavar if isinstance(action.metavar, str) else action.dest
    if action.nargs in ("+", "*"):
        name = f"{name} [{name} ...]" if action.nargs == "+" else f"[{name} ...]"
    elif action.nargs == "?":
        name = f"[{name}]"
    return f"{action.option_strings[-1]} {name}" if action.option_strings else name
