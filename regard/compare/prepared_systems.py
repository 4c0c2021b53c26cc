"""Systems before they are trained: their number of parameters, and how long an update takes."""

import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from regard.atomic_files import make_folder
from regard.compare.comparison_folder import ComparisonFolder
from regard.compare.grid import System
from regard.tasks.registry import TaskSpec
from regard.tasks.shared.splits import with_corpora
from regard.tasks.task import Task
from regard.training.budget import batch_tokens, total_steps
from regard.training.run import make_configs
from regard.verified_files import json_digest

MAX_TIMED = 8
"""Systems whose updates are timed for the estimate; the others are taken to be like them."""
MAX_TIMED_UPDATES = 4


def load_task(
    spec: TaskSpec, options: Mapping[str, Any], folder: ComparisonFolder, *, corpora: bool = False
) -> Task[Any]:
    """The task of a system; its data is prepared once for all systems with the same options."""
    data, model, _ = make_configs(spec, options)
    place: Path = folder.prepared / json_digest(repr(data))[:12]
    if not folder.is_intact(place):
        shutil.rmtree(place, ignore_errors=True)
        make_folder(place)
        spec.prepare(data, place, 1)
        folder.seal(place)
    task = spec.load(data, model, place)
    return with_corpora(task, place) if corpora and spec.generated is None else task


def count_parameters(spec: TaskSpec, options: Mapping[str, Any], folder: ComparisonFolder) -> int:
    """The number of parameters that a system with these options has."""
    task = load_task(spec, options, folder)
    try:
        with torch.device("meta"):  # shapes without memory
            model = task.build()
    except (NotImplementedError, RuntimeError):  # a part that needs values, such as given vectors
        model = task.build()
    return sum(parameter.numel() for parameter in model.parameters())


def estimate_seconds(
    spec: TaskSpec, systems: tuple[System, ...], folder: ComparisonFolder
) -> float | None:
    """The mean time of a training, from a few updates of some systems; None if it is unknown."""
    step = -(-len(systems) // MAX_TIMED)
    times = [_time(spec, system, folder) for system in systems[::step]]
    known = [seconds for seconds in times if seconds is not None]
    return sum(known) / len(known) if known else None


def _time(spec: TaskSpec, system: System, folder: ComparisonFolder) -> float | None:
    _, _, training = make_configs(spec, system.options)
    task = load_task(spec, system.options, folder, corpora=True)
    with torch.random.fork_rng(devices=[]):
        model = task.build()
        plan = task.plan(batch_tokens(training, task.plan), training.seed, 0)
        total = total_steps(training, len(plan))
        if total is None or not plan:
            return None
        middle = plan[len(plan) // 2 :][:MAX_TIMED_UPDATES] or plan[:1]
        for number, examples in enumerate(middle):
            if number == 1 or len(middle) == 1:
                started = time.monotonic()  # the first update is slower than those that follow
            batch = task.batch(examples)
            loss, _ = task.loss(model, batch, 0.0, [])
            (loss.total / max(1, task.count(batch))).backward()
    per_update = (time.monotonic() - started) / max(1, len(middle) - 1)
    return per_update * total * training.accumulate
