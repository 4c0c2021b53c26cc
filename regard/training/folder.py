"""The folder of a run: what it holds, and writing that never leaves half a file."""

import fcntl
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import RegardError

CONFIG = "config.json"


@dataclass(frozen=True)
class RunFolder:
    """Where a run keeps its config, weights, tokenizers, metrics and state."""

    path: Path

    @property
    def model(self) -> Path:
        """The best weights so far."""
        return self.path / "model.safetensors"

    @property
    def metrics(self) -> Path:
        """One line of JSON for each look at the validation data."""
        return self.path / "metrics.jsonl"

    @property
    def state(self) -> Path:
        """Everything needed to go on."""
        return self.path / "state"

    @property
    def checkpoints(self) -> Path:
        """Weights kept along the way."""
        return self.path / "checkpoints"

    @property
    def data(self) -> Path:
        """Tokenised corpora."""
        return self.path / "data"

    def config(self) -> dict[str, Any]:
        """What the run was started with."""
        try:
            found = json.loads((self.path / CONFIG).read_text("utf-8"))
        except FileNotFoundError:
            raise RegardError(
                f"{self.path}: not a run folder (no {CONFIG}): give the folder of a training run"
            ) from None
        except (OSError, ValueError) as error:
            raise RegardError(f"{self.path / CONFIG}: cannot be read ({error})") from error
        if not isinstance(found, dict) or "task" not in found:
            raise RegardError(f"{self.path / CONFIG}: not the config of a run (no task)")
        return found

    def begin(self, config: dict[str, Any]) -> bool:
        """Make the folder for this config; True if it holds the same run already."""
        if (self.path / CONFIG).exists():
            known = self.config()
            changed = [key for key in config if config[key] != known.get(key)]
            if changed:
                raise RegardError(
                    f"{self.path}: holds another run (its {', '.join(_changes(config, known))} "
                    f"differ): choose another --out, or give the same options to go on"
                )
            return True
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise RegardError(
                f"{self.path}: holds something that is not a run: choose another --out"
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RegardError(f"{self.path}: cannot be made ({error.strerror})") from error
        write_text(self.path / CONFIG, json.dumps(config, indent=1, ensure_ascii=False) + "\n")
        return False

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the folder; a second process that trains in it is an error."""
        with open(self.path / "lock", "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise RegardError(
                    f"{self.path}: another process is training here: wait for it, or choose "
                    f"another --out"
                ) from None
            yield


def _changes(config: dict[str, Any], known: dict[str, Any]) -> list[str]:
    names = []
    for part, value in config.items():
        other = known.get(part)
        if isinstance(value, dict) and isinstance(other, dict):
            names += [key for key in value if value[key] != other.get(key)]
        elif value != other:
            names.append(part)
    return names


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file, make sure that it is on the disk, and put it in place."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=path.name + ".", suffix=".part", dir=path.parent)
        os.close(handle)
        try:
            write(Path(name))
            with open(name, "rb+") as file:
                os.fsync(file.fileno())
            os.replace(name, path)
        finally:
            if os.path.exists(name):
                os.unlink(name)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise RegardError(f"{path}: cannot be written ({error.strerror or error})") from error


def write_text(path: Path, text: str) -> None:
    """A text file that appears whole or not at all."""
    write_whole(path, lambda part: part.write_text(text, "utf-8"))
