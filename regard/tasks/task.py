"""What every task offers to training: batches, a loss, and a measure of its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.data.tokenizer import UNK
from regard.metrics import Measured, Tally, by_length


class Loss(NamedTuple):
    """A loss summed over what was predicted, and how much that was."""

    total: Float[Tensor, ""]
    extra: Float[Tensor, ""] | None = None
    """A mean that is added besides, such as the balance of experts."""


BALANCE = 0.01
"""How much the even use of experts counts beside the task itself (Fedus et al., 2021)."""


def weighed(balance: Float[Tensor, ""] | None) -> Float[Tensor, ""] | None:
    """The balance loss of experts, where there are any, as it is added to the loss."""
    return None if balance is None else BALANCE * balance


def forget(words: Int[Tensor, "b t"], share: float) -> Int[Tensor, "b t"]:
    """The words, some of them taken for unknown; 0 is padding."""
    return words.masked_fill((torch.rand(words.shape) < share) & (words != 0), UNK)


class Sample(NamedTuple):
    """One example of the validation data: what came in, what was right, what came out."""

    given: str
    expected: str
    predicted: str


@dataclass(frozen=True)
class Prediction:
    """What a model makes of one text."""

    output: str
    cut: bool = False
    """Whether the text was too long, and only a part of it was read."""
    details: dict[str, Any] = field(default_factory=dict)
    """Plain values besides, such as probabilities."""


@dataclass(frozen=True)
class Evaluation:
    """How well a model does on a corpus."""

    metrics: dict[str, Measured]
    main: str
    """The metric that decides which model is the best."""
    higher: bool
    """Whether more of it is better."""
    samples: tuple[Sample, ...]
    by_length: dict[str, Measured]
    """The main metric by length of the input."""
    lines: tuple[dict[str, Any], ...]
    """One record an example, for the file of the evaluation."""

    @property
    def score(self) -> float:
        """The main metric, turned so that more is better."""
        value = self.metrics[self.main].value
        return value if self.higher else -value


@runtime_checkable
class Task(Protocol):
    """One task on one corpus."""

    def build(self) -> nn.Module:
        """A model with fresh weights."""
        ...

    def plan(self, budget: int, seed: int, epoch: int) -> list[np.ndarray]:
        """The batches of an epoch, as arrays of example numbers."""
        ...

    def batch(self, examples: np.ndarray) -> Any:
        """The tensors of one batch."""
        ...

    def count(self, batch: Any) -> int:
        """How many predictions a batch asks for."""
        ...

    def loss(
        self, model: nn.Module, batch: Any, smoothing: float, carried: list[Tensor]
    ) -> tuple[Loss, list[Tensor]]:
        """The loss of a batch; language models carry their state over to the next one."""
        ...

    def evaluate(self, model: nn.Module) -> Evaluation:
        """How well the model does on the validation data."""
        ...

    @property
    def score(self) -> Callable[..., Evaluation]:
        """Called with a model and examples, how well it does on these."""
        ...

    @property
    def predict(self) -> Callable[..., list[Prediction]]:
        """Called with a model and texts, none of them empty, one prediction for each."""
        ...


def by_input_length(tally: Tally, lengths: Sequence[int]) -> dict[str, Measured]:
    """A metric by length of the input, under the names of the lengths."""
    found = by_length(tally, np.array(lengths))
    return {str(bucket): value for bucket, value in found.items()}
