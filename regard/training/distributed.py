"""Distributed training: several processes train one model, each computes a part of every batch.

All processes plan the same global batches. A loss is divided by the number of predictions in the
whole batch and gradients are summed (torch's DistributedDataParallel), so that an update is the one
that a single process would make, whatever the number of processes.

Where they wait for each other:

- At the start the others wait in `RunFolder.begin`, until the first process has prepared the data
  and loaded the saved state.
- In every update they exchange gradients, the loss, the training time and whether to stop.
- In a validation they share out the batches and exchange the results (`map_batches`). Of a task
  that reads its validation data in order, the first process computes the metrics and the second
  one the loss. Then the others wait for the position that the first process broadcasts.
- To save a state, all of them send their part of it to the first.
- At the end they wait until the first process has written the result.
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

from regard.devices import available_devices, resolve_device
from regard.errors import OptionError, RegardError

TORCHRUN_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""Environment variables that torchrun sets in each process."""
TIMEOUT = timedelta(hours=12)
"""How long a process waits for another one, which may be preparing data or validating; a process
that died is noticed at once."""


@dataclass(frozen=True)
class Processes:
    """This process, and how many train the model together."""

    rank: int = 0
    world: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the process that prepares data, validates and writes."""
        return self.rank == 0

    @property
    def several(self) -> bool:
        """Whether there are other processes."""
        return self.world > 1

    def barrier(self) -> None:
        """Wait until all processes have arrived here."""
        self.sum([0.0])

    def sum(self, numbers: Sequence[float]) -> list[float]:
        """Each number summed over the processes."""
        if not self.several:
            return list(numbers)
        totals = torch.tensor(numbers, dtype=torch.float64)
        dist.all_reduce(totals)
        return [float(total) for total in totals]

    def any(self, condition: bool) -> bool:
        """Whether the condition is true in any process."""
        return self.sum([float(condition)])[0] > 0

    def broadcast(self, value: Any) -> Any:
        """The value of the first process (anything that JSON can hold), in all processes."""
        if not self.several:
            return value
        text = json.dumps(value).encode() if self.first else b""
        size = torch.tensor([len(text)])
        dist.broadcast(size, 0)
        buffer = torch.zeros(int(size), dtype=torch.uint8)
        if self.first:
            buffer = torch.frombuffer(bytearray(text), dtype=torch.uint8)
        dist.broadcast(buffer, 0)
        return json.loads(buffer.numpy().tobytes())

    def exchange(self, value: Any) -> list[Any]:
        """The values of all processes (anything that JSON can hold), in all of them."""
        text = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)
        sizes = [int(size) for size in self.gather(torch.tensor([len(text)]))]
        padded = text.new_zeros(max(sizes))
        padded[: len(text)] = text
        parts = zip(self.gather(padded), sizes, strict=True)
        return [json.loads(part[:size].numpy().tobytes()) for part, size in parts]

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """The tensors of all processes, in all of them; their shapes must be the same."""
        if not self.several:
            return [tensor]
        sent = tensor.contiguous()
        if tensor.dtype == torch.bfloat16:
            sent = sent.view(torch.int16)  # not every backend knows bfloat16
        received = [torch.empty_like(sent) for _ in range(self.world)]
        dist.all_gather(received, sent)
        return [part.view(tensor.dtype) for part in received]

    def own_rows(self, batch: Any) -> tuple[Any, bool]:
        """The rows of a batch that this process computes: every n-th, from its rank on.

        If there are fewer rows than processes, a process without a row gets the first one and
        False: it has to take part in the exchange of gradients, and its loss must not count.
        """
        if not self.several:
            return batch, True
        has_rows = self.rank < count_rows(batch)
        rows = slice(self.rank, None, self.world) if has_rows else slice(0, 1)
        return _select_rows(batch, rows), has_rows

    def join_rows(self, part: Tensor, total: int) -> Tensor:
        """The tensor of `total` rows whose `own_rows` the processes hold.

        Row r is row r // world of the process r % world. Parts are padded to the same length to be
        exchanged; stacked along a second axis, [longest, world, …], they flatten in this order.
        """
        if not self.several:
            return part
        longest = -(-total // self.world)
        padded = part.new_zeros(longest, *part.shape[1:])
        padded[: len(part)] = part[:longest]
        return torch.stack(self.gather(padded), 1).flatten(0, 1)[:total]


def count_rows(batch: Any) -> int:
    """The number of rows of a batch: the length of its first tensor."""
    return len(batch if isinstance(batch, Tensor) else batch[0])


def _select_rows(batch: Any, rows: slice) -> Any:
    """These rows of every tensor of a batch, whose first axis is the batch."""
    if batch is None or isinstance(batch, Tensor):
        return None if batch is None else batch[rows]
    parts = [_select_rows(part, rows) for part in batch]
    return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)


def torchrun_processes(variables: Mapping[str, str] | None = None) -> Processes:
    """What torchrun's environment variables say, before any connection; one process without it."""
    values = os.environ if variables is None else variables
    if any(name not in values for name in TORCHRUN_VARIABLES):
        return Processes()
    try:
        return Processes(int(values["RANK"]), int(values["WORLD_SIZE"]))
    except ValueError:
        raise RegardError(
            f"RANK={values['RANK']!r}, WORLD_SIZE={values['WORLD_SIZE']!r} in the environment: "
            f"expected numbers, as torchrun sets them"
        ) from None


