"""Start a training run in a folder, or resume it."""

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields
from datetime import date
from itertools import count
from os import PathLike
from pathlib import Path
from typing import Any

from regard.data import DataReport, hold_examples, resolve
from regard.data.corpus import fingerprint
from regard.devices import AUTO
from regard.errors import RegardError, refuse_empty
from regard.options import check_names, make
from regard.tasks.registry import TASKS, TaskSpec
from regard.tasks.shared.splits import with_corpora
from regard.tasks.shared.vector_inputs import load_size
from regard.training.config import TrainingConfig
from regard.training.distributed import current, local_device
from regard.training.loop import Progress, train
from regard.training.prepared_data import read_prepared, verify_prepared, write_prepared
from regard.training.run_folder import RunFolder
from regard.training.run_identity import FILE_OPTIONS
from regard.training.state import Position
from regard.training.stored_runs.data_cache import DataCache, cache_key, default_cache
from regard.training.stored_runs.model_card import write_card

RARE = 200_000
"""How many new objects there are between two garbage collections while data is prepared."""
EXAMPLES = ("data", "valid")
"""Options whose values may be examples in memory."""


def make_configs(spec: TaskSpec, given: Mapping[str, Any]) -> tuple[Any, Any, TrainingConfig]:
    """Data, model and training options of a task, checked; `given` has some of them by name."""
    check_names(given, (spec.data, spec.model, TrainingConfig), spec.name)
    defaults = dict(spec.training_defaults)
    for name, others in spec.defaults_with.items():
        if given.get(name) is not None:
            defaults |= others
    if given.get("steps") is not None or given.get("minutes") is not None:
        defaults["epochs"] = None
    if given.get("batch_tokens") is not None:
        defaults["min_batches"] = 1
    options = {**defaults, **given}
    data: Any = make(spec.data, options)
    model: Any = make(spec.model, options)
    spec.check(data, model)
    return data, model, make(TrainingConfig, options)


def earlier_options(spec: TaskSpec) -> dict[str, Any]:
    """The values that data and model options have in runs that were made before there were any."""
    return {field.name: field.default for part in (spec.data, spec.model) for field in fields(part)}


def train_run(
    task: str,
    options: Mapping[str, Any],
    out: str | PathLike[str] | None = None,
    *,
    report: Callable[[Progress], None] = lambda progress: None,
    log: Callable[[str], None] = lambda line: None,
    stop: Callable[[], bool] = lambda: False,
    device: str = AUTO,
    data_cache: Path | bool = True,
) -> tuple[RunFolder, Position]:
    """Train in a run folder, or resume the run that it holds.

    Args:
        task: the name of a task.
        options: data, model and training options by name; `data` and `valid` are file names, or
            examples in memory as `hold_examples` takes them.
        out: the run folder (default: runs/TASK-DATE-NUMBER).
        report: called after every update.
        log: called with lines for the user.
        stop: asked after every update; once it is true, the state is saved and training stops.
        device: where to compute, which is no part of the run: it may resume on another device.
        data_cache: the folder of data that earlier runs prepared; True for the user's cache folder,
            False for none.
    """
    spec, where = TASKS.row(task), local_device(device)
    for name in EXAMPLES:
        refuse_empty(options.get(name), name)
    held = {name: hold_examples(options[name], name) for name in EXAMPLES if name in options}
    data, model, training = make_configs(spec, {**options, **held})
    folder = RunFolder(Path(out) if out is not None else next_folder(task))
    parts = {"data": asdict(data), "model": asdict(model), "training": asdict(training)}
    defaults = dict(zip(parts, map(asdict, make_configs(spec, earlier_options(spec))), strict=True))
    if folder.packed.exists():
        raise RegardError(
            f"{folder.path}: was packed, pruned or imported, without what training needs: choose "
            "another --out to train a new run"
        )
    with folder.begin({"task": task, **parts}, defaults) as resumed:
        if resumed:
            log(f"resuming the run in {folder.path}")
        _prepare(spec, data, folder, training.seed, log, data_cache)
        prepared = spec.load(data, model, folder.data)
        if spec.generated is None:
            prepared = with_corpora(prepared, folder.data)
        position = train(
            prepared, training, folder, report=report, log=log, stop=stop, device=where
        )
        if position.done and current().first:
            write_card(folder)
        return folder, position


def _prepare(
    spec: TaskSpec,
    data: Any,
    folder: RunFolder,
    seed: int,
    log: Callable[[str], None],
    data_cache: Path | bool,
) -> None:
    """Read the data into the folder, unless that is done; log what was read."""
    files = _fingerprint(data)
    if folder.prepared.exists() and (not current().first or _is_ready(folder, files, log)):
        return
    try:
        folder.prepared.unlink(missing_ok=True)
        folder.data.mkdir(exist_ok=True)
        report = _prepare_or_restore(spec, data, folder, seed, log, data_cache)
    except OSError as error:
        raise RegardError(f"{folder.data}: {error.strerror or error}") from error
    write_prepared(folder, report.as_dict(), files)
    for line in str(report).splitlines():
        log(line)


def _prepare_or_restore(
    spec: TaskSpec,
    data: Any,
    folder: RunFolder,
    seed: int,
    log: Callable[[str], None],
    data_cache: Path | bool,
) -> DataReport:
    """Prepare the data, or take what an earlier run prepared from the same files."""
    place = default_cache() if data_cache is True else data_cache
    key = cache_key(spec, data, seed) if place else None
    if not place or key is None:
        with _rare_garbage_collection():
            return spec.prepare(data, folder.data, seed)
    cache, before = DataCache(Path(place)), _fingerprint(data)
    try:
        restored = cache.restore(key[0], folder.data)
        if restored is not None:
            log(f"prepared data reused from {cache.folder}")
            return restored
    except (OSError, RegardError) as error:
        log(f"the prepared data of other runs cannot be used: {error}")
    with _rare_garbage_collection():
        report = spec.prepare(data, folder.data, seed)
    if load_size(folder.data) is None and before == _fingerprint(data):
        try:
            cache.store(*key, folder.data, report, keep=folder.prepared.name)
        except (OSError, RegardError) as error:
            log(f"the prepared data is not cached: {error}")
    return report


@contextmanager
def _rare_garbage_collection() -> Iterator[None]:
    """Around work that makes many objects without cycles: to look for them takes a fifth of it."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], RARE) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _is_ready(folder: RunFolder, files: str | None, log: Callable[[str], None]) -> bool:
    """Whether the prepared data can be used; if not, it must be read again.

    As long as the run has no weights, nothing is lost by reading damaged or changed data again.
    Later damaged data is an error, and changed data files are only reported.
    """
    try:
        prepared = read_prepared(folder)
        verify_prepared(folder, prepared, corpora=True)
    except RegardError as error:
        if folder.has_weights:
            raise
        log(f"{error}; no update was made yet, so the data is read again")
        return False
    if files is None or prepared.files in (None, files):
        return True
    if folder.has_weights:
        log("the data files have changed: the run continues with the data that it has read")
    return folder.has_weights


def _fingerprint(data: Any) -> str | None:
    """A value that changes with the data files; None if a file is gone."""
    named = [getattr(data, name, None) for name in FILE_OPTIONS]
    try:
        return fingerprint(source for names in named if names for source in resolve(names))
    except RegardError:
        return None


def next_folder(task: str) -> Path:
    """A run folder that does not exist yet."""
    for number in count(1):
        path = Path("runs") / f"{task}-{date.today().isoformat()}-{number}"
        if not path.exists():
            return path
    raise AssertionError  # count never ends
