"""The loss on the validation data: the function that training minimizes, without dropout."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from regard.data.shared_batches import map_batches
from regard.devices import to_device
from regard.tasks.task import Task

BATCH_TOKENS = 1024
"""Maximum number of tokens per batch: logits of all words of all tokens must fit into memory."""


def validation_loss(
    task: Task[Any], model: nn.Module, smoothing: float, batch_tokens: int
) -> float | None:
    """The mean loss per prediction; None for a task that does not say what it validates with.

    The caller has put the model into evaluation mode. Label smoothing is that of training, so that
    the two losses can be compared.
    """
    budget = min(batch_tokens, BATCH_TOKENS)
    batches, make = _batches(task, budget)
    carried: list[Tensor] = []

    def compute(examples: Any) -> tuple[float, int]:
        nonlocal carried
        batch = make(examples)
        loss, carried = task.loss(model, to_device(batch, model), smoothing, carried)
        return float(loss.total), task.count(batch)

    total, count = 0.0, 0
    for _, (loss, predictions) in map_batches(
        batches, compute, "computing the validation loss", unit="batches"
    ):
        total += loss
        count += predictions
    return total / count if count else None


def _batches(task: Task[Any], budget: int) -> tuple[Sequence[Any], Callable[[Any], Any]]:
    """The validation data in batches of `budget` tokens, and what makes the tensors of each."""
    made: Any = getattr(task, "validation_batches", None)
    if made is not None:  # a task that makes its examples itself
        return list(made(budget)), lambda batch: batch
    if getattr(task, "valid", None) is None:
        return [], lambda batch: batch
    view: Any = replace(task, train=task.valid)  # type: ignore[type-var,attr-defined]
    return view.plan(budget, 0, 0), view.batch
