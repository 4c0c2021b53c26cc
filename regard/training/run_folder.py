"""The run folder: which files it holds, and which process may write there."""

import fcntl
import json
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import IO, Any

from regard.atomic_files import is_partial_file, make_folder, write_text
from regard.errors import RegardError, nearest_name
from regard.examples import PREFIX, example_path, is_example
from regard.training.run_identity import changed_options, unknown_options
from regard.verified_files import MAX_CONFIG, is_plain, read_json

CONFIG, LOCK = "config.json", "lock"
MOST_NAMES = 6
"""Runs of a folder that a message names."""
FORMAT = 4
"""The number of the run format; raised when older runs would be misread without an error.

2: word vectors are scaled by √size in every model, not in transformers only.
3: the option `forget` is called `word_dropout`, the prediction field `cut` is called `truncated`.
4: files of tensors and the prepared data have digests, which are verified.
"""


@dataclass(frozen=True)
class RunFolder:
    """The folder with the config, weights, tokenizers, metrics and state of a run.

    `example:NAME` is a run that comes with the package.
    """

    path: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", example_path(self.path))

    @property
    def model(self) -> Path:
        """The best weights so far."""
        return self.path / "model.safetensors"

    @property
    def metrics(self) -> Path:
        """One line of JSON per validation."""
        return self.path / "metrics.jsonl"

    @property
    def state(self) -> Path:
        """Saved states, from which the run can resume."""
        return self.path / "state"

    @property
    def checkpoints(self) -> Path:
        """Weights that are kept to be averaged at the end."""
        return self.path / "checkpoints"

    @property
    def evaluations(self) -> Path:
        """Metrics on other files, with one line per sentence."""
        return self.path / "evaluations"

    @property
    def faithfulness(self) -> Path:
        """Reports on whether attention is a faithful explanation of predictions."""
        return self.path / "faithfulness"

    @property
    def data(self) -> Path:
        """Tokenizers, labels and tokenized corpora."""
        return self.path / "data"

    @property
    def prepared(self) -> Path:
        """A summary of the data; written last, so that it exists only if all of the data does."""
        return self.data / "prepared.json"

    @property
    def packed(self) -> Path:
        """Exists in a run whose training data or state was left out: it cannot be trained on."""
        return self.path / "packed.json"

    @property
    def has_weights(self) -> bool:
        """Whether the run has a saved state or weights, which must not be lost."""
        return self.model.exists() or any(self.state.glob("*.safetensors"))

    def require_weights(self) -> None:
        """Raise an error unless the run has weights, which its first validation saves."""
        if not self.model.exists():
            raise RegardError(
                f"{self.path}: has no weights yet: `regard train --resume {quote(str(self.path))}` "
                "resumes its training"
            )

    def files(self, pattern: str) -> list[Path]:
        """The regular files in the folder that match a pattern, without links that lead out of it.

        All files that are served are listed here or checked with `contains`.
        """
        return sorted(path for path in self.path.glob(pattern) if self.contains(path))

    def contains(self, path: Path) -> bool:
        """Whether a path leads to a regular file in the folder, also if links are followed."""
        try:
            inside = Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self.path))
            return inside and path.is_file()
        except OSError:
            return False

    def refuse_links_out(self) -> None:
        """Raise an error if a link anywhere in the folder leads out of it."""
        root = os.path.realpath(self.path)
        for parent, folders, files in os.walk(self.path):
            for name in sorted(folders + files):
                path = Path(parent, name)
                if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(root):
                    raise RegardError(
                        f"{path}: is a link that leads out of the run folder, and nothing outside "
                        "it is served or packed: replace it with what it points to"
                    )

    def config(self) -> dict[str, Any]:
        """The options that the run was started with."""
        try:
            config = read_json(self.path / CONFIG, MAX_CONFIG)
        except (FileNotFoundError, NotADirectoryError):
            reason = (
                "no such run folder"
                if not self.path.exists()
                else f"not a run folder (no {CONFIG})"
                if self.path.is_dir()
                else "a file, not a run folder"
            )
            raise RegardError(f"{self.path}: {reason}: {_cure(self.path)}") from None
        if not isinstance(config, dict) or not isinstance(config.get("task"), str):
            raise RegardError(f"{self.path / CONFIG}: not the config of a run (no task)")
        written = config.get("format", 1)
        if written != FORMAT:
            older = isinstance(written, int) and written < FORMAT
            cure = "train it again with another --out" if older else "use the version that wrote it"
            raise RegardError(
                f"{self.path / CONFIG}: written by {'an earlier' if older else 'another'} version "
                f"of Regard in run format {written}; this version supports run format {FORMAT} "
                f"only: {cure}"
            )
        return config

    def write_budget(self, budget: dict[str, int | float | None]) -> None:
        """Change the budget in the config, if it is another one."""
        config = self.config()
        training = config.get("training")
        if isinstance(training, dict) and any(training.get(n) != budget[n] for n in budget):
            config["training"] = training | budget
            write_text(self.path / CONFIG, json.dumps(config, indent=1, ensure_ascii=False))

    @contextmanager
    def begin(
        self, config: dict[str, Any], defaults: Mapping[str, Any] | None = None
    ) -> Iterator[bool]:
        """Lock the folder for the run of this config; yields whether it already holds that run.

        The same run may have another budget, and its config may lack options that were added
        later: these have the values of `defaults`. It is an error if another process holds the lock
        or if the folder contains anything else, which is left as it is. If a new run fails before
        its first update, what it made is removed.

        In distributed training the first process locks the folder. The others wait here until it
        has prepared the data and loaded the saved state (`train` has the other barrier).
        """
        from regard.training.distributed import process_group

        with process_group() as processes:
            if processes.first:
                with self._lock(config, defaults or {}) as resumed:
                    yield resumed
                return
            processes.barrier()
            if not self.prepared.exists():
                raise RegardError(
                    f"{self.path}: holds no data for process {processes.rank}: give all processes "
                    f"the same --out, on a disk that all of them see"
                )
            yield True

    @contextmanager
    def _lock(self, config: dict[str, Any], defaults: Mapping[str, Any]) -> Iterator[bool]:
        try:
            self._refuse_foreign_files()
            if (self.path / CONFIG).exists():
                self._refuse_other_options(config, defaults)  # before anything is written here
            made = self._make_folders()
            file, new = _open_lock(self.path / LOCK)
            made += [self.path / LOCK] if new else []
        except OSError as error:
            raise RegardError(
                f"{self.path}: cannot be created ({error.strerror or error})"
            ) from error
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
            exists = (self.path / CONFIG).exists()
            if exists:
                self._refuse_other_options(config, defaults)
            self._remove_partial_files()
            try:
                if not exists:
                    numbered = json.dumps(
                        {"format": FORMAT, **config}, indent=1, ensure_ascii=False
                    )
                    write_text(self.path / CONFIG, numbered)
                yield exists
            except BaseException:
                # A run that fails before its first update would fail at every attempt to resume
                # it: remove it, so that a corrected command can use the same folder.
                if not exists and not self.has_weights:
                    self._remove_new_run(made)
                raise

    def _make_folders(self) -> list[Path]:
        """Make the run folder and those above it; the ones that did not exist, outermost first."""
        target = Path(os.path.realpath(self.path))
        missing = [path for path in (target, *target.parents) if not path.exists()]
        make_folder(self.path)
        return missing[::-1]

    def _remove_new_run(self, made: list[Path]) -> None:
        """Remove the files of a run that made no update, and the folders that it made."""
        for folder in (self.data, self.state, self.checkpoints, self.path / "tensorboard"):
            shutil.rmtree(folder, ignore_errors=True)
        for name in (CONFIG, self.metrics.name):
            (self.path / name).unlink(missing_ok=True)
        for path in reversed(made):
            with suppress(OSError):
                path.unlink() if path.name == LOCK else path.rmdir()

    def _refuse_foreign_files(self) -> None:
        """Refuse a folder that is not a run, and links through which other files were written."""
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise RegardError(f"{self.path}: is not a folder: choose another --out")
        self.refuse_links()
        if (self.path / CONFIG).exists():
            return
        foreign = [path for path in self.path.iterdir() if not _is_written_before_config(path)]
        if foreign:
            raise RegardError(
                f"{self.path}: contains files that are not a run ({min(foreign).name}): choose "
                "another --out"
            )

    def refuse_links(self, *paths: Path) -> None:
        """Raise an error if one of these paths in the folder (default: any) is a link or a pipe, or
        if the run came with the package.

        Called before the folder is written to, since somebody else may have made it: a link may
        lead to any file. Links in its subfolders need no check: files there are replaced, never
        written to.
        """
        if is_example(self.path):
            raise RegardError(
                f"{self.path}: an example run, and nothing is written into the package: copy it "
                f"with `regard pack {PREFIX}{self.path.name} --to FOLDER`"
            )
        try:
            wrong = [path for path in paths or self.path.iterdir() if not is_plain(path)]
        except OSError as error:
            raise RegardError(f"{self.path}: cannot be read ({error.strerror})") from error
        if wrong:
            raise RegardError(
                f"{min(wrong)}: is a link, a pipe or a device, and nothing is written to these in "
                "a run folder: replace it with a regular file or folder"
            )

    def _refuse_other_options(self, config: dict[str, Any], defaults: Mapping[str, Any]) -> None:
        saved = self.config()
        unknown = unknown_options(saved, config)
        if unknown and saved["task"] == config.get("task"):  # another task has other options
            raise RegardError(f"{self.path / CONFIG}: unknown option {unknown[0]!r}: remove it")
        changed = changed_options(config, saved, defaults)
        if changed:
            raise RegardError(
                f"{self.path}: already contains a different run ({'; '.join(changed)}): choose "
                f"another --out, or give the same options to resume it (epochs, steps and minutes "
                f"may change)"
            )

    def _remove_partial_files(self) -> None:
        """Remove files that a process was writing when it was killed."""
        for folder in (self.path, self.state, self.checkpoints, self.data):
            for path in folder.iterdir() if folder.is_dir() else ():
                if is_partial_file(path):
                    path.unlink(missing_ok=True)


