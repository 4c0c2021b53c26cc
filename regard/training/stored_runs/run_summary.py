"""What a run folder holds, read from its files without torch: for lists, cards and comparisons."""

import fcntl
import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.examples import example_path
from regard.number_format import format_interval, format_value
from regard.training.metrics_log import MAX_METRICS, saved_weights
from regard.training.run_folder import LOCK, RunFolder
from regard.verified_files import check_regular, parse_json, read_bytes, read_json

MAX_HEADER = 100_000_000
"""Bytes of the header of a safetensors file; more is no header."""
PARTS = ("weights", "checkpoints", "training state", "data", "other")


@dataclass(frozen=True)
class RunSummary:
    """One run, as far as its files tell."""

    path: Path
    config: dict[str, Any]
    status: str
    """finished, interrupted, training, packed, imported, or without weights."""
    best: dict[str, Any] | None
    """The line of metrics of the saved weights; None without a validation."""
    data: dict[str, Any]
    """What was read: the record that preparing the data wrote."""
    parameters: int | None
    """Number of weights; None without any."""
    position: dict[str, Any]
    """Steps, epochs and seconds of training."""
    bytes: dict[str, int] = field(default_factory=dict)
    """Size of each part of the folder."""
    validations: int = 0
    """Number of validations, of which the saved weights are the best."""
    modified: float = 0.0
    """When its weights were last written, in seconds since 1970."""
    architecture: dict[str, Any] = field(default_factory=dict)
    """Sizes and choices of the pretrained model; empty without one."""

    @property
    def task(self) -> str:
        """The name of its task."""
        return str(self.config["task"])

    @property
    def size(self) -> int:
        """Bytes of the whole folder."""
        return sum(self.bytes.values())

    @property
    def files(self) -> str:
        """The data files, without their folders; built-in for none."""
        names = (self.config.get("data") or {}).get("data")
        if self.status == "imported":
            return ""
        return " ".join(Path(str(name)).name for name in names) if names else "built-in"

    def metric(self, name: str | None = None, *, interval: bool = False) -> str:
        """A metric of the saved weights in words (default: the main one); empty without one."""
        return " ".join(self.metric_and_value(name, interval=interval)).strip()

    def metric_and_value(
        self, name: str | None = None, *, interval: bool = False
    ) -> tuple[str, str]:
        """The name of a metric for people, and its value; both empty without one."""
        line = self.best or {}
        record = (line.get("metrics") or {}).get(name or line.get("main"))
        if not isinstance(record, dict) or not isinstance(record.get("value"), int | float):
            return "", ""
        unit = str(record.get("unit", "number"))
        text = format_value(float(record["value"]), unit)
        low, high = record.get("low"), record.get("high")
        if interval and isinstance(low, int | float) and isinstance(high, int | float):
            text = f"{text} {format_interval(float(low), float(high), unit)}"
        return str(record.get("name", name)), text.rstrip()


def summarize_run(path: Path) -> RunSummary:
    """The summary of a run; RegardError for a folder that is none."""
    folder = RunFolder(path)
    config = folder.config()
    lines = list(json_lines(folder.metrics))
    position = _position(folder)
    steps = [line for line in lines if isinstance(line.get("step"), int)]
    last = steps[-1] if steps else {}
    has_model = folder.model.exists()
    return RunSummary(
        folder.path,
        config,
        _status(folder, position, has_model),
        saved_weights(lines),
        _read_record(folder.prepared),
        count_parameters(folder.model) if has_model else None,
        position or {name: last.get(name) for name in ("step", "epoch", "seconds")},
        _sizes(folder),
        sum("averaged" not in line for line in steps),
        _modified(folder),
        _read_record(folder.data / "pretrained.json"),
    )


