"""The budget of a run: how much of it is used up, and extending a run with a larger one."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from regard.errors import RegardError
from regard.number_format import format_duration
from regard.training.config import BUDGET_OPTIONS, TrainingConfig
from regard.training.state import Position

SMALLEST_BATCH = 64
"""Tokens per batch below which batches of small data are not made smaller."""


def budget(config: TrainingConfig) -> dict[str, int | float | None]:
    """The limits of a run by name.

    >>> budget(TrainingConfig(epochs=3))
    {'epochs': 3, 'steps': None, 'minutes': None}
    """
    return {name: getattr(config, name) for name in BUDGET_OPTIONS}


def total_steps(config: TrainingConfig, batches: int) -> int | None:
    """Maximum number of updates of a run with so many batches per epoch."""
    totals = [] if config.steps is None else [config.steps]
    if config.epochs is not None:
        totals.append(config.epochs * -(-batches // config.accumulate))
    return min(totals, default=None)


def exhausted_budget(config: TrainingConfig, position: Position, epoch_over: bool) -> str:
    """The name of a budget that is used up, or an empty string.

    `epoch_over` says that the position is after the last batch of its epoch.
    """
    if config.steps is not None and position.step >= config.steps:
        return "steps"
    if config.minutes is not None and position.seconds >= 60 * config.minutes:
        return "minutes"
    epochs = position.epoch + epoch_over
    return "epochs" if config.epochs is not None and epochs >= config.epochs else ""


def batch_tokens(config: TrainingConfig, plan: Callable[[int, int, int], Sequence[Any]]) -> int:
    """The tokens per batch: fewer than the maximum where an epoch would have too few batches.

    `plan` is that of a task. The number is halved until an epoch has `min_batches`, or a batch
    would hold no more than a few short examples.
    """
    tokens = config.batch_tokens
    while tokens >= 2 * SMALLEST_BATCH and len(plan(tokens, config.seed, 0)) < config.min_batches:
        tokens //= 2
    return tokens


def used_share(config: TrainingConfig, position: Position, total: int | None) -> float:
    """The share of the budget that is used up, from 0 to 1; `total` is that of `total_steps`."""
    shares = [position.step / total] if total else []
    if config.minutes is not None:
        shares.append(position.seconds / (60 * config.minutes))
    return min(1.0, max(shares, default=0.0))


def extend(
    position: Position, config: TrainingConfig, count_batches: Callable[[], int]
) -> Position:
    """Where to resume from: the saved position, no longer `done` if the budget is a larger one.

    A run that stopped because nothing improved gets its full patience again. A budget that is
    already used up is refused. `count_batches` counts the batches of the position's epoch.
    """
    same_budget = position.budget in ({}, budget(config))
    if position.step == 0 or (position.done and same_budget):
        return position
    epoch_over = position.batch >= count_batches()
    exhausted = exhausted_budget(config, position, epoch_over)
    if exhausted:
        raise RegardError(
            f"{position.step} updates have been made ({position.epoch + epoch_over} whole epochs, "
            f"{format_duration(position.seconds)}): {exhausted} {getattr(config, exhausted)} is "
            f"already used up: give a larger budget, or choose another --out"
        )
    if not position.done:
        return position
    since_best = position.since_best if position.since_best < config.patience else 0
    return replace(position, done=False, finished=False, since_best=since_best, ended="", budget={})
