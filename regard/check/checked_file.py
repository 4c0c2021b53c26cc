"""A Python file that defines a module, checked in a process of its own under a time limit.

The file may come from somebody else: it can loop, exit or crash without harm to the caller. This is
no sandbox: the code runs with the rights of the user.
"""

import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from regard.errors import RegardError


class Grade(NamedTuple):
    """The report on a file, and whether everything passed."""

    report: str
    passed: bool


def check_file(path: Path, seconds: float = 60) -> Grade:
    """Execute a file that defines `module` and `make_inputs` in another process, and check it.

    The functions of the file whose names begin with `test_` are called as well. A file that is
    still running after `seconds` is stopped, together with the processes it started, and fails.
    """
    if not path.is_file():
        raise RegardError(f"{path}: no such file")
    with tempfile.TemporaryDirectory(prefix="regard-check-") as folder:
        result = Path(folder) / "grade.json"
        # -P: a file torch.py in the working directory must not hide the package torch
        command = [sys.executable, "-P", "-m", __spec__.name, str(path), str(result)]
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            code = child.wait(seconds)
        except subprocess.TimeoutExpired:
            return Grade(
                f"{path}: stopped after {seconds:g} seconds: does a loop never end?", False
            )
        finally:
            _stop(child)
        try:
            grade = json.loads(result.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            ending = f"signal {-code}" if code < 0 else f"exit code {code}"
            return Grade(f"{path}: ended before it was checked, with {ending}", False)
    if grade["error"]:
        raise RegardError(grade["error"])
    return Grade(grade["report"], grade["passed"])


def _stop(child: subprocess.Popen[bytes]) -> None:
    """End a process and those it started."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
    else:
        child.kill()
    child.wait()


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
        return Grade(f"{path}: not written yet: {error or 'a blank'}", False)
    lines.append(f"{path}: " + (f"{failures} to repair" if failures else "everything passed"))
    return Grade("\n".join(lines), not failures)


def _run_file(path: Path) -> dict[str, Any]:
    """The names that the file defines."""
    try:
        names = runpy.run_path(str(path), run_name=path.stem)
    except NotImplementedError as error:
        raise RegardError(f"{path}: a blank is used while the file is read: {error}") from error
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
    """The kind of an error and its message, without line breaks."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")


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
        return str(error) or "an assertion without a message"
    except (Exception, SystemExit) as error:
        return _one_line(error)
    return None


def _main(file: str, result: str) -> None:
    """What the child process does: check the file and write the grade as JSON."""
    sys.path.append(str(Path(file).resolve().parent))  # so that it can import files beside it
    grade: dict[str, object] = {"error": None}
    try:
        grade |= check_here(Path(file))._asdict()
    except RegardError as error:
        grade["error"] = str(error)
    Path(result).write_text(json.dumps(grade), encoding="utf-8")


if __name__ == "__main__":
    _main(*sys.argv[1:])
