"""Lines in and lines out: exactly one output line per input line."""

import gzip
import math
import os
import sys
import zlib
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeVar

from regard.atomic_files import write_output
from regard.errors import RegardError
from regard.verified_files import open_named

T = TypeVar("T")
TRUNCATED = 3
"""Exit code where all lines were processed, but some were longer than the model reads."""
UNREADABLE = "\ufffd".encode()
"""Replaces NUL, which is in no text: a stray one does not cost the line."""
EXIT_CODES = (
    "exit codes: 0 success; 2 bad input; 3 success, but some lines were truncated; 4 (many files) "
    "success, but some lines have errors"
)


def number(text: str) -> float:
    """A finite number, for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ArgumentTypeError(f"expected a number, got {text!r}")
    return value


def refuse_two_inputs(*names: str | None) -> None:
    """Refuse to read two files from one standard input."""
    if names.count("-") > 1:
        raise RegardError("standard input (-) can be read only once: name a file for the other")


def refuse_overwriting(output: str | Path | None, *inputs: str | Path | None) -> None:
    """Refuse an output file that is one of the inputs, under whatever name."""
    if output is None or not Path(output).is_file():
        return
    for name in inputs:
        if name is not None and Path(name).is_file() and os.path.samefile(output, name):
            raise RegardError(f"{output}: is an input as well: name another output file")


@contextmanager
def open_lines(name: str) -> Iterator[Iterator[str]]:
    """The lines of a file, or of standard input for "-"; gzip is decompressed."""
    if name == "-":
        yield _decode_lines(sys.stdin.buffer, name)
        return
    with ExitStack() as stack:
        try:
            stream = stack.enter_context(open_named(Path(name)))
        except OSError as error:
            raise RegardError(f"{name}: cannot be read ({error.strerror})") from error
        yield _decode_lines(stream, name)


def count_lines(name: str) -> int | None:
    """About how many lines a file has; None for one that is compressed or can be read once only."""
    from regard.data.readers.sources import GZIP

    path = Path(name)
    if not path.is_file():
        return None
    count = 0
    with open(path, "rb") as stream:
        while chunk := stream.read(1 << 20):
            if not count and chunk.startswith(GZIP):
                return None
            count += chunk.count(b"\n")
    return max(1, count)


def _decompress(stream: Any) -> Any:
    from regard.data.readers.sources import GZIP

    peek = getattr(stream, "peek", None)
    gzipped = peek is not None and peek(2)[:2] == GZIP
    return gzip.GzipFile(fileobj=stream) if gzipped else stream


def _decode_lines(stream: Any, name: str) -> Iterator[str]:
    """Lines end where they do in training data; one that is too long is an error."""
    from regard.data.readers.lines import LINE_LIMIT, decode, raw_lines

    try:
        for number, raw in enumerate(raw_lines(_decompress(stream)), 1):
            if raw is None:
                raise RegardError(
                    f"{name}:{number}: line of more than {LINE_LIMIT:,} bytes: expected shorter "
                    "ones, one text per line"
                )
            yield decode(raw.replace(b"\0", UNREADABLE), name, number, number == 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise RegardError(f"{name}: broken gzip file ({error}): check it with gzip -t") from error
    except OSError as error:
        raise RegardError(f"{name}: cannot be read ({error.strerror})") from error


def write_lines(name: str, write: Callable[[Any], int]) -> int:
    """Let `write` fill a stream: standard output for "-", or the named file."""
    return write(sys.stdout.buffer) if name == "-" else write_output(Path(name), write)


def report_truncated(number: int) -> int:
    """Report how many lines were truncated; the exit code for that."""
    if number:
        lines = "line is" if number == 1 else "lines are"
        print(f"{number} {lines} longer than this model reads: truncated", file=sys.stderr)
    return TRUNCATED if number else 0


def paired_lines(
    lines: Iterator[str], others: Iterator[str], names: tuple[str, str]
) -> Iterator[tuple[str, str]]:
    """Lines of two files, which must have the same number of them."""
    for count, (line, other) in enumerate(zip_longest(lines, others)):
        if line is None or other is None:
            short, long = names if line is None else names[::-1]
            raise RegardError(
                f"{short}: {count} lines, but {long} has more: expected the same number"
            )
        yield line, other