def current() -> Processes:
    """This process in the process group that is connected; one process if there is none."""
    if not (dist.is_available() and dist.is_initialized()):
        return Processes()
    return Processes(dist.get_rank(), dist.get_world_size())


def local_device(name: str) -> torch.device:
    """The device of this process: on a machine, each process takes an accelerator of its own."""
    several = torchrun_processes().several
    return resolve_device(name, int(os.environ.get("LOCAL_RANK", "0")) if several else 0)


def check_processes(processes: Processes, device: torch.device) -> None:
    """Refuse several processes on a device through which they cannot exchange gradients."""
    if not processes.several or device.type == "cpu":
        return
    if exchange_backend(device.type) is None:
        raise OptionError(
            "device", f"several processes cannot exchange gradients on {device.type}: use cpu"
        )
    torch.accelerator.set_device_index(device)


def exchange_backend(kind: str) -> str | None:
    """What exchanges tensors on a type of device, such as nccl on cuda; None where nothing does."""
    try:
        backend = dist.get_default_backend_for_device(kind)
    except ValueError:
        return None
    return backend if dist.is_backend_available(backend) else None


@contextmanager
def process_group() -> Iterator[Processes]:
    """Connect the processes that torchrun started; if one dies later, the error says so."""
    if current().several or not torchrun_processes().several:
        yield current()
        return
    accelerator = available_devices()[-1].type
    backend = exchange_backend(accelerator)
    with _name_lost_process():
        store, rank, world = next(rendezvous("env://", timeout=TIMEOUT))
        # torchrun's store outlives a process group: a second one (another run of the same script,
        # or a restart after a failure) must not find the addresses of the first.
        generation = store.add(f"regard/{rank}", 1)
        dist.init_process_group(
            f"cpu:gloo,{accelerator}:{backend}" if backend not in (None, "gloo") else "gloo",
            store=dist.PrefixStore(f"regard/{generation}", store),  # type: ignore[attr-defined]
            rank=rank,
            world_size=world,
            timeout=TIMEOUT,
        )
    try:
        with _name_lost_process():
            yield current()
    finally:
        dist.destroy_process_group()


@contextmanager
def _name_lost_process() -> Iterator[None]:
    """Turn the errors of a broken connection into one line that says what to do."""
    try:
        yield
    except RuntimeError as error:  # gloo has no error class of its own
        message = str(error)
        if not isinstance(error, dist.DistError) and not any(
            word in message for word in ("gloo", "Gloo", "NCCL", "Connection closed")
        ):
            raise
        raise RegardError(
            "another training process has stopped: run the same command to resume from the last "
            "saved state"
        ) from error
