"""The code blocks of Markdown pages, and a way to run them as a reader would."""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from regard.cli import main

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^( *)```(\w+)[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
PUNCTUATION = "|<>&;"


class CodeBlock(NamedTuple):
    """A block with its language and the line where it begins."""

    language: str
    code: str
    line: int


def code_blocks(page: Path) -> list[CodeBlock]:
    """All blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        CodeBlock(
            match[2],
            "".join(line.removeprefix(match[1]) for line in match[3].splitlines(keepends=True)),
            text.count("\n", 0, match.start()) + 1,
        )
        for match in BLOCK.finditer(text)
    ]


def run_page(
    page: Path,
    names: Mapping[str, Any] | None = None,
    *,
    added: Mapping[str, Sequence[str]] | None = None,
    skipped: Sequence[str] = (),
) -> None:
    """Run the Python and shell blocks of a page in order, in the working directory.

    Python blocks share one namespace, as in a notebook; a shell block stops at the first command
    that fails. Other languages, such as `text` and `bash`, are not run, nor are Python sessions
    (`>>>`), which doctest runs.

    Args:
        page: the page.
        names: what the page takes for granted in its Python blocks.
        added: options for each use of a command of Regard, to make it quick.
        skipped: beginnings of shell commands that are not run.
    """
    namespace: dict[str, Any] = {"__name__": "__main__"} | dict(names or {})
    for language, code, line in code_blocks(page):
        place = f"{page.name}:{line}"
        if language == "python" and not code.startswith(">>>"):
            exec(compile(code, place, "exec"), namespace)
        elif language == "sh":
            for command in code.replace("\\\n", " ").splitlines():
                if command.strip() and not command.startswith(tuple(skipped)):
                    run_command(command, place, added or {})


def run_command(command: str, place: str, added: Mapping[str, Sequence[str]]) -> None:
    """Run one line of a shell block.

    `regard …` runs in this process, which is quicker than a new one, also with its input from a
    pipe and its output to a file. The shell runs everything else.
    """
    words = shlex.shlex(command, posix=True, punctuation_chars=PUNCTUATION)
    words.whitespace_split = True
    tokens = list(words)
    if "regard" not in tokens:
        run_in_shell(command, place)
        return
    start = tokens.index("regard")
    arguments, rest = tokens[start + 1 :], []
    for number, token in enumerate(arguments):
        if set(token) <= set(PUNCTUATION):
            arguments, rest = arguments[:number], arguments[number:]
            break
    files = dict(zip(rest[::2], rest[1::2], strict=True))
    assert set(files) <= {"<", ">"}, f"{place}: {command}"
    entered = b""
    if start:
        assert tokens[start - 1] == "|", f"{place}: {command}"
        entered = run_in_shell(command[: command.index("| regard")], place)
    if "<" in files:
        entered = Path(files["<"]).read_bytes()
    arguments += added.get(arguments[0], ())
    code, printed, errors = run_regard(arguments, entered)
    assert code == 0, f"{place}: {command}\n{errors[-2000:]}"
    if ">" in files:
        Path(files[">"]).write_text(printed, encoding="utf-8")


def run_in_shell(command: str, place: str) -> bytes:
    """What a shell command prints; one that fails fails the test."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        env=os.environ | {"PATH": path},
        capture_output=True,
    )
    assert done.returncode == 0, f"{place}: {done.stderr.decode()[-2000:]}"
    return done.stdout


def run_regard(arguments: list[str], entered: bytes) -> tuple[int, str, str]:
    """Exit code, output and errors of one command of Regard."""
    printed, errors = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    typed = io.TextIOWrapper(io.BytesIO(entered), encoding="utf-8")
    streams = mock.patch.multiple(sys, stdin=typed, stdout=printed, stderr=errors)
    with streams, contextlib.chdir(Path.cwd()):
        try:
            code = main(arguments)
        except SystemExit as end:  # of argparse
            code = int(end.code or 0)
    for stream in (printed, errors):
        stream.flush()
    texts = [stream.buffer.getvalue().decode() for stream in (printed, errors)]  # type: ignore[attr-defined]
    return code, texts[0], texts[1]
