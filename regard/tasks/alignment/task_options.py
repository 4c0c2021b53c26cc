"""Options of word alignment."""

from dataclasses import dataclass
from typing import Annotated, Any

from regard.errors import OptionError
from regard.options import Bounds, between, check_fields

TRAINING_DEFAULTS: dict[str, Any] = {
    "epochs": 10,
    "accumulate": 10**6,
    "batch_tokens": 16384,
    "learning_rate": 1.0,
    "schedule": "constant",
    "warmup": 0,
    "weight_decay": 0.0,
    "clip": 1e6,
    "patience": 100,
}
"""One update per epoch: an iteration of expectation maximization over all pairs."""


@dataclass(frozen=True)
class AlignmentData:
    """Sentence pairs, whose words are separated by blanks."""

    data: list[str] | None = None
    """Two text files, or tables with both sides (default: the built-in pairs)."""
    valid: list[str] | None = None
    """Validation data in the same format; the model learns from its sentences too, which have no
    links (default: a part of the data)."""
    valid_gold: str | None = None
    """Gold links of the validation data, Pharaoh or NAACL: they choose the threshold of links."""
    source: str | None = None
    """Column or file extension of the source language."""
    target: str | None = None
    """Column or file extension of the target language."""
    lowercase: bool = True
    """Ignore case."""
    max_words: Annotated[int, between(1, 1000)] = 200
    """Pairs with longer sentences are skipped in training, with a report."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.valid_gold is not None and self.valid is None:
            raise OptionError("valid_gold", "requires valid, which was not given")


@dataclass(frozen=True)
class AlignerConfig:
    """The hidden Markov models of both directions, and the prior of their tables."""

    position_free: Annotated[int, between(1, 1000)] = 5
    """Number of initial iterations that ignore word positions; later ones learn the chain too."""
    empty_probability: Annotated[float, Bounds(0, 1, low_open=True, high_open=True)] = 0.2
    """Probability that a word has no counterpart."""
    agreement: Annotated[float, between(0, 1)] = 1.0
    """Share of the product of both directions in the expected counts; 0 trains them separately."""
    concentration: Annotated[float, Bounds(0, low_open=True, high_open=True)] = 0.1
    """Dirichlet prior of each pair of words that occur together; smaller is sparser."""
    similar_prior: Annotated[float, Bounds(0, high_open=True)] = 0.3
    """Added to the prior of words that begin alike, times the square of the shared proportion."""
    prefix_prior: Annotated[float, Bounds(0, high_open=True)] = 5.0
    """Added to the prior, times the probability of the word given the prefix of the other one."""
    prefix_letters: Annotated[int, between(1, 100)] = 5
    """Number of letters of a prefix; rare words share prefixes with others."""
    farthest: Annotated[int, between(1, 1000)] = 30
    """Longest move in words with a probability of its own; longer moves count as this one."""

    def __post_init__(self) -> None:
        check_fields(self)
