"""What a model answers: plain records without tensors."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Prediction:
    """The output of a model for one text."""

    output: str
    truncated: bool = False
    """Whether the text was too long, so that only a part of it was read."""
    details: dict[str, Any] = field(default_factory=dict)
    """Further plain values, such as probabilities."""


@dataclass(frozen=True)
class LogProbability:
    """The log-probability of a text, the end token included."""

    log_probability: float
    token_log_probabilities: list[float]
    tokens: list[str]
    truncated: bool = False
    """Whether the source was too long, so that only a part of it was read."""
