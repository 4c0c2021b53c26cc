"""Options and results of commands that process many files, with several workers."""

import argparse
import glob
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.commands.line_io import report_truncated
from regard.errors import OptionError, printable
from regard.options import positive, whole_number

if TYPE_CHECKING:
    from regard.data.readers.columns import Role
    from regard.inference.bulk.line_work import LineWork

LINE_ERRORS = 4
"""Exit code where all files were processed, but some lines have errors."""
SHOWN_ERRORS = 10
MAX_THREADS = 1024
"""More of them than a machine allows end a process without a word."""


def add_many_files(parser: argparse.ArgumentParser) -> None:
    """Add the options for many files."""
    group = parser.add_argument_group("Many files (the output is then a folder)")
    group.add_argument(
        "--jobs",
        type=positive,
        metavar="INT",
        help="number of workers (default with --on: one per CPU)",
    )
    group.add_argument(
        "--on",
        choices=("processes", "ray"),
        help="worker processes of this machine, or a Ray cluster",
    )
    group.add_argument("--ray-address", metavar="HOST:PORT", help="address of a Ray cluster")
    group.add_argument(
        "--threads",
        type=whole_number(1, MAX_THREADS),
        metavar="INT",
        help="threads of each worker (default: 1)",
    )
    group.add_argument(
        "--format",
        choices=("lines", "jsonl", "parquet"),
        help="format of the output files (default: that of the input)",
    )


def has_many_files(chosen: argparse.Namespace, *names: str | None) -> bool:
    """Whether a command line is about many files: by its options, or by a pattern in a name."""
    pattern = any(glob.has_magic(name) and not Path(name).exists() for name in names if name)
    if chosen.jobs is not None or chosen.on is not None or pattern:
        if chosen.ray_address is not None and chosen.on != "ray":
            raise OptionError("ray_address", "needs --on ray")
        return True
    for name in ("ray_address", "threads", "format"):
        if getattr(chosen, name) is not None:
            raise OptionError(name, "needs --jobs or --on")
    return False


def refuse_with_many_files(chosen: argparse.Namespace, *names: str) -> None:
    """Refuse options that do not apply to many files."""
    for name in names:
        if getattr(chosen, name, None):
            raise OptionError(name, "does not apply to many files (--jobs, --on or a pattern)")


def process_many_files(
    chosen: argparse.Namespace,
    work: "LineWork",
    data: Sequence[str] | str,
    roles: "Sequence[Role]",
) -> int:
    """Process the files and report what happened; the exit code."""
    from regard.inference.bulk.many_files import Engine, process_files

    if chosen.output in (None, "-"):
        raise OptionError("output", "expected a folder for the output of many files")
    engine = Engine(chosen.on or "processes", chosen.jobs, chosen.ray_address, chosen.threads or 1)
    display: Any = chosen.display
    try:
        summary, errors = process_files(
            work,
            data,
            Path(chosen.output),
            engine,
            output_format=chosen.format,
            roles=roles,
            log=display.line,
        )
    except KeyboardInterrupt:
        display.line("stopped; the same command resumes")
        raise
    display.line(f"{summary['lines']:,} lines in {chosen.output}")
    code = report_truncated(summary["truncated"])
    if not summary["failed"]:
        return code
    for message in summary["errors"][:SHOWN_ERRORS]:
        print(printable(message), file=sys.stderr)
    failed = (
        "1 line has an error"
        if summary["failed"] == 1
        else (f"{summary['failed']:,} lines have errors")
    )
    print(f"{failed}, listed in {errors}", file=sys.stderr)
    return LINE_ERRORS
