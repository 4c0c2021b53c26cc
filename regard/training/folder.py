"""The folder of a run: what it holds, and who may write there."""

import fcntl
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.files import PART, write_text, write_whole
from regard.training.config import BUDGET
from regard.training.processes import met

__all__ = ["RunFolder", "write_text", "write_whole"]

CONFIG, LOCK = "config.json", "lock"
FORMAT = 2
"""The layout of runs, to be raised when older weights would be misread without an error.

2: vectors of words are scaled by √size in every model; before, in transformers alone.
"""


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
    def evaluations(self) -> Path:
        """What was measured on other files, with a line a sentence."""
        return self.path / "evaluations"

    @property
    def faithfulness(self) -> Path:
        """Reports on whether its attention names the words that matter."""
        return self.path / "faithfulness"

    @property
    def data(self) -> Path:
        """Tokenizers, labels and tokenised corpora."""
        return self.path / "data"

    @property
    def prepared(self) -> Path:
        """What was read, in words; there as soon as all of the data is."""
        return self.data / "prepared.json"

    @property
    def learnt(self) -> bool:
        """Whether there is anything to lose: a saved state, or weights."""
        return self.model.exists() or any(self.state.glob("*.safetensors"))

    def fingerprint(self) -> str | None:
        """What the files of the data were known by when they were read; None if that is unknown."""
        try:
            found = json.loads(self.prepared.read_text("utf-8"))["files"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return found if isinstance(found, str) else None

    def config(self) -> dict[str, Any]:
        """What the run was started with."""
        try:
            found = json.loads((self.path / CONFIG).read_text("utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            raise RegardError(
                f"{self.path}: not a run folder (no {CONFIG}): give the folder of a training run"
            ) from None
        except (OSError, ValueError) as error:
            raise RegardError(f"{self.path / CONFIG}: cannot be read ({error})") from error
        if not isinstance(found, dict) or "task" not in found:
            raise RegardError(f"{self.path / CONFIG}: not the config of a run (no task)")
        written = found.get("format", 1)
        if written != FORMAT:
            older = isinstance(written, int) and written < FORMAT
            cure = "train it again with another --out" if older else "use the version that wrote it"
            raise RegardError(
                f"{self.path / CONFIG}: written by {'an earlier' if older else 'another'} version "
                f"of Regard, in layout {written}; this version reads layout {FORMAT} and would "
                f"misread its weights: {cure}"
            )
        return found

    def keep_budget(self, budget: dict[str, int | float | None]) -> None:
        """Write down that the run goes on with another budget."""
        config = self.config()
        known = config.get("training")
        if isinstance(known, dict) and any(known.get(name) != budget[name] for name in budget):
            config["training"] = known | budget
            write_text(self.path / CONFIG, json.dumps(config, indent=1, ensure_ascii=False))

    @contextmanager
    def begin(
        self, config: dict[str, Any], defaults: Mapping[str, Any] | None = None
    ) -> Iterator[bool]:
        """Hold the folder for the run of this config; True if it holds the same run already.

        The same run may have another budget, and its config may lack options that came later:
        these had the values of `defaults`.
        A second process that comes meanwhile gets an error, and so does anybody whose folder holds
        something else, which is left as it is. Of several processes that torchrun started together
        the first holds the folder; the others wait here until it comes to train.
        """
        with met() as processes:
            if processes.first:
                with self._held(config, defaults or {}) as known:
                    yield known
                return
            processes.meet()
            if not self.prepared.exists():
                raise RegardError(
                    f"{self.path}: holds no data for process {processes.rank}: give all processes "
                    f"the same --out, on a disk that all of them see"
                )
            yield True

    @contextmanager
    def _held(self, config: dict[str, Any], defaults: Mapping[str, Any]) -> Iterator[bool]:
        try:
            self._not_foreign()
            self.path.mkdir(parents=True, exist_ok=True)
            file = open(self.path / LOCK, "w")  # noqa: SIM115
        except OSError as error:
            raise RegardError(f"{self.path}: cannot be made ({error.strerror or error})") from error
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RegardError(
                    f"{self.path}: another process is training here: wait for it, or choose "
                    f"another --out"
                ) from None
            except OSError as error:
                raise RegardError(f"{self.path}: cannot be locked ({error.strerror})") from error
            known = (self.path / CONFIG).exists()
            if known:
                self._same(config, defaults)
            self._sweep()
            if not known:
                whole = {"format": FORMAT, **config}
                write_text(self.path / CONFIG, json.dumps(whole, indent=1, ensure_ascii=False))
            yield known

    def abandon(self) -> None:
        """Take back all that a run made which learnt nothing."""
        for folder in (self.data, self.state, self.checkpoints, self.path / "tensorboard"):
            shutil.rmtree(folder, ignore_errors=True)
        for name in (CONFIG, LOCK, self.metrics.name):
            (self.path / name).unlink(missing_ok=True)
        with suppress(OSError):
            self.path.rmdir()

    def _not_foreign(self) -> None:
        if not self.path.exists() or (self.path / CONFIG).exists():
            return
        if not self.path.is_dir() or any(not _begun(path) for path in self.path.iterdir()):
            raise RegardError(
                f"{self.path}: holds something that is not a run: choose another --out"
            )

    def _same(self, config: dict[str, Any], defaults: Mapping[str, Any]) -> None:
        changed = _changes(config, self.config(), defaults)
        if changed:
            raise RegardError(
                f"{self.path}: holds another run ({'; '.join(changed)}): choose another --out, or "
                f"give the same options to go on (epochs, steps and minutes may change)"
            )

    def _sweep(self) -> None:
        """Remove what a process that was killed had begun to write."""
        for folder in (self.path, self.state, self.checkpoints, self.data):
            for path in folder.glob(f"*{PART}"):
                path.unlink(missing_ok=True)


def _begun(path: Path) -> bool:
    """Whether a file is one that a run makes before its config."""
    return path.name == LOCK or (path.name.startswith(CONFIG) and path.name.endswith(PART))


def _changes(
    config: dict[str, Any], known: dict[str, Any], defaults: Mapping[str, Any]
) -> list[str]:
    """Each option that differs, with both values; the budget aside.

    >>> _changes({"training": {"seed": 1}}, {"training": {"seed": 2}}, {})
    ['its seed is 2, not 1']
    >>> _changes({"training": {"seed": 1}}, {"training": {}}, {"training": {"seed": 1}})
    []
    """
    own, theirs = _flat(config), _flat(defaults) | _flat(known)
    return [
        f"its {name} is {theirs.get(name)}, not {value}"
        for name, value in own.items()
        if name not in BUDGET and theirs.get(name) != value
    ]


def _flat(whole: Mapping[str, Any]) -> dict[str, Any]:
    """Options by name alone."""
    flat: dict[str, Any] = {}
    for name, value in whole.items():
        flat |= value if isinstance(value, dict) else {name: value}
    return flat
