"""Batches that several processes share out: each computes some of them, and all get all results.

Whether there are several processes is known to training alone, which says so with `share_batches`;
everywhere else, the batches are computed one after the other. A batch is computed as a whole by one
process, so that results are those of a single process, bit for bit.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar, runtime_checkable

from regard.progress import track

B = TypeVar("B")
R = TypeVar("R")


@runtime_checkable
class Share(Protocol):
    """This process among those that share."""

    @property
    def rank(self) -> int:
        """Its number, from 0."""
        ...

    @property
    def world(self) -> int:
        """How many there are."""
        ...

    def exchange(self, value: Any) -> list[Any]:
        """The values of all processes, plain for JSON, in all of them."""
        ...


_SHARE: ContextVar[Share | None] = ContextVar("share", default=None)


@contextmanager
def share_batches(share: Share) -> Iterator[None]:
    """Let the processes share out the batches of `map_batches`; all of them must call it."""
    token = _SHARE.set(share)
    try:
        yield
    finally:
        _SHARE.reset(token)


def map_batches(
    batches: Sequence[B],
    compute: Callable[[B], R],
    label: str,
    *,
    unit: str,
    total: int | None = None,
    weight: Callable[[B], int] | None = None,
    encode: Callable[[R], Any] = lambda result: result,
    decode: Callable[[Any], R] = lambda value: value,
) -> Iterator[tuple[B, R]]:
    """The batches in their order, each with its result.

    Args:
        batches: what is computed as a whole.
        compute: from a batch to its result.
        label: what is done, for progress bars.
        unit: what is counted there.
        total: how many units there are.
        weight: the units of a batch.
        encode: from a result to plain values for JSON, to be sent to other processes.
        decode: the other way.
    """
    share = _SHARE.get()
    if share is None:
        for batch in track(batches, label, total, unit, weight):
            yield batch, compute(batch)
        return
    own: list[Any] = []
    error: Exception | None = None
    token = _SHARE.set(None)  # what a batch consists of is not shared out once more
    try:
        for batch in track(batches[share.rank :: share.world], label, total, unit, weight):
            own.append(encode(compute(batch)))
    except Exception as problem:  # the other processes wait for this one
        error = problem
    finally:
        _SHARE.reset(token)
    parts = share.exchange({"results": own, "error": None if error is None else str(error)})
    if error is not None:
        raise error
    for part in parts:
        if part["error"] is not None:
            raise RuntimeError(f"another process could not compute its part: {part['error']}")
    for number, batch in enumerate(batches):
        yield batch, decode(parts[number % share.world]["results"][number // share.world])
