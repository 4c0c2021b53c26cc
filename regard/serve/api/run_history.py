"""The history of a run from its folder: training curves, evaluations, checkpoints."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from os import fstat
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from regard.errors import RegardError
from regard.serve.http.strict_json import dumps
from regard.training import RunFolder
from regard.training.metrics_log import MAX_METRICS, describe_weights, saved_weights
from regard.training.state import LATEST
from regard.training.tensor_files import read_header
from regard.verified_files import open_inside, parse_json, read_bytes, read_json

POLL_SECONDS = 0.5
"""Time between two checks for new lines."""
KEEP_ALIVE_SECONDS = 15.0
"""Time without an event after which a comment is sent, so that proxies keep the stream open."""

INPUTS = ("source", "text")
"""Where the lines of an evaluation have the text that was given to the model."""
MAX_SAMPLE = 300
"""Characters of a sample that is offered as an example."""


def json_lines(folder: RunFolder, path: Path) -> list[Any]:
    """The complete lines of a JSON Lines file in a run folder, without one still being written."""
    try:
        raw = read_bytes(path, MAX_METRICS, within=folder.path)
    except (OSError, RegardError):
        return []
    return [value for line in raw.split(b"\n")[:-1] if (value := _parse(line)) is not None]


def _parse(line: bytes) -> Any:
    try:
        return parse_json(line)
    except ValueError:
        return None


def is_finished(folder: RunFolder) -> bool:
    """Whether training has ended."""
    if folder.contains(folder.packed):
        return True
    if not folder.contains(folder.state / LATEST):
        return False
    try:
        return bool(read_header(folder.state / LATEST).about["position"]["finished"])
    except (RegardError, KeyError, TypeError):
        return False


def evaluations(folder: RunFolder) -> list[dict[str, Any]]:
    """The validation of the saved weights, and summaries of evaluations by name."""
    summaries = []
    for path in folder.files("evaluations/*.json"):
        try:
            summary = read_json(path, within=folder.path)
        except (OSError, RegardError):
            continue
        if isinstance(summary, dict):
            entry = {"name": path.stem, "sentences": folder.contains(path.with_suffix(".jsonl"))}
            summaries.append({"metrics": {}, "by_length": {}, **summary, **entry})
    line = saved_weights(json_lines(folder, folder.metrics))
    if line and "validation" not in {summary["name"] for summary in summaries}:
        values = {name: line.get(name) or {} for name in ("metrics", "by_length")}
        summaries.insert(
            0,
            {
                "name": "validation",
                **values,
                "weights": describe_weights(line),
                "sentences": False,
            },
        )
    return summaries


def sentences(folder: RunFolder, name: str) -> list[Any] | None:
    """The lines of an evaluation, one per sentence; None if there is none of that name."""
    files = {path.stem: path for path in folder.files("evaluations/*.jsonl")}
    return json_lines(folder, files[name]) if name in files else None


def sample_texts(folder: RunFolder) -> tuple[str, ...]:
    """The inputs of the samples of the last validation, without long ones."""
    for line in reversed(json_lines(folder, folder.metrics)):
        samples = line.get("samples") if isinstance(line, dict) else None
        if isinstance(samples, list):
            given = (sample.get("given") for sample in samples if isinstance(sample, dict))
            short = (text for text in given if isinstance(text, str) and text.strip())
            return tuple(dict.fromkeys(text for text in short if len(text) <= MAX_SAMPLE))
    return ()


def known_texts(folder: RunFolder) -> list[str]:
    """The texts of saved evaluations, and those of the last validation."""
    texts = list(sample_texts(folder))
    for path in folder.files("evaluations/*.jsonl"):
        for line in json_lines(folder, path):
            given = [line.get(name) for name in INPUTS] if isinstance(line, dict) else []
            texts += [text for text in given if isinstance(text, str)]
    return texts


def step_of(checkpoint: str) -> int:
    """The step of a checkpoint, from its name.

    >>> step_of("step-1200")
    1200
    """
    digits = checkpoint.rpartition("-")[2]
    return int(digits) if digits.isdecimal() else 0


@dataclass
class FileFollower:
    """Reads the new lines of a growing file in a run folder, and notices when it is replaced."""

    folder: RunFolder
    path: Path
    offset: int = 0
    """Bytes that were read."""
    line_number: int = 0
    inode: int | None = None

    def new_lines(self) -> tuple[bool, list[tuple[int, bytes]]]:
        """Whether the file was replaced since the last call, and its new lines with numbers."""
        try:
            with open_inside(self.folder.path, self.path) as stream:
                status = fstat(stream.fileno())
                # another inode, or fewer bytes than were read: training was started anew
                replaced = self.inode is not None and (
                    status.st_ino != self.inode or status.st_size < self.offset
                )
                if replaced:
                    self.offset = self.line_number = 0
                self.inode = status.st_ino
                stream.seek(self.offset)
                raw = stream.read()
        except (OSError, RegardError):
            return False, []
        # a last line without its end is still being written: it is read again next time
        complete = raw[: raw.rfind(b"\n") + 1]
        self.offset += len(complete)
        lines = []
        for line in complete.split(b"\n")[:-1]:
            self.line_number += 1
            lines.append((self.line_number, line))
        return replaced, lines


async def events(
    folder: RunFolder, after: int, stopping: Callable[[], bool], poll: float = POLL_SECONDS
) -> AsyncIterator[bytes]:
    """Server-sent events: each line of the metrics, with its number as id, and each new one.

    A browser that reconnects sends the last id that it received; lines up to this number (`after`)
    are not sent again. `reset` says that the file was replaced and lines are numbered from 1 again,
    `end` that training has ended.
    https://html.spec.whatwg.org/multipage/server-sent-events.html
    """
    follower, silence = FileFollower(folder, folder.metrics), 0.0
    yield b"retry: 2000\n\n"
    while True:
        # asked before the lines are read: a run that has ended by now writes no more of them
        finished = await anyio.to_thread.run_sync(is_finished, folder)
        replaced, lines = await anyio.to_thread.run_sync(follower.new_lines)
        if replaced:
            after = 0
            yield b"event: reset\ndata: {}\n\n"
        for number, line in lines:
            if number > after and (value := _parse(line)) is not None:
                silence = 0.0
                yield b"id: %d\nevent: metrics\ndata: %s\n\n" % (number, dumps(value))
        if finished:
            yield b"event: end\ndata: {}\n\n"
            return
        if stopping():
            return
        await anyio.sleep(poll)
        silence += poll
        if silence >= KEEP_ALIVE_SECONDS:
            silence = 0.0
            yield b": keep-alive\n\n"
