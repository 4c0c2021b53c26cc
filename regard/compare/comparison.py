"""Train a grid of systems under an equal budget, and test which of them differ."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from itertools import count
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from regard.compare.cell_budget import RESERVED, Budget, parse_budget
from regard.compare.comparison_folder import ComparisonFolder
from regard.compare.comparison_report import write_reports
from regard.compare.comparison_result import ComparisonResult, make_result
from regard.compare.equal_parameters import make_equal
from regard.compare.grid import Cell, Grid, System, make_cells, make_grid
from regard.compare.held_out_data import hold_out_test
from regard.compare.local_jobs import Finished, run_locally, unfinished
from regard.compare.prepared_systems import estimate_seconds
from regard.compare.ray_jobs import run_on_ray
from regard.data import resolve
from regard.data.corpus import fingerprint
from regard.devices import AUTO, resolve_device
from regard.errors import OptionError
from regard.number_format import format_value
from regard.ray_cluster import import_ray
from regard.tasks.registry import TASKS, TaskSpec

Log = Callable[[str], None]
Files = str | PathLike[str] | Sequence[str | PathLike[str]]


def compare(
    task: str,
    data: Files | None = None,
    *,
    vary: Mapping[str, Sequence[Any]],
    seeds: int = 3,
    budget: str | None = None,
    equal: Literal["parameters"] | None = None,
    test: Files | None = None,
    out: str | PathLike[str] | None = None,
    jobs: int | None = None,
    on: Literal["processes", "ray"] = "processes",
    ray_address: str | None = None,
    device: str = AUTO,
    log: Log = lambda line: None,
    run_cells: Callable[[ComparisonFolder, Sequence[Cell], Finished], None] | None = None,
    **options: Any,
) -> ComparisonResult:
    """Train every combination of the varied options with several seeds, and compare them.

    The same call with the same `out` resumes a comparison that was interrupted.

    Args:
        task: name of a task, as in `train`.
        data: training data (default: the built-in corpus).
        vary: for each varied option its values.
        seeds: number of seeds of each system.
        budget: of each training: "5m", "epochs=3", "steps=1000" or "tokens=1000000" (default: the
            default number of epochs of the task).
        equal: "parameters" chooses widths that give all systems the same size, within 1 %.
        test: test data (default: a tenth of the data, or the built-in test split).
        out: folder of the comparison (default: comparisons/TASK-DATE-NUMBER).
        jobs: number of training runs in parallel (default: one per processor core).
        on: where the trainings run.
        ray_address: of a Ray cluster (default: a Ray of this machine).
        device: where the trainings compute, as in `train`.
        log: called with lines for the user.
        run_cells: trains the cells in another way.
        options: further options of all systems, as in `train`.
    """
    spec, allowed = TASKS.row(task), parse_budget(budget)
    if seeds < 1:
        raise OptionError("seeds", f"expected 1 or more, got {seeds}")
    if on == "ray":
        import_ray()
    else:
        resolve_device(device)  # refuses before any work
    given = {**options, **({} if data is None else {"data": _names(data)})}
    for name, reason in RESERVED.items():
        if name in given:
            raise OptionError(name, f"does not apply to comparisons: {reason}")
    make_cells(make_grid(spec, given, vary, allowed).systems, seeds)  # refuses before any work
    folder = ComparisonFolder(Path(out) if out is not None else _next_folder(task))
    tests = None if test is None else _names(test)
    plan = _plan(task, given, vary, budget, equal, tests)
    with folder.hold():
        resumed = folder.begin({**plan, "seeds": seeds})
        grid = _make_systems(spec, given, vary, allowed, tests, equal, device, folder, log)
        cells = make_cells(grid.systems, seeds)
        missing = list(unfinished(folder, cells))
        if resumed:
            log(f"{folder.path}: {len(cells) - len(missing)} of {len(cells)} trainings are done")
        jobs = min(jobs or _cores(), max(1, len(missing)))
        _announce(spec, grid, missing, allowed, jobs, folder, log)
        finished = _reporter(len(cells), len(cells) - len(missing), log)
        if run_cells is not None:
            run_cells(folder, missing, finished)
        elif on == "ray":
            run_on_ray(folder, missing, ray_address, finished)
        else:
            run_locally(folder, missing, jobs, finished)
        result = _result(task, grid, cells, allowed, folder)
        write_reports(result, folder.path)
    return result


def _make_systems(
    spec: TaskSpec,
    given: Mapping[str, Any],
    vary: Mapping[str, Sequence[Any]],
    budget: Budget,
    tests: list[str] | None,
    equal: str | None,
    device: str,
    folder: ComparisonFolder,
    log: Log,
) -> Grid:
    """The systems with the data that they are trained on; writes what the workers need."""
    fixed, held_out = hold_out_test(spec, given, tests, folder, log)
    grid = make_grid(spec, fixed, vary, budget)
    if equal is not None:
        grid = replace(grid, systems=make_equal(spec, grid.systems, folder))
        for system in grid.systems:
            sizes = [name for name in ("width", "feed_forward") if system.options.get(name)]
            chosen = ", ".join(f"--{n.replace('_', '-')} {system.options[n]}" for n in sizes)
            log(f"equal parameters: {system.label}: {chosen}")
    for cell in make_cells(grid.systems, folder.read(folder.plan)["seeds"]):
        job = {"task": spec.name, "label": cell.label, "test": held_out, "device": device}
        options = {**cell.system.options, "seed": cell.seed}
        folder.write(folder.job(cell.name), {**job, "options": options})
    return grid


def _plan(
    task: str,
    given: Mapping[str, Any],
    vary: Mapping[str, Sequence[Any]],
    budget: str | None,
    equal: str | None,
    tests: list[str] | None,
) -> dict[str, Any]:
    files = [*given.get("data", []), *_names(given.get("valid") or []), *(tests or [])]
    return {
        "task": task,
        "options": dict(given),
        "vary": {name: list(values) for name, values in vary.items()},
        "budget": budget,
        "equal": equal,
        "test": tests,
        "files": fingerprint(resolve(files)) if files else None,
    }


def _announce(
    spec: TaskSpec,
    grid: Grid,
    missing: Sequence[Cell],
    budget: Budget,
    jobs: int,
    folder: ComparisonFolder,
    log: Log,
) -> None:
    """Say what will be trained, and how long that takes at most."""
    for label, reason in grid.impossible.items():
        log(f"not possible: {label}: {reason}")
    if not missing:
        return
    minutes = budget.minutes
    seconds = estimate_seconds(spec, grid.systems, folder) if minutes is None else 60 * minutes
    systems = len({cell.system.slug for cell in missing})
    rounds = -(-len(missing) // jobs)
    time = "" if seconds is None else f", about {_duration(seconds * rounds)} of training"
    log(f"{len(missing)} trainings of {systems} systems, {jobs} at a time{time}")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def _reporter(total: int, done: int, log: Log) -> Finished:
    finished = [done]

    def report(cell: Cell, record: Mapping[str, Any]) -> None:
        finished[0] += 1
        if "error" in record:
            log(f"[{finished[0]}/{total}] {cell.label}: failed: {record['error']}")
            return
        metric = record["metric"]
        value = float("nan") if metric["value"] is None else metric["value"]
        shown = f"{metric['name']} {format_value(value, metric['unit'])}"
        log(f"[{finished[0]}/{total}] {cell.label}: {shown} ({record['seconds']:.0f} s)")

    return report


def _result(
    task: str, grid: Grid, cells: Sequence[Cell], budget: Budget, folder: ComparisonFolder
) -> ComparisonResult:
    records: dict[str, list[Mapping[str, Any]]] = {system.label: [] for system in grid.systems}
    for cell in cells:
        record = folder.result(cell.name)
        if record is not None:
            records[cell.system.label].append(record)
    return make_result(
        records, task=task, budget=str(budget), impossible=grid.impossible, folder=folder.path
    )


def _names(files: Files) -> list[str]:
    given = [files] if isinstance(files, str | PathLike) else files
    return [os.fspath(name) for name in given]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _next_folder(task: str) -> Path:
    for number in count(1):
        path = Path("comparisons") / f"{task}-{date.today().isoformat()}-{number}"
        if not path.exists():
            return path
    raise AssertionError  # count never ends


__all__ = ["System", "compare"]