def _cure(path: Path) -> str:
    """What to do about a path that is not a run."""
    if path.suffix == ".zip" and path.is_file():
        return "unpack it, and give the folder that is in it"
    inside = runs_inside(path)
    if len(inside) > 1:
        names = ", ".join(one.name for one in inside[:MOST_NAMES])
        return f"it contains runs: give one of them ({names}{', …' * (len(inside) > MOST_NAMES)})"
    nearest = nearest_run(path)
    cure = f"did you mean {nearest}?" if nearest else "give the folder of a training run"
    return f"{cure} (data files come after --data)" if path.is_file() else cure


def runs_inside(path: Path) -> list[Path]:
    """The runs right inside a folder."""
    with suppress(OSError):
        return [child for child in sorted(path.iterdir()) if (child / CONFIG).is_file()]
    return []


def nearest_run(path: Path) -> Path | None:
    """A run whose name is similar to that of a folder which is none; beside it or in runs/."""
    if len(inside := runs_inside(path)) == 1:
        return inside[0]
    candidates: dict[str, Path] = {}
    for folder in (Path("runs"), path.parent):
        candidates |= {run.name: run for run in runs_inside(folder)}
    name = nearest_name(path.name, candidates)
    return candidates[name] if name is not None else None


def _is_written_before_config(path: Path) -> bool:
    """Whether a file is one that a run writes before its config is complete."""
    if path.name == LOCK:
        status = path.lstat()
        return stat.S_ISREG(status.st_mode) and status.st_size == 0
    return path.name.startswith(CONFIG) and is_partial_file(path)


def _open_lock(path: Path) -> tuple[IO[bytes], bool]:
    """Open the lock of a run without changing its content; whether it was made here."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor, new = os.open(path, flags | os.O_EXCL, 0o666), True
    except FileExistsError:
        descriptor, new = os.open(path, flags, 0o666), False
    file = os.fdopen(descriptor, "rb+", buffering=0)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise RegardError(f"{path}: is not a regular file: choose another --out")
    return file, new
