"""Many files without worker processes, which take a second to start."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from regard.inference.bulk import many_files
from regard.inference.bulk.shard_worker import ShardWorker


class KilledError(Exception):
    """What ends a command between two shards."""


@contextmanager
def one_worker_here(shards: int | None = None) -> Iterator[None]:
    """Process all shards in this process; the command is killed after so many of them."""

    def process(
        settings: dict[str, Any], jobs: Sequence[dict[str, Any]], workers: int
    ) -> Iterator[dict[str, Any]]:
        worker = ShardWorker(settings)
        for number, job in enumerate(jobs):
            if number == shards:
                raise KilledError
            yield worker(job)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(many_files, "process_locally", process)
        yield
