"""What a model answers: plain records without tensors."""

from dataclasses import dataclass, field
from typing import Any

from regard.notebook_cards import card, shorten


@dataclass(frozen=True)
class Prediction:
    """The output of a model for one text."""

    output: str
    truncated: bool = False
    """Whether the text was too long, so that only a part of it was read."""
    details: dict[str, Any] = field(default_factory=dict)
    """Further plain values, such as probabilities."""

    def __str__(self) -> str:
        return self.output

    def __repr__(self) -> str:
        names = ", ".join(self.details)
        parts = [repr(shorten(self.output)), *(["truncated"] if self.truncated else [])]
        return f"Prediction({', '.join(parts)}{f'; details: {names}' if names else ''})"

    def _repr_html_(self) -> str:
        rows = [("truncated", "yes")] if self.truncated else []
        rows += [(name, _describe(value)) for name, value in self.details.items()]
        return card(self.output, rows)


def _describe(value: Any, most: int = 8) -> str:
    """A detail in one line: of numbers by name, the largest ones; of a list, the first ones."""
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, dict) and all(isinstance(part, int | float) for part in value.values()):
        ranked = sorted(value.items(), key=lambda item: -item[1])
        shown = [f"{name} {number:.3g}" for name, number in ranked[:most]]
    elif isinstance(value, list | tuple):
        shown = [_describe(part, 2) for part in value[:most]]
    else:
        return shorten(str(value), 100)
    return ", ".join(shown) + (", …" if len(value) > most else "")


@dataclass(frozen=True)
class LogProbability:
    """The log-probability of a text, the end token included."""

    log_probability: float
    token_log_probabilities: list[float]
    tokens: list[str]
    truncated: bool = False
    """Whether the source was too long, so that only a part of it was read."""
