"""Programs that take turns, each in a process and an environment of its own.

The contract between a benchmark and the script of a peer:

- A benchmark prepares data and weights in a folder, and gets a Python with the peer's packages from
  `environment(folder, name, requirements)`: a virtual environment, made once, the processor
  version of torch included where `constraints.txt` of the project names it.
- The script of a peer imports nothing of Regard. It loads what it needs, and ends with
  `answer(jobs)`: `jobs` maps the name of each kind of work to a function without arguments, whose
  result can be written as JSON (outputs, an accuracy, a count). The same names mean the same work.
  A script may print as it likes; what it prints goes to standard error.
- `take_turns(commands, rounds)` starts all scripts, lets every job run once without counting, and
  then `rounds` times, one script after the other, in an order shuffled in each round; nothing else
  of the benchmark runs meanwhile. Seconds are processor time of the script, with all its threads
  and the children that it has waited for, so that other programs on the machine matter less. They
  get `OMP_NUM_THREADS=threads`, and `RAYON_NUM_THREADS` for the tokenizers of Hugging Face.
- `report(...)` prints one row per job and script: units per second, how many times as fast as the
  first script that knows the job (computed within each round; median and range), and on how many
  outputs both agree. The load of the machine stands below the table.

Only the standard library is used, so that every environment can import this file.
"""

import hashlib
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
Jobs = Mapping[str, Callable[[], Any]]


def environment(
    folder: Path, name: str, requirements: Sequence[str], constrain: bool = True
) -> str:
    """The Python of a virtual environment with these packages, which is made when it is missing.

    Without `constrain` the versions are free: for peers that need older ones.
    """
    home = (folder / name).resolve()
    wanted = hashlib.sha256(json.dumps([*requirements, constrain]).encode()).hexdigest()
    stamp, python = home / "requirements.sha256", home / "bin" / "python"
    if not (stamp.exists() and stamp.read_text() == wanted):
        print(f"making {home}", file=sys.stderr, flush=True)
        venv.create(home, clear=True, with_pip=True)
        limits = ["-c", str(ROOT / "constraints.txt")] if constrain else []
        install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", *limits]
        subprocess.run([str(python), *install, *requirements], check=True, stdout=sys.stderr)
        stamp.write_text(wanted)
    return str(python)


def answer(jobs: Jobs) -> None:
    """Run the jobs that the benchmark names, until it has no more; the last call of a script."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not get between the replies
    print(json.dumps(list(jobs)), file=replies, flush=True)
    for line in sys.stdin:
        began = _processor_seconds()
        result = jobs[json.loads(line)]()
        seconds = _processor_seconds() - began
        print(json.dumps({"seconds": seconds, "result": result}), file=replies, flush=True)


def _processor_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


class Turns(NamedTuple):
    """What one script took for one job, in the order of the rounds, and its last result."""

    seconds: list[float]
    result: Any


class _Script:
    """A script that runs, and the jobs that it knows."""

    def __init__(self, command: Sequence[str], threads: int) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": str(threads), "RAYON_NUM_THREADS": str(threads)},
        )
        self.jobs: list[str] = self._reply()

    def run(self, job: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        print(json.dumps(job), file=self.process.stdin, flush=True)
        return self._reply()

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _reply(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.close()
            raise RuntimeError(f"it ended with exit code {self.process.returncode}")
        return json.loads(line)


def take_turns(
    commands: Mapping[str, Sequence[str]], rounds: int, threads: int = 1
) -> dict[str, dict[str, Turns]]:
    """By job and then by script: the seconds of each round. A script that fails is left out."""
    scripts: dict[str, _Script] = {}
    for name, command in commands.items():
        try:
            scripts[name] = _Script(command, threads)
        except (OSError, RuntimeError) as error:
            print(f"{name} is left out: {error}", file=sys.stderr, flush=True)
    jobs = dict.fromkeys(job for script in scripts.values() for job in script.jobs)
    order = random.Random(0)
    measured: dict[str, dict[str, Turns]] = {}
    for job in jobs:
        names = [name for name, script in scripts.items() if job in script.jobs]
        turns = {name: Turns([], scripts[name].run(job)["result"]) for name in names}
        for _ in range(rounds):
            for name in order.sample(names, len(names)):
                reply = scripts[name].run(job)
                turns[name] = Turns([*turns[name].seconds, reply["seconds"]], reply["result"])
        measured[job] = turns
    for script in scripts.values():
        script.close()
    return measured


def report(measured: Mapping[str, Mapping[str, Turns]], units: Mapping[str, float]) -> str:
    """A table in Markdown; `units` says how much work each job is, in sentences, tokens, …"""
    lines = ["| work | who | per second | times as fast | same outputs |"]
    lines += ["| --- | --- | ---: | ---: | ---: |"]
    for job, turns in measured.items():
        first = next(iter(turns.values()))
        for name, (seconds, result) in turns.items():
            rate = units[job] / statistics.median(seconds)
            ratios = sorted(a / b for a, b in zip(first.seconds, seconds, strict=True))
            speed = f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
            lines += [
                f"| {job} | {name} | {rate:.4g} | {speed} | {_agreement(first.result, result)} |"
            ]
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    return "\n".join([*lines, "", f"Load of the machine over 1, 5 and 15 minutes: {load}."])


def _agreement(ours: Any, theirs: Any) -> str:
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return f"{sum(a == b for a, b in zip(ours, theirs, strict=True))} of {len(ours)}"
    return "" if isinstance(theirs, list) else str(theirs)
