"""Connecting to a Ray cluster, or starting Ray on this machine."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from regard.errors import RegardError


def import_ray() -> Any:
    """The package ray, or an error that says how to install it."""
    try:
        import ray
    except ImportError:
        raise RegardError("--on ray needs the package ray: pip install 'regard[ray]'") from None
    return ray


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Ray, connected to a cluster; without an address, a Ray of this machine."""
    ray = import_ray()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray would report its use otherwise
    try:
        ray.init(
            address=address,
            ignore_reinit_error=True,
            log_to_driver=False,
            logging_level=logging.WARNING,
        )
    except Exception as error:
        raise RegardError(f"Ray cannot be reached: {' '.join(str(error).split())}") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def cluster_cpus() -> float:
    """How many CPUs the cluster has; an error if it has none."""
    cpus = float(import_ray().cluster_resources().get("CPU", 0))
    if not cpus:
        raise RegardError("the Ray cluster has no CPUs now: start its workers, then try again")
    return cpus
