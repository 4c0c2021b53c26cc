"""Lines in and lines out: exactly one comes out for each that goes in."""

import gzip
import json
import math
import sys
import zlib
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from io import BufferedIOBase
from pathlib import Path
from typing import Any, BinaryIO

from regard.errors import RegardError
from regard.files import write_whole

CUT = 3
"""Exit code where all lines were done, but some were longer than the model reads."""
UNREADABLE = "\ufffd".encode()
"""Stands for NUL, which is in no text: a stray one costs no line."""
EXITS = "exit codes: 0 done; 2 bad input; 3 done, but lines were cut (said on standard error)"


def number(text: str) -> float:
    """A number that is not infinite, for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ArgumentTypeError(f"expected a number, got {text!r}")
    return value


def add_sampling(parser: ArgumentParser) -> None:
    """Options of drawing tokens at random, with the names that they have in Python."""
    group = parser.add_argument_group("sampling")
    group.add_argument("--temperature", type=number, metavar="T", help="0: the likeliest token")
    group.add_argument("--top-k", type=int, metavar="K", help="among the K likeliest tokens")
    group.add_argument(
        "--top-p", type=number, metavar="P", help="among those with the probability P together"
    )
    group.add_argument(
        "--repetition",
        dest="repetition_penalty",
        type=number,
        metavar="R",
        help="lower what was there before; 1 changes nothing, 1.2 is common",
    )
    group.add_argument("--seed", type=int, metavar="N", help="of the random numbers (default: 0)")


SAMPLING = ("temperature", "top_k", "top_p", "repetition_penalty", "seed")


def once(*names: str | None) -> None:
    """Refuse to read two things from one standard input."""
    if names.count("-") > 1:
        raise RegardError("standard input (-) can be read once: name a file for the other")


@contextmanager
def lines_of(name: str) -> Iterator[Iterator[str]]:
    """The lines of a file, or of standard input for "-"; of what they unpack to, if gzipped."""
    if name == "-":
        yield _decoded(_unpacked(sys.stdin.buffer), name)
        return
    with ExitStack() as stack:
        try:
            stream = stack.enter_context(open(name, "rb"))
        except OSError as error:
            raise RegardError(f"{name}: cannot be read ({error.strerror})") from error
        yield _decoded(_unpacked(stream), name)


def _unpacked(stream: BufferedIOBase | BinaryIO) -> Iterable[bytes]:
    from regard.data.sources import GZIP

    peek = getattr(stream, "peek", None)
    gzipped = peek is not None and peek(2)[:2] == GZIP
    return gzip.GzipFile(fileobj=stream) if gzipped else stream


def _decoded(source: Iterable[bytes], name: str) -> Iterator[str]:
    """Lines that end where others count them, at each newline."""
    from regard.data.lines import decode

    try:
        for number, raw in enumerate(source, 1):
            line = raw.removesuffix(b"\n").removesuffix(b"\r").replace(b"\0", UNREADABLE)
            yield decode(line, name, number, number == 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise RegardError(f"{name}: broken gzip file ({error}): check it with gzip -t") from error
    except OSError as error:
        raise RegardError(f"{name}: cannot be read ({error.strerror})") from error


def write_lines(name: str, write: Callable[[Any], int]) -> int:
    """Let `write` fill a stream: standard output for "-", or a file that appears whole."""
    if name == "-":
        return write(sys.stdout.buffer)
    counts: list[int] = []

    def fill(part: Path) -> None:
        with part.open("wb") as stream:
            counts.append(write(stream))

    if not (folder := Path(name).parent).is_dir():
        raise RegardError(f"{name}: cannot be written (no folder {folder})")
    write_whole(Path(name), fill)
    return counts[0]


def as_line(record: Mapping[str, Any]) -> str:
    """A record as JSON in one line, for readers too that end lines at more than newlines."""
    text = json.dumps(record, ensure_ascii=False)
    for mark in ("\x85", "\u2028", "\u2029"):
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def told_cut(cut: int) -> int:
    """Say how many lines were cut; the exit code that tells."""
    if cut:
        print(f"{cut} lines are longer than this model reads: they were cut", file=sys.stderr)
    return CUT if cut else 0
