"""The optimizer of the training loop, and the schedules of its learning rate."""

import inspect
import math
from typing import Any

import torch

from regard.training.config import HALVING, TrainingConfig

WARM_DOWN = 0.25
"""Last share of the budget over which the schedule warm_down falls to zero."""


def _plain(name: str) -> Any:
    """The method of torch's AdamW as it is written, without the wrappers around it."""
    return inspect.unwrap(getattr(torch.optim.AdamW, name))


class AdamW(torch.optim.AdamW):
    """Decoupled weight decay (Loshchilov and Hutter, 2019, https://arxiv.org/abs/1711.05101).

    The same updates as torch's class, whose methods are wrapped so that torch.compile leaves them
    alone. The wrappers import `torch._dynamo`, a second or two, although nothing is compiled here.
    """

    add_param_group = _plain("add_param_group")
    zero_grad = _plain("zero_grad")
    state_dict = _plain("state_dict")
    load_state_dict = _plain("load_state_dict")
    step = torch.no_grad()(_plain("step"))


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
    if config.schedule in HALVING:
        decay = 0.5**halvings
    if config.schedule == "warm_down":
        decay *= min(1.0, (1.0 - share) / WARM_DOWN)
    if config.schedule == "cosine":
        decay = 0.5 * (1.0 + math.cos(math.pi * share))
    if config.schedule == "linear":
        decay = max(0.0, 1.0 - share)
    return config.learning_rate * warmup * decay
