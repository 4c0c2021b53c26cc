"""Training options: budget, optimizer, schedule, and how often a model is validated."""

from dataclasses import dataclass
from typing import Annotated, Literal

from regard.errors import RegardError
from regard.options import PROPORTION, Bounds, between, check_fields, more_than

BUDGET_OPTIONS = ("epochs", "steps", "minutes")

HALVING = ("plateau", "warm_down")
"""Schedules that halve the learning rate when validation stops improving."""
"""Options that limit how long a run trains: the only ones that may change when it resumes."""


@dataclass(frozen=True)
class TrainingConfig:
    """Budget, optimizer and schedule."""

    epochs: Annotated[int | None, between(1, 10**9)] = None
    """Maximum number of passes over the data; the default applies only if neither steps
    nor minutes is given."""
    steps: Annotated[int | None, between(1, 10**12)] = None
    """Maximum number of updates."""
    minutes: Annotated[float | None, more_than(0)] = None
    """Maximum training time."""
    batch_tokens: Annotated[int, between(1, 10**8)] = 4096
    """Maximum number of tokens per batch, including padding."""
    min_batches: Annotated[int, between(1, 10**6)] = 1
    """Minimum number of batches per epoch: small data is divided into smaller batches; 1 if
    batch_tokens is given."""
    accumulate: Annotated[int, between(1, 10**6)] = 1
    """Number of batches whose gradients are accumulated for one update."""
    learning_rate: Annotated[float, Bounds(0, high_open=True)] = 1e-3
    """Peak learning rate."""
    warmup: Annotated[int, between(0, 10**12)] = 100
    """Number of updates over which the learning rate rises to its peak."""
    schedule: Literal["constant", "cosine", "inverse_root", "linear", "plateau", "warm_down"] = (
        "plateau"
    )
    """Learning-rate schedule after the warm-up; plateau halves the rate when validation stops
    improving, warm_down also falls to zero over the last quarter of the budget, and linear falls
    to zero over all of it."""
    weight_decay: Annotated[float, Bounds(0, high_open=True)] = 0.01
    """Decoupled weight decay (AdamW)."""
    clip: Annotated[float, more_than(0)] = 1.0
    """Maximum gradient norm."""
    label_smoothing: Annotated[float, PROPORTION] = 0.0
    """Probability mass that is spread evenly over all classes."""
    evaluate_every: Annotated[int | None, between(1, 10**12)] = None
    """Number of updates between validations (default: one epoch)."""
    patience: Annotated[int, between(1, 10**9)] = 5
    """Number of validations without a better metric or a lower validation loss before training
    stops."""
    average: Annotated[int, between(1, 1000)] = 1
    """Number of best checkpoints that are averaged at the end; the average is kept if it is
    better."""
    save_every: Annotated[int, between(1, 10**12)] = 500
    """Number of updates between saved states; each validation saves one too."""
    keep_every: Annotated[int | None, between(1, 10**12)] = None
    """Number of updates between checkpoints that stay in the run folder, so that the app can replay
    how attention developed (default: none)."""
    bf16: bool | None = None
    """Multiply matrices in bfloat16: faster on processors with instructions for it (CPUs with AMX
    or AVX512-BF16, recent GPUs), slower elsewhere; weights stay in float32 (default: yes on CUDA
    devices that have them, no elsewhere)."""
    compile: bool = False
    """Compile the model with torch.compile: takes minutes at the start and makes updates faster;
    helps transformers in long runs, but hardly recurrent networks. Needs a C++ compiler."""
    tensorboard: bool = False
    """Write event files for TensorBoard into the run folder (needs regard[tensorboard])."""
    seed: Annotated[int, Bounds(0, 2**63, high_open=True)] = 1
    """Seed of the initial weights, the order of the data and dropout."""

    def __post_init__(self) -> None:
        check_fields(self)
        if (
            self.schedule in ("cosine", "linear", "warm_down")
            and self.epochs is self.steps is self.minutes is None
        ):
            raise RegardError(f"schedule {self.schedule} needs a budget: epochs, steps or minutes")
