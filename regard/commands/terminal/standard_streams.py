"""Standard input, output and error of a command, also where they are closed or full."""

import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import Any

from regard.errors import RegardError, printable

_CLOSED_OUTPUT = "standard output is closed: redirect it, for example with > /dev/null"


def prepare_streams() -> None:
    """Open the null device in the place of closed standard streams; closed output is an error.

    Otherwise the first file that is opened would get the number of the closed stream, and
    everything that libraries print would end up in that file.
    """
    output_closed = sys.stdout is None
    if sys.stdin is None:
        sys.stdin = open(_null_descriptor(os.O_RDONLY), encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(_null_descriptor(os.O_WRONLY), "w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(_null_descriptor(os.O_WRONLY), "w", encoding="utf-8")  # noqa: SIM115
    if output_closed:
        raise RegardError(_CLOSED_OUTPUT)
    if isinstance(sys.stdout, TextIOWrapper):  # not in a notebook
        sys.stdout.reconfigure(errors="replace")  # letters that this terminal does not have


def _null_descriptor(flags: int) -> int:
    """The null device under the lowest free number: that of the stream, if they go in order."""
    return os.open(os.devnull, flags)


def describe_failure(error: OSError) -> str:
    """What could not be read or written, in one line; errors of files name the file."""
    name = "standard input or output" if error.filename is None else os.fsdecode(error.filename)
    return f"{name}: {error.strerror or error}"


def discard_output() -> None:
    """Let nothing more be written to standard output; Python would try once more at its exit."""
    _discard(sys.stdout)


def print_error(text: str) -> None:
    """One line on standard error, as far as it can be written."""
    try:
        print(printable(text), file=sys.stderr, flush=True)
    except OSError:
        _discard(sys.stderr)


def _discard(stream: Any) -> None:
    with suppress(OSError, ValueError):  # a stream of a test has no number
        number = stream.fileno()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, number)
        os.close(null)
