"""Several processes that train one model: each computes a part of every batch.

All plan the same global batches. A loss is divided by the count of the whole batch and gradients
are summed (torch's DistributedDataParallel), so that an update is that of one process, whatever
their number.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from regard.errors import RegardError

NAMES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""What torchrun tells each process."""
PATIENCE = timedelta(hours=12)
"""How long one waits for another, which may be preparing data; one that is gone is noticed."""


@dataclass(frozen=True)
class Processes:
    """This process among all that train the model."""

    rank: int = 0
    world: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the one that prepares, measures and writes."""
        return self.rank == 0

    @property
    def several(self) -> bool:
        """Whether there are others."""
        return self.world > 1

    def meet(self) -> None:
        """Wait until all are here."""
        if self.several:
            dist.barrier()

    def summed(self, numbers: Sequence[float]) -> list[float]:
        """Each number summed over the processes."""
        if not self.several:
            return list(numbers)
        held = torch.tensor(numbers, dtype=torch.float64)
        dist.all_reduce(held)
        return [float(number) for number in held]

    def any(self, found: bool) -> bool:
        """Whether any of them found it so."""
        return self.summed([float(found)])[0] > 0

    def told(self, value: Any) -> Any:
        """What the first one says (anything JSON holds), in all of them."""
        if not self.several:
            return value
        text = json.dumps(value).encode() if self.first else b""
        size = torch.tensor([len(text)])
        dist.broadcast(size, 0)
        held = torch.zeros(int(size), dtype=torch.uint8)
        if self.first:
            held = torch.frombuffer(bytearray(text), dtype=torch.uint8)
        dist.broadcast(held, 0)
        return json.loads(held.numpy().tobytes())

    def gathered(self, tensor: Tensor) -> list[Tensor]:
        """The tensors of all, which have one shape."""
        if not self.several:
            return [tensor]
        sent = tensor.contiguous()
        if tensor.dtype == torch.bfloat16:
            sent = sent.view(torch.int16)  # not every backend knows bfloat16
        held = [torch.empty_like(sent) for _ in range(self.world)]
        dist.all_gather(held, sent)
        return [part.view(tensor.dtype) for part in held]

    def share(self, batch: Any) -> tuple[Any, bool]:
        """The rows of a batch that are this process's own.

        Where there are fewer rows than processes, those without one get the first row and False:
        they compute along, and it must count for nothing.
        """
        if not self.several:
            return batch, True
        own = self.rank < rows(batch)
        return _taken(batch, slice(self.rank, None, self.world) if own else slice(0, 1)), own

    def joined_rows(self, part: Tensor, total: int) -> Tensor:
        """The `total` rows of a tensor whose rows were shared out."""
        if not self.several:
            return part
        most = -(-total // self.world)
        filled = part.new_zeros(most, *part.shape[1:])
        filled[: len(part)] = part[:most]
        return torch.stack(self.gathered(filled), 1).flatten(0, 1)[:total]


def rows(batch: Any) -> int:
    """How many rows a batch has: the length of its first tensor."""
    return len(batch if isinstance(batch, Tensor) else batch[0])


def _taken(batch: Any, chosen: slice) -> Any:
    """The chosen rows of every tensor of a batch, whose first axis is the batch."""
    if batch is None or isinstance(batch, Tensor):
        return None if batch is None else batch[chosen]
    parts = [_taken(part, chosen) for part in batch]
    return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)


def announced(names: Mapping[str, str] | None = None) -> Processes:
    """What torchrun says of this process, before it has met the others; alone without torchrun."""
    found = os.environ if names is None else names
    if any(name not in found for name in NAMES):
        return Processes()
    try:
        return Processes(int(found["RANK"]), int(found["WORLD_SIZE"]))
    except ValueError:
        raise RegardError(
            f"RANK={found['RANK']!r}, WORLD_SIZE={found['WORLD_SIZE']!r} in the environment: "
            f"expected numbers, as torchrun sets them"
        ) from None


def current() -> Processes:
    """This process among those that have met."""
    if not (dist.is_available() and dist.is_initialized()):
        return Processes()
    return Processes(dist.get_rank(), dist.get_world_size())


@contextmanager
def met() -> Iterator[Processes]:
    """Meet the others that torchrun started; if one is gone later on, a clear error."""
    if current().several or not announced().several:
        yield current()
        return
    both = torch.cuda.is_available() and dist.is_nccl_available()
    with _gone():
        store, rank, world = next(rendezvous("env://", timeout=PATIENCE))
        time = store.add(f"regard/{rank}", 1)  # who meets again must not find old addresses
        dist.init_process_group(
            "cpu:gloo,cuda:nccl" if both else "gloo",
            store=dist.PrefixStore(f"regard/{time}", store),  # type: ignore[attr-defined]
            rank=rank,
            world_size=world,
            timeout=PATIENCE,
        )
    try:
        with _gone():
            yield current()
    finally:
        dist.destroy_process_group()


@contextmanager
def _gone() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # gloo has no kind of its own
        words = str(error)
        if not isinstance(error, dist.DistError) and not any(
            word in words for word in ("gloo", "Gloo", "NCCL", "Connection closed")
        ):
            raise
        raise RegardError(
            "another process of this training is gone: the same command goes on from the last "
            "saved state"
        ) from error
