"""Runs hostile work in a process of its own, so that an abort, a hang or a bomb is an outcome."""

import os
import pickle
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from regard.errors import RegardError

CPU_SECONDS, WALL_SECONDS = 10, 120
"""Limits of one piece of work; the wall clock allows for a busy machine."""
MEGABYTES = 1000
"""How much memory a piece of work with a small input may take."""


@dataclass(frozen=True)
class Outcome:
    """How a piece of work ended."""

    kind: str
    """value, error (a RegardError of one line), traceback, abort or hang."""
    value: Any
    """What it returned, or the text of the error."""
    megabytes: float
    """The memory that it took."""
    cpu_seconds: float

    def harmless(self) -> bool:
        """Whether it ended as it should: with a value or with an error of one line, in bounds."""
        return self.kind in ("value", "error") and self.megabytes < MEGABYTES


def contained(work: Callable[[], Any]) -> Outcome:
    """Do some work in a forked process."""
    outcome = _forked(work)
    return Outcome(
        outcome.kind,
        outcome.value,
        max(0.0, outcome.megabytes - _baseline()),
        outcome.cpu_seconds,
    )


@cache
def _baseline() -> float:
    return _forked(lambda: None).megabytes


def _forked(work: Callable[[], Any]) -> Outcome:
    receive, send = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(receive)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(WALL_SECONDS)
        with os.fdopen(send, "wb") as pipe:
            pickle.dump(_attempt(work), pipe)
            pipe.flush()
            os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as pipe:
        sent = pipe.read()
    _, status, usage = os.wait4(child, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        hung = number in (signal.SIGALRM, signal.SIGXCPU, signal.SIGKILL)
        kind, value = "hang" if hung else "abort", signal.Signals(number).name
    else:
        kind, value = pickle.loads(sent) if sent else ("abort", f"exit status {status}")
    return Outcome(kind, value, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime)


def _attempt(work: Callable[[], Any]) -> tuple[str, Any]:
    try:
        return "value", work()
    except RegardError as error:
        return ("error" if "\n" not in str(error) else "traceback"), str(error)
    except BaseException:
        return "traceback", traceback.format_exc()
