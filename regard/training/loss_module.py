"""The loss as one module, which can be compiled, run in bf16 and shared by several processes."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from regard.devices import device_of, prefers_bf16
from regard.errors import OptionError
from regard.models.embedding import Embedding
from regard.tasks.task import Loss, Task
from regard.training.config import TrainingConfig
from regard.training.distributed import Processes


class Objective(nn.Module):
    """A model and its loss in one forward pass.

    DistributedDataParallel exchanges the gradients of the module that it wraps, so the loss, which
    calls parts of the model by themselves, has to be inside.
    """

    def __init__(self, task: Task[Any], model: nn.Module, config: TrainingConfig) -> None:
        super().__init__()
        self.task, self.model, self.config = task, model, config

    def forward(self, batch: Any, carried: list[Tensor]) -> tuple[Loss, list[Tensor]]:
        """The loss of a batch, and what is carried over to the next one."""
        device = device_of(self.model)
        rough = uses_bf16(self.config, device)
        with torch.autocast(device.type, torch.bfloat16) if rough else nullcontext():
            return self.task.loss(self.model, batch, self.config.label_smoothing, carried)


def uses_bf16(config: TrainingConfig, device: torch.device) -> bool:
    """Whether matrices are multiplied in bfloat16: as the config says, or as the device prefers."""
    return prefers_bf16(device) if config.bf16 is None else config.bf16


def make_objective(
    task: Task[Any], model: nn.Module, config: TrainingConfig, processes: Processes
) -> nn.Module:
    """The objective of this process; its gradients are averaged over the processes."""
    if config.compile:
        model.compile(dynamic=True)  # in place: its class and the names of its weights stay
    objective = Objective(task, model, config)
    for part in _lazy_embeddings(model):
        part.sparse = not (processes.several or config.compile)
    if not processes.several:
        return objective
    # Some parameters may be unused in an update or in a process: the learned first state of a
    # language model whose state is carried over, or experts to which no token was routed.
    return DistributedDataParallel(objective, broadcast_buffers=False, find_unused_parameters=True)


def lazy_tables(model: nn.Module) -> list[Tensor]:
    """The tables of word vectors of which an update changes only the rows of its words."""
    return [part.words.weight for part in _lazy_embeddings(model)]


def _lazy_embeddings(model: nn.Module) -> list[Embedding]:
    return [part for part in model.modules() if isinstance(part, Embedding) and part.lazy]


@contextmanager
def gradient_computation(module: nn.Module, last: bool) -> Iterator[None]:
    """Around forward and backward pass of one batch of an update.

    Processes exchange gradients after the last batch only. An error of the compiler, which comes
    with the first forward pass, becomes one line.
    """
    with (
        module.no_sync()
        if isinstance(module, DistributedDataParallel) and not last
        else nullcontext()
    ):
        try:
            yield
        except RuntimeError as error:
            if not _is_compiler_error(error):
                raise
            message = " ".join(str(error).strip().splitlines()[:2])
            raise OptionError(
                "compile",
                f"torch cannot compile this model here ({message}): train without "
                f"it, or make sure that a C++ compiler is installed",
            ) from error


def _is_compiler_error(error: BaseException) -> bool:
    return type(error).__module__.startswith(("torch._dynamo", "torch._inductor"))


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Evaluate without dropout and gradients, in full precision, not compiled."""
    model.eval()
    # Nothing can be compiled before the compiler is imported, which takes a second or two.
    compiler = "torch._dynamo" in sys.modules
    eager = torch.compiler.set_stance("force_eager") if compiler else nullcontext()
    with torch.no_grad(), eager:
        yield
