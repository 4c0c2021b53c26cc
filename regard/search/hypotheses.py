"""Outputs of a search, each with its own attention, rebuilt from the history of its steps.

A search feeds n rows to each step, one row per live hypothesis. Between two steps rows are dropped,
duplicated and reordered. The history does not follow that: it stores what each step was fed and
what it returned, for all rows together, and for each row its *parent*, the row of the step before
that it continues. A hypothesis that ends is stored as the row that produced its last token. Only
the hypotheses that are returned are traced back, from that row through its parents.

    step        0            1               2
    fed       [bos]      [a, b, c]       [d, e, f]        tokens of each row
    parents    None      [0, 0, 0]       [1, 1, 0]        rows of the step before

Row 0 of step 2 was fed "d" and continues row 1 of step 1, which was fed "b": its tokens so far are
"b d". The token that a row *produces* is fed at the next step, or is the last one and stands in
`EndedHypotheses`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.search.step import Weights


@dataclass(frozen=True)
class Hypothesis:
    """One output of a search.

    `tokens` are all that were produced, the end token included; `finished` is False where the
    limit truncated it, and then there is no end token. `normalized_log_probability` is
    `log_probability` after the length and coverage penalties; hypotheses are ranked by it.
    `weights` are [..., t, k]: row t is the attention of the step that produced token t.
    """

    tokens: list[int]
    normalized_log_probability: float
    log_probability: float
    token_log_probabilities: list[float]
    weights: Weights = field(repr=False)
    finished: bool

    @property
    def output(self) -> list[int]:
        """The tokens without the end token."""
        return self.tokens[:-1] if self.finished else self.tokens


class StepRecord(NamedTuple):
    """One step of a search: what was fed to it, and the attention weights that it returned.

    `parents` are rows of the step before; None means that every row continues the same row.
    `log_probabilities` are those of the fed tokens, as the step before gave them.
    """

    tokens: Int[Tensor, " n"]
    parents: Int[Tensor, " n"] | None
    log_probabilities: Float[Tensor, " n"]
    weights: Weights


class EndedHypotheses(NamedTuple):
    """Hypotheses that ended at one step, with the row that produced their last token."""

    step: int
    sentences: Int[Tensor, " e"]
    rows: Int[Tensor, " e"]
    tokens: Int[Tensor, " e"]
    token_log_probabilities: Float[Tensor, " e"]
    log_probabilities: Float[Tensor, " e"]
    normalized_log_probabilities: Float[Tensor, " e"]
    finished: Bool[Tensor, " e"]


class EndedHypothesis(NamedTuple):
    """One hypothesis that ended, as plain numbers."""

    step: int
    sentence: int
    row: int
    token: int
    token_log_probability: float
    log_probability: float
    normalized_log_probability: float
    finished: bool


class History:
    """All steps of one search, and the hypotheses that ended in it."""

    def __init__(self) -> None:
        self.fed: list[StepRecord] = []
        self.ended: list[EndedHypotheses] = []

    def add(self, fed: StepRecord) -> None:
        """Store one step."""
        if self.fed and fed.weights.keys() != self.fed[0].weights.keys():
            raise ValueError(
                f"a step must return the same weights each time: first {list(self.fed[0].weights)},"
                f" at position {len(self.fed)} {list(fed.weights)}"
            )
        self.fed.append(fed)

    def best(self, sentences: int, nbest: int) -> list[list[Hypothesis]]:
        """The n best hypotheses of each sentence, finished ones first; among equals the oldest."""
        ended: list[list[EndedHypothesis]] = [[] for _ in range(sentences)]
        for step, *columns in self.ended:
            for numbers in zip(*(column.tolist() for column in columns), strict=True):
                end = EndedHypothesis(step, *numbers)
                ended[end.sentence].append(end)
        plain = [_Plain.of(fed) for fed in self.fed]
        return [
            [self._rebuild(end, plain) for end in sorted(ends, key=_rank)[:nbest]] for ends in ended
        ]

    def _rebuild(self, end: EndedHypothesis, plain: Sequence["_Plain"]) -> Hypothesis:
        """Trace one hypothesis back from the row that produced its last token."""
        rows, tokens, token_log_probabilities = [end.row], [], []
        # Step 0 was fed the start token, which is no part of the output; the last token was
        # never fed. So steps 1 … end.step were fed tokens 0 … end.step - 1 of the output.
        for fed in reversed(plain[1 : end.step + 1]):
            row = rows[-1]
            tokens.append(fed.tokens[row])
            token_log_probabilities.append(fed.log_probabilities[row])
            rows.append(row if fed.parents is None else fed.parents[row])
        rows.reverse()
        return Hypothesis(
            tokens=[*tokens[::-1], end.token],
            normalized_log_probability=end.normalized_log_probability,
            log_probability=end.log_probability,
            token_log_probabilities=[*token_log_probabilities[::-1], end.token_log_probability],
            weights={name: self._weights(name, rows) for name in self.fed[0].weights},
            finished=end.finished,
        )

    def _weights(self, name: str, rows: Sequence[int]) -> Float[Tensor, "*h t k"]:
        # `rows` end with the hypothesis; later steps of the search are not its own.
        looks = [fed.weights[name][row] for fed, row in zip(self.fed, rows, strict=False)]
        keys = max(look.shape[-1] for look in looks)
        # Self-attention over the output has one more key at each step.
        padded = [
            look
            if look.shape[-1] == keys
            else torch.nn.functional.pad(look, (0, keys - look.shape[-1]))
            for look in looks
        ]
        return torch.stack(padded, dim=-2)


class _Plain(NamedTuple):
    """A step as Python lists, which are read row by row much faster than tensors."""

    tokens: list[int]
    parents: list[int] | None
    log_probabilities: list[float]

    @classmethod
    def of(cls, fed: StepRecord) -> "_Plain":
        parents = None if fed.parents is None else fed.parents.tolist()
        return cls(fed.tokens.tolist(), parents, fed.log_probabilities.tolist())


def _rank(end: EndedHypothesis) -> tuple[bool, float]:
    return not end.finished, -end.normalized_log_probability
