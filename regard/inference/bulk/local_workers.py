"""Shards in worker processes of this machine."""

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

from regard.errors import RegardError

ATTEMPTS = 3
"""How often a shard is given to a worker; those before died."""
GRACE = 5.0
"""Seconds that idle workers have to end."""


@dataclass(eq=False)
class _Worker:
    """A worker process and the job that it has."""

    process: "subprocess.Popen[bytes]"
    requests: IO[bytes]
    answers: IO[bytes]
    errors: IO[bytes]
    job: dict[str, Any] | None = None

    def send(self, message: dict[str, Any]) -> None:
        with suppress(BrokenPipeError):  # it has died: the end of its answers says so
            self.requests.write(json.dumps(message).encode() + b"\n")
            self.requests.flush()

    def close(self) -> None:
        """Close its pipes and the file of its messages."""
        with suppress(BrokenPipeError):
            self.requests.close()
        self.answers.close()
        self.errors.close()

    def reason(self) -> str:
        """Why it ended."""
        code = self.process.wait()
        if code < 0:
            memory = ": the machine may have run out of memory" if code == -signal.SIGKILL else ""
            return f"killed by {signal.Signals(-code).name}{memory}"
        self.errors.seek(0)
        lines = [line for line in self.errors.read().decode("utf-8", "replace").split("\n") if line]
        return f"ended with code {code}: {lines[-1].strip() if lines else 'no message'}"


def process_locally(
    settings: dict[str, Any], jobs: Sequence[dict[str, Any]], workers: int
) -> Iterator[dict[str, Any]]:
    """The answers to all jobs, in the order in which they are done.

    The shard of a worker that dies is given to another one.
    """
    waiting = [(job, 1) for job in reversed(jobs)]
    attempts: dict[int, int] = {}
    running: set[_Worker] = set()
    with selectors.DefaultSelector() as selector:

        def start() -> None:
            worker = _start(settings)
            running.add(worker)
            selector.register(worker.answers, selectors.EVENT_READ, worker)
            give(worker)

        def give(worker: _Worker) -> None:
            worker.job = None
            if waiting:
                worker.job, attempt = waiting.pop()
                attempts[worker.job["number"]] = attempt
                worker.send(worker.job)

        try:
            for _ in range(min(workers, len(jobs))):
                start()
            while any(worker.job is not None for worker in running):
                for key, _ in selector.select():
                    worker: _Worker = key.data
                    line = worker.answers.readline()
                    if line:
                        answer = json.loads(line)
                        if "failed" in answer:
                            raise RegardError(answer["failed"])
                        give(worker)
                        yield answer
                        continue
                    selector.unregister(key.fileobj)
                    running.remove(worker)
                    reason = worker.reason()
                    worker.close()
                    if worker.job is not None:
                        attempt = attempts[worker.job["number"]]
                        if attempt == ATTEMPTS:
                            shard = worker.job["shard"]
                            raise RegardError(
                                f"{shard['file']['path']}: {attempt} workers died at lines "
                                f"{shard['first']} to {shard['first'] + shard['count'] - 1} "
                                f"(the last was {reason}): run the same command again, "
                                "with fewer --jobs if memory is short"
                            )
                        waiting.append((worker.job, attempt + 1))
                    if waiting:
                        start()
        finally:
            _stop(running)


def _start(settings: dict[str, Any]) -> _Worker:
    errors = tempfile.TemporaryFile(prefix="regard-")  # noqa: SIM115 (closed with the worker)
    process = subprocess.Popen(
        [sys.executable, "-m", "regard.inference.bulk.shard_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env={**os.environ, "OMP_NUM_THREADS": str(settings["threads"])},
        start_new_session=True,  # ctrl-C is for the process that started it
    )
    assert process.stdin is not None
    assert process.stdout is not None
    worker = _Worker(process, process.stdin, process.stdout, errors)
    worker.send(settings)
    return worker


def _stop(workers: set[_Worker]) -> None:
    """End workers: idle ones by the end of their input, others at once."""
    for worker in workers:
        if worker.job is not None:
            worker.process.terminate()
        with suppress(BrokenPipeError):
            worker.requests.close()
    for worker in workers:
        try:
            worker.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            worker.process.kill()
            worker.process.wait()
        worker.close()
