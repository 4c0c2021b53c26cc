"""Errors that finish the diagnosis: what, where, what was expected, what to do."""

import re
from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from difflib import get_close_matches

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """The text with escapes for control characters, which terminals obey; tabs and newlines stay.

    Lone surrogates, which stand for bytes of file names that are not UTF-8, are escaped as well.

    >>> printable("a\\x1b[31mred")
    'a\\\\x1b[31mred'
    """
    return _CONTROLS.sub(lambda control: repr(control[0])[1:-1], text)


class RegardError(Exception):
    """A bad file, config or run folder; the command line prints it in one line and exits with 2."""

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: one line, without the frames in between."""
        return [f"{type(self).__name__}: {self}"]


class OptionError(RegardError):
    """A wrong value of an option, which the command line calls `--name` and Python `name`."""

    def __init__(self, option: str, problem: str) -> None:
        """Keep what is wrong, for messages that name the option differently.

        Args:
            option: its name in Python.
            problem: what was expected, and what was given.
        """
        super().__init__(f"option {option}: {problem}")
        self.option, self.problem = option, problem

    def __reduce__(self) -> tuple[type["OptionError"], tuple[str, str]]:
        return type(self), (self.option, self.problem)

    def on_command_line(self) -> str:
        """The message with the option as it is typed.

        >>> OptionError("top_k", "expected 1 or more, got 0").on_command_line()
        '--top-k: expected 1 or more, got 0'
        """
        return f"--{self.option.replace('_', '-')}: {self.problem}"


@contextmanager
def python_wording() -> Iterator[None]:
    """Errors inside name options as Python does."""
    try:
        yield
    except OptionError:
        raise
    except RegardError as error:
        error.args = (as_python_options(str(error)),)
        raise


def as_python_options(message: str) -> str:
    """A message with options as keyword arguments.

    >>> as_python_options("choose the columns with --text and --label, or another --out")
    'choose the columns with text= and label=, or another out='
    """
    return re.sub(
        r"(?<![\w-])--([a-z][a-z-]*[a-z])", lambda match: match[1].replace("-", "_") + "=", message
    )


def refuse_empty(examples: object, option: str) -> None:
    """Raise an error for a list, a table or anything else of length 0 in the place of examples."""
    if isinstance(examples, Sized) and not isinstance(examples, str) and len(examples) == 0:
        raise OptionError(option, "no examples were given")


def nearest_name(name: object, known: Iterable[str]) -> str | None:
    """The most similar name, where one is similar enough for a suggestion."""
    nearest = get_close_matches(str(name), list(known), n=1, cutoff=0.6)
    return nearest[0] if nearest else None


def check_utf8(name: str, what: str) -> None:
    """Refuse a name that is not UTF-8: it could not be written in a run's files.

    Such bytes are lone surrogates in Python: `os.fsdecode(b"\\xff")`.
    """
    try:
        name.encode("utf-8")
    except UnicodeEncodeError as error:
        shown = name.encode("utf-8", "backslashreplace").decode("utf-8")
        raise RegardError(f"{what} {shown}: not UTF-8: rename the file, or fix it") from error


def unknown(what: str, name: object, known: Iterable[str], *, listed: bool = True) -> str:
    """The message for a name that is not in a table, with the nearest one that is.

    >>> unknown("score", "scaled_dto", ["dot", "scaled_dot"])
    "unknown score 'scaled_dto': did you mean 'scaled_dot'? Known: dot, scaled_dot"
    >>> unknown("score", "x", ["dot", "scaled_dot"])
    "unknown score 'x'; known: dot, scaled_dot"
    """
    names = list(known)
    nearest = nearest_name(name, names)
    all_names = ", ".join(names) if listed else ""
    if nearest is not None:
        listing = f" Known: {all_names}" if listed else ""
        return f"unknown {what} {name!r}: did you mean {nearest!r}?{listing}"
    return f"unknown {what} {name!r}" + (f"; known: {all_names}" if listed else "")
