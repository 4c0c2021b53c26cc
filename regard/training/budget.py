"""The budget of a run: how much of it is used up, and going on with a larger one."""

from collections.abc import Callable
from dataclasses import replace

from regard.errors import RegardError
from regard.training.checkpoints import Position
from regard.training.config import BUDGET, TrainingConfig


def budget(config: TrainingConfig) -> dict[str, int | float | None]:
    """What the run may use.

    >>> budget(TrainingConfig(epochs=3))
    {'epochs': 3, 'steps': None, 'minutes': None}
    """
    return {name: getattr(config, name) for name in BUDGET}


def total_steps(config: TrainingConfig, batches: int) -> int | None:
    """How many updates there will be at most, with so many batches an epoch."""
    totals = [] if config.steps is None else [config.steps]
    if config.epochs is not None:
        totals.append(config.epochs * -(-batches // config.accumulate))
    return min(totals, default=None)


def used_up(config: TrainingConfig, position: Position, over: bool) -> str:
    """The name of a budget that is used up, or nothing; `over` is an epoch with its last batch."""
    if config.steps is not None and position.step >= config.steps:
        return "steps"
    if config.minutes is not None and position.seconds >= 60 * config.minutes:
        return "minutes"
    epochs = position.epoch + over
    return "epochs" if config.epochs is not None and epochs >= config.epochs else ""


def used_share(config: TrainingConfig, position: Position, total: int | None) -> float:
    """How much of the budget is used up."""
    shares = [position.step / total] if total else []
    if config.minutes is not None:
        shares.append(position.seconds / (60 * config.minutes))
    return min(1.0, max(shares, default=0.0))


def prolonged(position: Position, config: TrainingConfig, batches: Callable[[], int]) -> Position:
    """Where to go on from: a run that was done is done no more if its budget has grown.

    One that ended because nothing improved gets its patience anew. What is used up already cannot
    be the budget of a run that goes on. `batches` counts those of the position's epoch.
    """
    if position.step == 0 or (position.done and position.budget in ({}, budget(config))):
        return position
    over = position.batch >= batches()
    name = used_up(config, position, over)
    if name:
        raise RegardError(
            f"{position.step} updates are made ({position.epoch + over} whole epochs, "
            f"{position.seconds / 60:.1f} minutes): {name} {getattr(config, name)} is used up "
            f"already: give a larger budget, or choose another --out"
        )
    if not position.done:
        return position
    patient = position.since_best < config.patience
    since = position.since_best if patient else 0
    return replace(position, done=False, finished=False, since_best=since, budget={})
