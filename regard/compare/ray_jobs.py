"""The trainings of a comparison on a Ray cluster.

Ray finds a machine with a free core for each training and repeats one whose machine or worker
died. All machines need Regard and see the comparison's folder and the data under the same paths.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.compare.comparison_folder import ComparisonFolder
from regard.compare.grid import Cell
from regard.compare.local_jobs import Finished, collect, start_worker
from regard.errors import RegardError
from regard.ray_cluster import connected

RETRIES = 3
"""How often Ray repeats a training whose worker died."""


def run_on_ray(
    folder: ComparisonFolder, cells: Sequence[Cell], address: str | None, finished: Finished
) -> None:
    """Train all cells on a Ray cluster; without an address, on a Ray of this machine."""
    with connected(address) as ray:
        train = ray.remote(num_cpus=1, max_retries=RETRIES)(train_cell)
        path = str(Path(os.path.realpath(folder.path)))
        pending = {train.remote(path, cell.name, cell.label): cell for cell in cells}
        try:
            while pending:
                for reference in ray.wait(list(pending))[0]:
                    cell = pending.pop(reference)
                    finished(cell, _get(ray, reference, folder, cell))
        finally:
            for reference in pending:
                ray.cancel(reference, force=True)


def train_cell(path: str, name: str, label: str) -> dict[str, Any]:
    """What a machine of the cluster does: the same worker process as on one machine."""
    folder = ComparisonFolder(Path(path))
    if not folder.plan.exists():
        raise RegardError(f"{path}: not on this machine: choose an --out that all machines share")
    process = start_worker(folder, name)
    try:
        return collect(folder, name, label, process.wait())
    finally:
        if process.poll() is None:
            process.terminate()


def _get(ray: Any, reference: Any, folder: ComparisonFolder, cell: Cell) -> dict[str, Any]:
    try:
        record: dict[str, Any] = ray.get(reference)
    except ray.exceptions.RayError as error:
        from regard.compare.comparison_folder import failure

        record = failure(cell.label, " ".join(str(error).split())[-300:])
        folder.write(folder.record(cell.name), record)
    return record
