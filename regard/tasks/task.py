"""What every task offers to training and to use: batches, a loss, predictions and metrics."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Float
from torch import Tensor, nn
from torch.optim import Optimizer

from regard.metrics import ClassReport, Measurement, Tally
from regard.notebook_cards import table
from regard.tasks.prediction import Prediction

Model = TypeVar("Model", bound=nn.Module)


class Loss(NamedTuple):
    """The loss of a batch."""

    total: Float[Tensor, ""]
    """Summed over the predictions of the batch."""
    extra: Float[Tensor, ""] | None = None
    """A mean that is added to the loss per prediction, such as the load balance of experts."""


class Sample(NamedTuple):
    """One example of the validation data: the input, the reference and the prediction."""

    given: str
    expected: str
    predicted: str


OUTPUT_NAMES = ("predicted", "translation")
"""What the output is called in the `lines` of an evaluation."""


@dataclass(frozen=True)
class Evaluation:
    """The metrics of a model on a corpus."""

    metrics: dict[str, Measurement]
    main: str
    """The metric that decides which weights are the best."""
    higher: bool
    """Whether a higher value of the main metric is better."""
    samples: tuple[Sample, ...]
    by_length: dict[str, Measurement]
    """The main metric by length of the input."""
    lines: tuple[dict[str, Any], ...]
    """One record per example, for the file of the evaluation."""
    tally: Tally | None = None
    """The statistics of the main metric, one row per example, for paired comparisons."""
    report: ClassReport | None = None
    """Precision, recall and F1 of each class, and the confusion matrix, where there are classes."""
    merit: float | None = None
    """What decides which weights are the best in place of the main metric; higher is better."""

    @property
    def figure_of_merit(self) -> float:
        """What weights are chosen by: the main metric unless `merit` is set; higher is better."""
        if self.merit is not None:
            return self.merit
        value = self.metrics[self.main].value
        return value if self.higher else -value

    def __repr__(self) -> str:
        metrics = "; ".join(f"{m.name} {m.text()}" for m in self.metrics.values())
        return f"Evaluation({metrics}; n = {self.metrics[self.main].n:,})"

    def _repr_html_(self) -> str:
        rows = [[m.name, m.text(), f"{m.n:,}"] for m in self.metrics.values()]
        lengths = [[name, m.text(), f"{m.n:,}"] for name, m in self.by_length.items()]
        samples = [[sample.given, sample.expected, sample.predicted] for sample in self.samples]
        main = self.metrics[self.main].name
        return (
            table(("metric", "value [95 % interval]", "n"), rows)
            + (table((f"{main} by length", "value", "n"), lengths) if len(lengths) > 1 else "")
            + (table(("text", "expected", "predicted"), samples) if samples else "")
        )


@runtime_checkable
class Task(Protocol[Model]):
    """One task on one corpus, with the model that it trains."""

    def build(self) -> Model:
        """A model with initial weights."""
        ...

    def plan(self, budget: int, seed: int, epoch: int) -> list[np.ndarray]:
        """The batches of an epoch, as arrays of example numbers; `budget` tokens each."""
        ...

    def batch(self, examples: np.ndarray) -> Any:
        """The tensors of one batch."""
        ...

    def count(self, batch: Any) -> int:
        """The number of predictions in a batch, by which its loss is divided."""
        ...

    def loss(
        self, model: Model, batch: Any, smoothing: float, carried: list[Tensor]
    ) -> tuple[Loss, list[Tensor]]:
        """The loss of a batch; a language model carries its state over to the next batch."""
        ...

    def validate(self, model: Model) -> Evaluation:
        """The metrics on the validation data."""
        ...

    @property
    def evaluate(self) -> Callable[..., Evaluation]:
        """Called with a model and examples: the metrics on these examples."""
        ...

    @property
    def predict(self) -> Callable[..., Sequence[Prediction]]:
        """Called with a model and texts, none of them empty: one prediction per text."""
        ...


@runtime_checkable
class OwnOptimizer(Protocol):
    """A task that has an optimizer of its own."""

    def optimizer(self, model: Any, config: Any) -> Optimizer:
        """Its optimizer; OptionError where a training option of `config` does not apply."""
        ...


@runtime_checkable
class Calibrates(Protocol):
    """A task whose trained model is adjusted on the validation data at the end."""

    def calibrate(self, model: Any) -> str:
        """Adjust the weights in place; what was changed, or nothing."""
        ...


@runtime_checkable
class SharesValidation(Protocol):
    """A task whose `validate` computes its batches with `map_batches`: every process calls it."""

    @property
    def shares_validation(self) -> bool:
        """Whether it does."""
        ...
