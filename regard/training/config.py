"""How a model is trained: budget, optimiser, schedule, and how often it is looked at."""

import math
from dataclasses import dataclass

from regard.errors import RegardError, unknown
from regard.options import at_least

BUDGET = ("epochs", "steps", "minutes")
"""Options that say how long to train: the only ones that a run may go on with changed."""
SCHEDULES = ("constant", "cosine", "inverse_root", "plateau")


@dataclass(frozen=True)
class TrainingConfig:
    """Budget, optimiser and schedule of a training run."""

    epochs: int | None = None
    """Passes over the data at most; the task's own number unless another budget is given."""
    steps: int | None = None
    """Updates at most."""
    minutes: float | None = None
    """Time at most."""
    batch_tokens: int = 4096
    """Tokens in a batch at most, padding included."""
    accumulate: int = 1
    """Batches whose gradients make one update."""
    learning_rate: float = 1e-3
    """The highest learning rate."""
    warmup: int = 100
    """Updates over which the learning rate rises to it."""
    schedule: str = "plateau"
    """What follows: constant, cosine, inverse_root, or plateau (halved when nothing improves)."""
    weight_decay: float = 0.01
    """Pull of the weights towards zero."""
    clip: float = 1.0
    """Longest gradient: the cure of exploding ones."""
    label_smoothing: float = 0.0
    """Share of the probability that is spread over all answers."""
    evaluate_every: int | None = None
    """Updates between two looks at the validation data; an epoch unless said."""
    patience: int = 5
    """Looks without improvement before training stops."""
    average: int = 1
    """How many of the best checkpoints are averaged in the end, if that is better."""
    save_every: int = 500
    """Updates between two saved states, besides those at each look."""
    bf16: bool = False
    """Compute products of matrices in bfloat16: faster where the processor has instructions for it
    (CPUs with AMX or AVX512-BF16, recent GPUs), slower elsewhere; weights stay in float32."""
    compile: bool = False
    """Compile the model with torch.compile: minutes at the start, faster updates afterwards; helps
    transformers in long runs, recurrent networks hardly. Needs a C++ compiler."""
    tensorboard: bool = False
    """Write event files for TensorBoard into the run's folder (needs regard[tensorboard])."""
    seed: int = 1
    """Decides first weights, order of data and dropout."""

    def __post_init__(self) -> None:
        at_least(self, epochs=1, steps=1, batch_tokens=1, accumulate=1, warmup=0, weight_decay=0)
        at_least(self, evaluate_every=1, patience=1, average=1, save_every=1, seed=0)
        at_least(self, learning_rate=0, label_smoothing=0)
        for name in ("learning_rate", "weight_decay"):
            if not math.isfinite(getattr(self, name)):
                raise RegardError(f"option {name}: expected a number, got {getattr(self, name)}")
        if self.seed >= 2**63:
            raise RegardError(f"option seed: expected less than 2^63, got {self.seed}")
        for name in ("clip", "minutes"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise RegardError(f"option {name}: expected more than 0, got {value}")
        if not self.label_smoothing < 1:
            raise RegardError(
                f"option label_smoothing: expected less than 1, got {self.label_smoothing}"
            )
        if self.schedule not in SCHEDULES:
            raise RegardError(unknown("schedule", self.schedule, SCHEDULES))
        if self.schedule == "cosine" and self.epochs is self.steps is self.minutes is None:
            raise RegardError("schedule cosine needs a budget: epochs, steps or minutes")
