"""Learning-rate schedules: a linear warm-up, then one of several decays."""

import math

from regard.training.config import TrainingConfig


def learning_rate(config: TrainingConfig, step: int, share: float, halvings: int) -> float:
    """The learning rate of the update after `step` others, with this share of the budget used up.

    >>> config = TrainingConfig(learning_rate=1.0, warmup=4, schedule="inverse_root")
    >>> [learning_rate(config, step, 0.0, 0) for step in (0, 3, 15)]
    [0.25, 1.0, 0.5]
    """
    warmup = min(1.0, (step + 1) / max(1, config.warmup))
    decay = 1.0
    if config.schedule == "inverse_root":
        decay = min(1.0, (max(1, config.warmup) / (step + 1)) ** 0.5)
    if config.schedule == "plateau":
        decay = 0.5**halvings
    if config.schedule == "cosine":
        decay = 0.5 * (1.0 + math.cos(math.pi * share))
    return config.learning_rate * warmup * decay
