"""What the folder of a run tells: curves, as they grow, evaluations, checkpoints."""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from os import fstat
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import safetensors

from regard.serve.plain import dumps
from regard.training import RunFolder
from regard.training.checkpoints import LATEST

POLL = 0.5
"""Seconds between two looks at a file."""
QUIET = 15.0
"""Seconds after which a silent stream says that it is still there."""


def json_lines(path: Path) -> list[Any]:
    """The whole lines of a file of JSON lines; one that is still being written is left out."""
    try:
        raw = path.read_bytes()
    except OSError:
        return []
    return [found for line in raw.split(b"\n")[:-1] if (found := _value(line)) is not None]


def _value(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def finished(folder: RunFolder) -> bool:
    """Whether the run has come to its end."""
    try:
        with safetensors.safe_open(folder.state / LATEST, "pt") as file:
            numbers = json.loads((file.metadata() or {}).get("regard", "{}"))
        return bool(numbers["position"]["finished"])
    except (OSError, ValueError, KeyError, TypeError, safetensors.SafetensorError):
        return False


def evaluations(folder: RunFolder) -> list[dict[str, Any]]:
    """Summaries of evaluations by name, and the last look at the validation data before them."""
    found = []
    for path in sorted((folder.path / "evaluations").glob("*.json")):
        try:
            summary = json.loads(path.read_bytes())
        except (OSError, ValueError):
            continue
        if isinstance(summary, dict):
            kept = path.with_suffix(".jsonl").is_file()
            own = {"name": path.stem, "sentences": kept}
            found.append({"metrics": {}, "by_length": {}, **summary, **own})
    looks = [line for line in json_lines(folder.metrics) if isinstance(line, dict)]
    if looks and "validation" not in {one["name"] for one in found}:
        last = {name: looks[-1].get(name) or {} for name in ("metrics", "by_length")}
        found.insert(0, {"name": "validation", **last, "sentences": False})
    return found


def sentences(folder: RunFolder, name: str) -> list[Any] | None:
    """The lines of an evaluation, one a sentence; None where there is none of that name."""
    files = {path.stem: path for path in (folder.path / "evaluations").glob("*.jsonl")}
    return json_lines(files[name]) if name in files else None


def step_of(checkpoint: str) -> int:
    """The step of a checkpoint, from its name.

    >>> step_of("step-1200")
    1200
    """
    digits = checkpoint.rpartition("-")[2]
    return int(digits) if digits.isdecimal() else 0


@dataclass
class Follower:
    """Reads a growing file of lines from where it last stopped, and notices when it begins anew."""

    path: Path
    place: int = 0
    number: int = 0
    file: int | None = None

    def more(self) -> tuple[bool, list[tuple[int, bytes]]]:
        """Whether the file began anew, and the numbered lines that are new."""
        try:
            with self.path.open("rb") as stream:
                about = fstat(stream.fileno())
                anew = self.file is not None and (
                    about.st_ino != self.file or about.st_size < self.place
                )
                if anew:
                    self.place = self.number = 0
                self.file = about.st_ino
                stream.seek(self.place)
                raw = stream.read()
        except OSError:
            return False, []
        whole = raw[: raw.rfind(b"\n") + 1]
        self.place += len(whole)
        lines = []
        for line in whole.split(b"\n")[:-1]:
            self.number += 1
            lines.append((self.number, line))
        return anew, lines


async def events(
    folder: RunFolder, after: int, stopping: Callable[[], bool], poll: float = POLL
) -> AsyncIterator[bytes]:
    """Server-sent events: each line of the metrics, numbered, those to come too.

    `reset` says that the file began anew, `end` that the run has come to its end.
    https://html.spec.whatwg.org/multipage/server-sent-events.html
    """
    follower, silent = Follower(folder.metrics), 0.0
    yield b"retry: 2000\n\n"
    while True:
        done = await anyio.to_thread.run_sync(finished, folder)
        anew, lines = await anyio.to_thread.run_sync(follower.more)
        if anew:
            after = 0
            yield b"event: reset\ndata: {}\n\n"
        for number, line in lines:
            if number > after and (value := _value(line)) is not None:
                silent = 0.0
                yield b"id: %d\nevent: metrics\ndata: %s\n\n" % (number, dumps(value))
        if done:
            yield b"event: end\ndata: {}\n\n"
            return
        if stopping():
            return
        await anyio.sleep(poll)
        silent += poll
        if silent >= QUIET:
            silent = 0.0
            yield b": still there\n\n"
