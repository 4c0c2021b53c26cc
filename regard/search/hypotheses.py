"""Outputs of a search, each with its own attention: rebuilt from what was fed at each step.

The weights of a step are kept once, for all rows together, with each row's parent in the step
before. Only the hypotheses that are returned are traced back through their parents, so that
nothing is moved while the beam changes places.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.search.steps import Weights


@dataclass(frozen=True)
class Hypothesis:
    """One output of a search.

    `tokens` has all that was produced, the end token included; `finished` is False where the
    limit cut it off, and then there is no end token. `score` is `log_probability` after length
    normalisation and coverage. `weights` are [..., t, k]: row t is where the search looked as it
    produced token t.
    """

    tokens: list[int]
    score: float
    log_probability: float
    token_log_probabilities: list[float]
    weights: Weights = field(repr=False)
    finished: bool

    @property
    def output(self) -> list[int]:
        """The tokens without the end token."""
        return self.tokens[:-1] if self.finished else self.tokens


class Fed(NamedTuple):
    """One step: the tokens that were fed, whence each row came (None: unmoved), what it gave."""

    tokens: Int[Tensor, " n"]
    parents: Int[Tensor, " n"] | None
    log_probabilities: Float[Tensor, " n"]
    weights: Weights


class Ended(NamedTuple):
    """Hypotheses that ended at one step, with the row that produced their last token."""

    step: int
    sentences: Int[Tensor, " e"]
    rows: Int[Tensor, " e"]
    tokens: Int[Tensor, " e"]
    token_log_probabilities: Float[Tensor, " e"]
    log_probabilities: Float[Tensor, " e"]
    scores: Float[Tensor, " e"]
    finished: Bool[Tensor, " e"]


class End(NamedTuple):
    """One of the hypotheses that ended, in plain numbers."""

    step: int
    sentence: int
    row: int
    token: int
    token_log_probability: float
    log_probability: float
    score: float
    finished: bool


class History:
    """All steps of one search, and the hypotheses that ended in it."""

    def __init__(self) -> None:
        self.fed: list[Fed] = []
        self.ended: list[Ended] = []

    def add(self, fed: Fed) -> None:
        """Remember one step."""
        if self.fed and fed.weights.keys() != self.fed[0].weights.keys():
            raise ValueError(
                f"a step must return the same weights each time: first {list(self.fed[0].weights)},"
                f" at position {len(self.fed)} {list(fed.weights)}"
            )
        self.fed.append(fed)

    def best(self, sentences: int, nbest: int) -> list[list[Hypothesis]]:
        """The n best hypotheses of each sentence: finished ones first, then by score, then age."""
        found: list[list[End]] = [[] for _ in range(sentences)]
        for step, *columns in self.ended:
            for numbers in zip(*(column.tolist() for column in columns), strict=True):
                end = End(step, *numbers)
                found[end.sentence].append(end)
        plain = [_Plain.of(fed) for fed in self.fed]
        return [
            [self._rebuilt(end, plain) for end in sorted(ends, key=_rank)[:nbest]] for ends in found
        ]

    def _rebuilt(self, end: End, plain: Sequence["_Plain"]) -> Hypothesis:
        rows, tokens, token_log_probabilities = [end.row], [], []
        for fed in reversed(plain[1 : end.step + 1]):
            row = rows[-1]
            tokens.append(fed.tokens[row])
            token_log_probabilities.append(fed.log_probabilities[row])
            rows.append(row if fed.parents is None else fed.parents[row])
        rows.reverse()
        return Hypothesis(
            tokens=[*tokens[::-1], end.token],
            score=end.score,
            log_probability=end.log_probability,
            token_log_probabilities=[*token_log_probabilities[::-1], end.token_log_probability],
            weights={name: self._looks(name, rows) for name in self.fed[0].weights},
            finished=end.finished,
        )

    def _looks(self, name: str, rows: Sequence[int]) -> Float[Tensor, "*h t k"]:
        looks = [fed.weights[name][row] for fed, row in zip(self.fed, rows, strict=False)]
        keys = max(look.shape[-1] for look in looks)
        # Attention over the output itself has one key more at each step.
        padded = [
            look
            if look.shape[-1] == keys
            else torch.nn.functional.pad(look, (0, keys - look.shape[-1]))
            for look in looks
        ]
        return torch.stack(padded, dim=-2)


class _Plain(NamedTuple):
    """A step as lists, for tracing."""

    tokens: list[int]
    parents: list[int] | None
    log_probabilities: list[float]

    @classmethod
    def of(cls, fed: Fed) -> "_Plain":
        parents = None if fed.parents is None else fed.parents.tolist()
        return cls(fed.tokens.tolist(), parents, fed.log_probabilities.tolist())


def _rank(end: End) -> tuple[bool, float]:
    return not end.finished, -end.score
