"""A Python file that defines a module, checked in a process of its own under a time limit.

The file may come from somebody else: it can loop, print without end, take all memory, exit or crash
without harm to the caller. This is no sandbox: the code runs with the rights of the user.
"""

import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from regard.errors import RegardError, printable
from regard.verified_files import MEBIBYTE, parse_json, read_bytes

MAX_OUTPUT = MEBIBYTE
"""Bytes that a file may print, and bytes of its report."""
LONGEST_MESSAGE = 10_000
"""Characters of an error's message that are shown."""
MEMORY_SHARE = 0.75
"""How much of this machine's memory a file may take; beyond that, it gets a MemoryError."""


class Grade(NamedTuple):
    """The report on a file, and whether everything passed."""

    report: str
    passed: bool


def check_file(path: Path, seconds: float = 60.0, *, memory: int | None = None) -> Grade:
    """Execute a file that defines `module` and `make_inputs` in another process, and check it.

    The functions of the file whose names begin with `test_` are called as well. A file that is
    still running after `seconds`, or that prints more than `MAX_OUTPUT`, is stopped, together with
    the processes it started, and fails. What it prints goes to standard error.

    Args:
        path: the file.
        seconds: how long it may run.
        memory: bytes that it may take; `MEMORY_SHARE` of the machine's by default.
    """
    if not path.is_file():
        found = "is not a file" if path.exists() else "no such file"
        raise RegardError(f"{path}: {found}: give a Python file")
    with tempfile.TemporaryDirectory(prefix="regard-check-") as folder:
        result = Path(folder) / "grade.json"
        # -P: a file torch.py in the working directory must not hide the package torch
        # -u: what a file printed before it was stopped is not lost
        command = [sys.executable, "-P", "-u", "-m", __spec__.name, str(path), str(result)]
        child = subprocess.Popen(
            [*command, str(_memory() if memory is None else memory)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            start_new_session=True,
        )
        try:
            reason = _watch(child, seconds)
        finally:
            _stop(child)
        if reason:
            return Grade(f"{path}: stopped after {reason}: does a loop never end?", False)
        grade = _read_grade(result)
    if grade is None:
        code = child.returncode
        ending = f"signal {-code}" if code < 0 else f"exit code {code}"
        return Grade(f"{path}: ended before it was checked, with {ending}", False)
    return grade


def _watch(child: subprocess.Popen[bytes], seconds: float) -> str | None:
    """Pass on what a process prints until it ends; the reason if it has to be stopped."""
    assert child.stdout is not None
    os.set_blocking(child.stdout.fileno(), False)
    deadline, left = time.monotonic() + seconds, MAX_OUTPUT
    while time.monotonic() < deadline:
        ended = child.poll() is not None
        printed = child.stdout.read(2**16)  # None if there is nothing yet
        if printed:
            text = printed[:left].decode("utf-8", "replace")
            sys.stderr.write(printable(text))
            sys.stderr.flush()
            left -= len(printed)
            if left < 0:
                return f"it printed {MAX_OUTPUT:,} bytes"
        elif ended:
            return None
        else:
            time.sleep(0.01)
    return f"{seconds:g} seconds"


def _read_grade(result: Path) -> Grade | None:
    """What the process wrote; None if the file is missing, or is not what `_main` writes.

    An error that it wrote is raised.
    """
    try:
        grade = parse_json(read_bytes(result, 2 * MAX_OUTPUT))
        error, report, passed = grade["error"], grade["report"], grade["passed"]
    except (OSError, ValueError, LookupError, TypeError, RegardError):
        return None
    if isinstance(error, str):
        raise RegardError(" ".join(error.split()))
    return Grade(report, passed) if isinstance(report, str) and passed in (True, False) else None


def _memory() -> int:
    """Bytes that a file may take; 0 where the system does not say how many there are."""
    try:
        return int(MEMORY_SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return 0


def _stop(child: subprocess.Popen[bytes]) -> None:
    """End a process and those it started."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
    else:
        child.kill()
    child.wait()
    if child.stdout is not None:
        child.stdout.close()


def check_here(path: Path) -> Grade:
    """Execute and check a file in this process, without a time limit."""
    names = _run_file(path)
    tests = [value for name, value in names.items() if name.startswith("test_")]
    failures = 0
    try:
        report = _check_module(names, path)
        lines = [str(report)]
        failures += len(report.failed)
        for test in tests:
            problem = _problem(test)
            failures += problem is not None
            lines.append(
                f"  {test.__name__}  " + (f"FAILED\n  -> {problem}" if problem else "passed")
            )
    except NotImplementedError as error:
        return Grade(f"{path}: not written yet: {error or 'fill in the blank'}", False)
    lines.append(f"{path}: " + (f"{failures} failed" if failures else "everything passed"))
    return Grade("\n".join(lines), not failures)


def _run_file(path: Path) -> dict[str, Any]:
    """The names that the file defines."""
    try:
        names = runpy.run_path(str(path), run_name=path.stem)
    except NotImplementedError as error:
        raise RegardError(
            f"{path}: a function that is not written yet is called on import: {error}"
        ) from error
    except (Exception, SystemExit) as error:
        line = getattr(error, "lineno", None) or _line(error, path)
        raise RegardError(f"{path}:{line}: {_one_line(error)}") from error
    for name in ("module", "make_inputs"):
        if not callable(names.get(name)):
            raise RegardError(f"{path}: defines no {name!r} that can be called: see docs/check.md")
    return names


def _line(error: BaseException, path: Path) -> int:
    """The last line of the file that an error passed through."""
    lines, trace = [1], error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            lines.append(trace.tb_lineno)
        trace = trace.tb_next
    return lines[-1]


def _one_line(error: BaseException) -> str:
    """The kind of an error and the beginning of its message, without line breaks."""
    message = " ".join(str(error)[:LONGEST_MESSAGE].split())
    return f"{type(error).__name__}: {message}".rstrip(": ")


def _check_module(names: Mapping[str, Any], path: Path) -> Any:
    from regard.check.runner import check

    options = {name: names[name] for name in ("call", "skip") if name in names}
    try:
        return check(names["module"], names["make_inputs"], **options)
    except NotImplementedError:
        raise
    except (Exception, SystemExit) as error:
        raise RegardError(f"{path}:{_line(error, path)}: {_one_line(error)}") from error


def _problem(test: Callable[[], object]) -> str | None:
    """What a test complains about; None if it passes."""
    try:
        test()
    except NotImplementedError:
        raise
    except AssertionError as error:
        return str(error)[:LONGEST_MESSAGE] or "an assertion without a message"
    except (Exception, SystemExit) as error:
        return _one_line(error)
    return None


def _main(file: str, result: str, memory: str) -> None:
    """What the child process does: check the file and write the grade as JSON."""
    _limit_memory(int(memory))
    process = os.getpid()
    sys.path.append(str(Path(file).resolve().parent))  # so that it can import files beside it
    grade: dict[str, object] = {"error": None, "report": "", "passed": False}
    try:
        grade |= check_here(Path(file))._asdict()
    except RegardError as error:
        grade["error"] = str(error)
    if os.getpid() == process:  # not in a copy of it that the file made
        Path(result).write_text(json.dumps(grade), encoding="utf-8")


def _limit_memory(memory: int) -> None:
    with suppress(ImportError, ValueError, OSError):  # Windows, or a system without this limit
        import resource

        if memory:
            resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))


if __name__ == "__main__":
    _main(*sys.argv[1:])
