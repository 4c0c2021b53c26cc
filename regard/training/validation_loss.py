"""The loss on the validation data: the function that training minimizes, without dropout."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from regard.devices import to_device
from regard.progress import track
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
    total, count, carried = 0.0, 0, list[Tensor]()
    batches = _batches(task, min(batch_tokens, BATCH_TOKENS))
    for batch in track(batches, "computing the validation loss", unit="batches"):
        count += task.count(batch)
        loss, carried = task.loss(model, to_device(batch, model), smoothing, carried)
        total += float(loss.total)
    return total / count if count else None


def _batches(task: Task[Any], budget: int) -> Iterator[Any]:
    """The validation data in batches of `budget` tokens."""
    made: Any = getattr(task, "validation_batches", None)
    if made is not None:  # a task that makes its examples itself
        yield from made(budget)
    elif getattr(task, "valid", None) is not None:
        view: Any = replace(task, train=task.valid)  # type: ignore[type-var,attr-defined]
        for examples in view.plan(budget, 0, 0):
            yield view.batch(examples)
