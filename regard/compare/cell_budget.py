"""The budget that every training of a comparison gets."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from regard.errors import OptionError
from regard.tasks.registry import TaskSpec
from regard.training.config import TrainingConfig

RESERVED = {
    "seed": "--seeds says how many seeds each system is trained with",
    "epochs": "--budget is the same for all",
    "steps": "--budget is the same for all",
    "minutes": "--budget is the same for all",
}
"""Training options that a comparison sets itself, with the reason."""
EXPECTED = "expected a time such as 90s, 5m or 1.5h, or epochs=…, steps=… or tokens=…"
SECONDS = {"s": 1 / 60, "m": 1.0, "h": 60.0}
"""Minutes in each unit of time."""


@dataclass(frozen=True)
class Budget:
    """A number of epochs, steps or tokens, or minutes; by default the epochs of the task.

    Tokens are counted as `batch_tokens` counts them, padding included.
    """

    unit: str = "default"
    amount: float = 0.0

    def options(self, spec: TaskSpec, options: Mapping[str, Any]) -> dict[str, Any]:
        """The training options of a system with these options."""
        if self.unit == "default":
            return {}
        if self.unit == "minutes":
            return {"minutes": self.amount}
        if self.unit != "tokens":
            return {self.unit: int(self.amount)}
        given = {**spec.training_defaults, **options}
        batch = given.get("batch_tokens", TrainingConfig.batch_tokens)
        per_update = batch * given.get("accumulate", TrainingConfig.accumulate)
        return {"steps": max(1, ceil(self.amount / per_update)), "min_batches": 1}

    @property
    def minutes(self) -> float | None:
        """The time of one training, where the budget is a time."""
        return self.amount if self.unit == "minutes" else None

    def __str__(self) -> str:
        if self.unit == "default":
            return "the default number of epochs"
        if self.unit == "minutes" and self.amount < 1:
            return f"{60 * self.amount:g} seconds"
        unit = self.unit[:-1] if self.amount == 1 else self.unit
        return f"{self.amount:g} {unit}" if unit[:6] == "minute" else f"{self.amount:,.0f} {unit}"


def parse_budget(text: str | None) -> Budget:
    """The budget from its short form.

    >>> parse_budget("90s"), str(parse_budget("epochs=3"))
    (Budget(unit='minutes', amount=1.5), '3 epochs')
    """
    if text is None:
        return Budget()
    time = re.fullmatch(r"\s*(\d+\.?\d*)\s*([smh])\s*", text)
    count = re.fullmatch(r"\s*(epochs|steps|tokens)\s*=\s*(\d[\d_,]*)\s*", text)
    if time is not None:
        unit, amount = "minutes", float(time[1]) * SECONDS[time[2]]
    elif count is not None:
        unit, amount = count[1], float(re.sub("[_,]", "", count[2]))
    else:
        raise OptionError("budget", f"{EXPECTED}, got {text!r}")
    if not 0 < amount <= 1e12:
        raise OptionError("budget", f"{EXPECTED}, got {text!r}")
    return Budget(unit, amount)
