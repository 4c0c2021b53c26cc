"""The loss as one module: in bf16, compiled, or computed by several processes if wanted."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from regard.errors import RegardError
from regard.tasks.task import Loss, Task
from regard.training.config import TrainingConfig
from regard.training.processes import Processes


class Objective(nn.Module):
    """A model with its loss, so that all of it is one forward pass."""

    def __init__(self, task: Task, model: nn.Module, config: TrainingConfig) -> None:
        super().__init__()
        self.task, self.model, self.config = task, model, config

    def forward(self, batch: Any, carried: list[Tensor]) -> tuple[Loss, list[Tensor]]:
        """The loss of a batch, and what is carried over to the next one."""
        device = next(self.model.parameters()).device.type
        with torch.autocast(device, torch.bfloat16, enabled=self.config.bf16):
            return self.task.loss(self.model, batch, self.config.label_smoothing, carried)


def objective(
    task: Task, model: nn.Module, config: TrainingConfig, processes: Processes
) -> nn.Module:
    """The objective of this process: gradients of its `backward` are the mean over all of them."""
    if config.compile:
        model.compile(dynamic=True)  # in place: its class and the names of its weights stay
    found = Objective(task, model, config)
    if not processes.several:
        return found
    # Parameters may be unused in one update or in one process: the first state of a language
    # model, experts that nobody asked.
    return DistributedDataParallel(found, broadcast_buffers=False, find_unused_parameters=True)


@contextmanager
def computing(module: nn.Module, last: bool) -> Iterator[None]:
    """Compute gradients; they are exchanged after the last batch of an update."""
    with (
        module.no_sync()
        if isinstance(module, DistributedDataParallel) and not last
        else nullcontext()
    ):
        try:
            yield
        except RuntimeError as error:
            if not _of_the_compiler(error):
                raise
            words = " ".join(str(error).strip().splitlines()[:2])
            raise RegardError(
                f"option compile: torch cannot compile this model here ({words}): train without "
                f"it, or see that a C++ compiler is installed"
            ) from error


def _of_the_compiler(error: BaseException) -> bool:
    return type(error).__module__.startswith(("torch._dynamo", "torch._inductor"))


@contextmanager
def looking(model: nn.Module) -> Iterator[None]:
    """Measure: no dropout, no gradients, full precision, nothing compiled."""
    model.eval()
    with torch.no_grad(), torch.compiler.set_stance("force_eager"):
        yield