def find_runs(folder: Path, depth: int = 2) -> list[Path]:
    """The runs in a folder and in its subfolders, by name; the folder itself, if it is a run."""
    folder = example_path(folder)
    if _is_run(folder):
        return [folder]
    try:
        inside = sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError as error:
        raise RegardError(f"{folder}: cannot be read ({error.strerror})") from error
    if depth == 0:
        return []
    visible = [path for path in inside if not path.name.startswith(".")]
    return [run for path in visible for run in find_runs_if_readable(path, depth - 1)]


def find_runs_if_readable(folder: Path, depth: int) -> list[Path]:
    """The runs in a folder; none in one that cannot be read."""
    try:
        return find_runs(folder, depth)
    except RegardError:
        return []


def read_header(path: Path) -> dict[str, Any]:
    """The header of a safetensors file: name, type and shape of each tensor."""
    try:
        check_regular(path)
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = parse_json(file.read(length)) if length <= MAX_HEADER else None
    except (OSError, ValueError, struct.error) as error:
        raise RegardError(f"{path}: cannot be read as safetensors ({error})") from error
    if not isinstance(header, dict):
        raise RegardError(f"{path}: cannot be read as safetensors")
    return header


def count_parameters(path: Path) -> int | None:
    """The number of weights in a safetensors file; None where it cannot be read."""
    try:
        header = read_header(path)
        tensors = (entry for name, entry in header.items() if name != "__metadata__")
        return sum(int(math.prod(entry["shape"])) for entry in tensors)
    except (RegardError, KeyError, TypeError):
        return None


def is_training(folder: RunFolder) -> bool:
    """Whether a process holds the lock of a run."""
    try:
        check_regular(folder.path / LOCK)  # opening a pipe would wait
        with (folder.path / LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (OSError, RegardError):
        return False
    return False


def _is_run(folder: Path) -> bool:
    return "task" in _read_record(folder / "config.json")


def _status(folder: RunFolder, position: Mapping[str, Any], has_model: bool) -> str:
    if is_training(folder):
        return "training"
    if not has_model:
        return "interrupted" if position.get("finished") is False else "no weights"
    if folder.packed.exists():
        return "imported" if _read_record(folder.packed).get("how") == "imported" else "packed"
    if not position:
        return "finished"
    return "finished" if position.get("finished") else "interrupted"


def _position(folder: RunFolder) -> dict[str, Any]:
    """How far training is, from the newest saved state; empty without one."""
    for name in ("new", "latest", "previous"):
        path = folder.state / f"{name}.safetensors"
        if path.exists():
            try:
                numbers = parse_json(read_header(path)["__metadata__"]["regard"])
                return dict(numbers["position"])
            except (RegardError, ValueError, KeyError, TypeError):
                continue
    return {}


def _sizes(folder: RunFolder) -> dict[str, int]:
    sizes = dict.fromkeys(PARTS, 0)
    folders = {"checkpoints": "checkpoints", "state": "training state", "data": "data"}
    for path in folder.path.rglob("*"):
        if path.is_file() and not path.is_symlink():
            first = path.relative_to(folder.path).parts[0]
            part = "weights" if path == folder.model else folders.get(first, "other")
            sizes[part] += path.stat().st_size
    return sizes


def _modified(folder: RunFolder) -> float:
    """When the weights were written; a copy has a new date, so that a packed run records it."""
    written = _read_record(folder.packed).get("written")
    if isinstance(written, int) and not isinstance(written, bool):
        return float(written)
    path = folder.model if folder.model.exists() else folder.path / "config.json"
    return path.stat().st_mtime


def _read_record(path: Path) -> dict[str, Any]:
    try:
        record = read_json(path)
    except (OSError, RegardError):
        return {}
    return record if isinstance(record, dict) else {}


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects in a file of JSON lines; lines that cannot be read are left out."""
    try:
        text = read_bytes(path, MAX_METRICS).decode("utf-8", "replace")
    except (OSError, RegardError):
        return
    for line in text.split("\n"):
        try:
            record = parse_json(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record
