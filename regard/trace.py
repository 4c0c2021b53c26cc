"""A trace: what a model was given, what it made of it, and where it looked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.looks import Look

SCHEMA = "regard.trace/1"


@dataclass(frozen=True)
class Token:
    """One token of a side, and where it stands in the side's text."""

    text: str
    start: int = 0
    end: int = 0
    special: bool = False
    """Whether it stands for no text, such as the end of a sentence."""
    word: int | None = None
    """The number of its word, counted by white space; None for special tokens."""


@dataclass(frozen=True)
class Side:
    """A text that looks or is looked at: source, target, text."""

    text: str
    tokens: tuple[Token, ...]


@dataclass(frozen=True)
class Attribution:
    """How much each token of a side mattered, by one method."""

    method: str
    side: str
    values: NDArray[np.float64]
    """[n], one a token."""
    output: int | None = None
    """The position of the output that it is about; None for all of it."""


@dataclass(frozen=True)
class Alternative:
    """What else might have stood at a place of the output."""

    text: str
    probability: float


@dataclass(frozen=True)
class Trace:
    """One text through one model."""

    task: str
    sides: Mapping[str, Side]
    """By name; looks say which side asks and which is asked."""
    looks: tuple[Look, ...]
    output: str
    prediction: Mapping[str, Any] = field(default_factory=dict)
    """Plain values: probabilities of labels, score, n-best."""
    alternatives: tuple[tuple[Alternative, ...], ...] = ()
    """For each position of the output, the likeliest tokens there, likeliest first."""
    attributions: tuple[Attribution, ...] = ()
    alignment: tuple[tuple[int, int], ...] | None = None
    """Links of words: source, target, from 0."""
    card: Mapping[str, Any] = field(default_factory=dict)
    """What the model is: name, config, size, where it was trained."""
