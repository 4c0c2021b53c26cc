"""Training that diverges: the loss is not finite, or far above that of the untrained model.

An untrained model predicts about evenly, and its loss is that of a guess. A model that was trained
and whose loss is several times as large has not learned slowly but lost its weights, mostly to a
learning rate that is too high. One bad batch is no divergence, so that only a sequence of updates
counts.
"""

import math

from regard.errors import RegardError
from regard.training.config import TrainingConfig
from regard.training.state import Position

FACTOR, END_FACTOR = 10.0, 5.0
"""A loss is too large if it exceeds that of the first update, or 1, by this factor; at the end of a
run, where nothing follows that could make up for it, by the second one."""
UPDATES = 20
"""Number of updates in a row with such a loss after which training stops."""


def is_too_large(loss: float, first_loss: float | None, factor: float = FACTOR) -> bool:
    """Whether a loss is not finite, or far above that of the first update.

    >>> is_too_large(6.9, 2.3), is_too_large(400.0, 2.3), is_too_large(float("nan"), None)
    (False, True, True)
    """
    return not math.isfinite(loss) or loss > factor * max(1.0, first_loss or 1.0)


def mean_loss(position: Position) -> float:
    """The mean training loss since the last validation; NaN if none was finite."""
    return position.loss_sum / position.loss_count if position.loss_count else math.nan


def has_diverged(position: Position, updates: int, *, validation: bool) -> bool:
    """Whether training has diverged after so many updates in a row whose loss was too large.

    Before a validation two updates are enough if the mean since the last one is too large as well,
    since the weights would be compared with others; at the end of the budget the mean decides.
    """
    if position.done:
        return is_too_large(mean_loss(position), position.first_loss, END_FACTOR)
    if validation and updates >= 2 and is_too_large(mean_loss(position), position.first_loss):
        return True
    return updates >= UPDATES


def divergence_error(position: Position, loss: float, config: TrainingConfig) -> RegardError:
    """What to do about it."""
    first = (
        "" if position.first_loss is None else f", {position.first_loss:.3g} at the first update"
    )
    kept = "" if position.best is None else "; the best weights so far are kept"
    return RegardError(
        f"step {position.step}: training has diverged, the loss is {loss:.3g}{first}{kept}: lower "
        f"--learning-rate (now {config.learning_rate:g}) or raise --warmup (now {config.warmup}), "
        f"with another --out"
    )
