"""Many lines with two workers, of this machine or of a local Ray: equal bytes, speed, crashes.

    python benchmarks/many_files.py [--lines 1000000] [--on ray processes] [--run example:sentiment]

Makes four files of short lines and predicts them with the plain command, which is the reference.
Then, with two workers: once undisturbed; and once with a worker killed (SIGKILL) in the middle,
later the command itself killed, and run again. The output must be that of the plain command, byte
for byte, and what was finished before must not be written again. Speed is in lines per processor
second at the lines themselves, without starting Python and loading the model.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from regard.cli import main as main_command
from regard.inference.bulk import many_files
from regard.inference.bulk.line_work import LineWork
from regard.inference.bulk.many_files import Engine, process_files
from regard.inference.bulk.shards import SHARD_LINES

WORDS = (
    *("a", "the", "film", "plot", "cast", "it", "was", "is", "not", "very", "never", "good", "bad"),
    *("great", "dull", "and", "but", "funny", "slow", "warm", "story", "ending", "we", "loved"),
)
FILES, WORKERS = 4, 2
WAIT = 1800.0
"""Seconds for a crash to become possible."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--run", default="example:sentiment")
    parser.add_argument("--on", nargs="+", choices=["processes", "ray"], default=["processes"])
    parser.add_argument("--driver", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.driver:  # the command that is killed
        corpus, out = chosen.driver
        process_files(work(chosen.run), f"{corpus}/*", Path(out), engine(chosen.on[0]))
        return 0
    os.environ.setdefault("RAY_worker_niceness", "0")  # as the other processes
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        corpus = folder / "corpus"
        write_lines(corpus, chosen.lines)
        speed = predict_plainly(chosen.run, corpus, folder / "plain")
        print(f"plain: {speed:,.0f} lines per processor second", flush=True)
        expected = contents(folder / "plain")
        for on in chosen.on:
            speed = predict_with_workers(on, chosen.run, corpus, folder / on)
            equal = contents(folder / on) == expected
            print(f"{on}: {speed:,.0f}; equal bytes: {equal}", flush=True)
            crash(on, chosen.run, corpus, folder / f"{on}-crash")
            equal = contents(folder / f"{on}-crash") == expected
            print(f"{on}, after both crashes: equal bytes: {equal}", flush=True)
    return 0


def write_lines(folder: Path, count: int) -> None:
    """Files of lines of 3 to 12 words."""
    folder.mkdir()
    random = np.random.default_rng(1)
    for number in range(FILES):
        with (folder / f"{number}.txt").open("w") as file:
            for _ in range(count // FILES):
                chosen = random.integers(0, len(WORDS), random.integers(3, 13))
                file.write(" ".join(WORDS[i] for i in chosen) + "\n")


def work(run: str) -> LineWork:
    return LineWork("predictions", run, ("input",))


def engine(on: str) -> Engine:
    return Engine(on=on, jobs=WORKERS)


def predict_plainly(run: str, corpus: Path, out: Path) -> float:
    """Predict all files with the plain command; lines per processor second."""
    import torch

    torch.set_num_threads(1)
    out.mkdir()
    few = out.with_name("few.txt")
    few.write_text("a film\n")

    def seconds(path: Path, to: Path) -> float:
        began = time.process_time()
        arguments = ["--input", str(path), "--output", str(to), "--quiet"]
        if main_command(["predict", run, *arguments]) != 0:
            raise SystemExit("predict failed")
        return time.process_time() - began

    start = min(seconds(few, few.with_suffix(".out")) for _ in range(3))
    paths = sorted(corpus.iterdir())
    used = sum(seconds(path, out / path.name) - start for path in paths)
    return sum(path.read_bytes().count(b"\n") for path in paths) / used


def predict_with_workers(on: str, run: str, corpus: Path, out: Path) -> float:
    """The same with workers; lines per processor second of their own."""
    used = []
    process = Engine.process

    def listen(self: Engine, settings: dict, jobs: list[dict]) -> Iterator[dict]:
        for answer in process(self, settings, jobs):
            used.append((answer["lines"], answer["seconds"]))
            yield answer

    Engine.process = listen  # type: ignore[assignment, method-assign]
    try:
        process_files(work(run), f"{corpus}/*", out, engine(on))
    finally:
        Engine.process = process  # type: ignore[method-assign]
    return sum(lines for lines, _ in used) / sum(seconds for _, seconds in used)


def crash(on: str, run: str, corpus: Path, out: Path) -> None:
    """Kill a worker, later the command; then run the command again."""
    command = [sys.executable, __file__, "--run", run, "--on", on, "--driver", str(corpus)]
    driver = subprocess.Popen([*command, str(out)], start_new_session=True)
    lines = [path.read_bytes().count(b"\n") for path in corpus.iterdir()]
    parts = sum(-(-count // SHARD_LINES) for count in lines)
    wait_for(driver, out, parts // 4)
    worker = find_worker(on, driver.pid)
    os.kill(worker, signal.SIGKILL)
    at_worker = len(parts_of(out))
    wait_for(driver, out, parts // 2)
    left = descendants(driver.pid)
    driver.kill()
    driver.wait()
    wait_until_ended(left)
    before, files = parts_of(out), sorted(out.glob("*.txt"))
    at_command = len(parts_of(out))
    print(f"{on}: killed a worker after {at_worker} of {parts} parts, all after {at_command}")
    written = []
    process = many_files.Engine.process

    def listen(self: Engine, settings: dict, jobs: list[dict]) -> Iterator[dict]:
        written.extend(jobs)
        return process(self, settings, jobs)

    many_files.Engine.process = listen  # type: ignore[assignment, method-assign]
    try:
        process_files(work(run), f"{corpus}/*", out, engine(on))
    finally:
        many_files.Engine.process = process  # type: ignore[method-assign]
    names = {path.name for path in files}
    again = [
        job
        for job in written
        if Path(job["part"]) in before or job["shard"]["file"]["output"] in names
    ]
    print(f"{on}: {len(written)} parts were left, {len(again)} were written again")


def parts_of(out: Path) -> list[Path]:
    """The parts that are written; they are removed when all files are complete."""
    return sorted(out.rglob("*.part"))


def wait_for(driver: "subprocess.Popen[bytes]", out: Path, parts: int) -> None:
    """Wait until so many parts are written."""
    deadline = time.monotonic() + WAIT
    while len(parts_of(out)) < parts:
        if driver.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"the command ended before it had {parts} parts")
        time.sleep(0.01)


def find_worker(on: str, driver: int) -> int:
    """A process that predicts, started by the command."""
    sign = b"ShardActor" if on == "ray" else b"shard_worker"
    for process in descendants(driver):
        try:
            if sign in Path(f"/proc/{process}/cmdline").read_bytes():
                return process
        except OSError:
            continue
    raise SystemExit("no worker was found")


def descendants(parent: int) -> list[int]:
    """All processes below one."""
    parents = {}
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdecimal():
                status = (folder / "stat").read_text().rpartition(")")[2]
                parents[int(folder.name)] = int(status.split()[1])
        except OSError:
            continue
    found = [parent]
    for process in found:
        found += [child for child, above in parents.items() if above == process]
    return found[1:]


def wait_until_ended(processes: list[int]) -> None:
    """Wait for what the killed command left, which may still write the parts that it was at."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and any(Path(f"/proc/{one}").exists() for one in processes):
        time.sleep(0.1)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


if __name__ == "__main__":
    sys.exit(main())
