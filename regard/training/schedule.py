"""Learning rates: a rise, then one of several ways down."""

import math

from regard.training.config import TrainingConfig


def learning_rate(config: TrainingConfig, step: int, share: float, halvings: int) -> float:
    """The learning rate of one update, after so many and after this share of the budget.

    >>> config = TrainingConfig(learning_rate=1.0, warmup=4, schedule="inverse_root")
    >>> [learning_rate(config, step, 0.0, 0) for step in (0, 3, 15)]
    [0.25, 1.0, 0.5]
    """
    risen = min(1.0, (step + 1) / max(1, config.warmup))
    factor = 1.0
    if config.schedule == "inverse_root":
        factor = min(1.0, (max(1, config.warmup) / (step + 1)) ** 0.5)
    if config.schedule == "plateau":
        factor = 0.5**halvings
    if config.schedule == "cosine":
        factor = 0.5 * (1.0 + math.cos(math.pi * share))
    return config.learning_rate * risen * factor
