"""Shards on a Ray cluster: Ray Data maps them over actors that hold the model.

The rows of the data set are shards, not lines. Ray Data neither keeps the lines of a file together
nor writes one output per input; where its rows are shards, each actor reads its lines from the file
and writes one part, and order comes from the shards' places. Ray Data gives what is hard: a pool of
actors over all machines, which are restarted when they die and whose work is repeated.
"""

import logging
from collections.abc import Iterator, Sequence
from typing import Any

from regard.errors import RegardError
from regard.inference.bulk.shard_worker import ShardWorker
from regard.ray_cluster import cluster_cpus, connected, import_ray

SHARE = 0.9
"""Of the CPUs that the actors take together; Ray keeps some for itself."""


class ShardActor:
    """A worker as Ray Data calls it."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._worker = ShardWorker(settings)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Process one shard; a mistake in the data is an answer, not an error to retry."""
        try:
            return {"failed": "", **self._worker(row["job"])}
        except RegardError as error:
            nothing = {"number": row["job"]["number"], "lines": 0, "seconds": 0.0}
            return {"failed": str(error), **nothing}


def process_on_ray(
    settings: dict[str, Any],
    jobs: Sequence[dict[str, Any]],
    workers: int | None,
    address: str | None,
) -> Iterator[dict[str, Any]]:
    """The answers to all jobs, in the order in which they are done.

    The default number of workers is one per CPU of the cluster. Their share of a CPU is such that
    all of them fit: Ray would wait for ever for more than there is.
    """
    ray = import_ray()
    with connected(address):
        cpus = cluster_cpus()
        actors = min(workers or max(1, int(cpus)), len(jobs))
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = context.print_on_execution_start = False
        logging.getLogger("ray.data").setLevel(logging.ERROR)  # it reports that there are no bars
        context.execution_options.preserve_order = False
        shards = ray.data.from_items(
            [{"job": job} for job in jobs], override_num_blocks=len(jobs)
        ).map(
            ShardActor,
            fn_constructor_args=(settings,),
            compute=ray.data.ActorPoolStrategy(size=actors),
            num_cpus=min(1.0, SHARE * cpus / actors),
        )
        try:
            for answer in shards.iter_rows():
                if answer["failed"]:
                    raise RegardError(answer["failed"])
                yield answer
        except ray.exceptions.RayError as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise RegardError(f"Ray: {lines[-1] if lines else error}") from error
