"""Length and coverage penalties, which make hypotheses of different lengths comparable.

    normalized(y) = log p(y | x) / lp(|y|) + β Σₖ log min(Σₜ a[t, k], 1)

Wu et al. (2016), Google's Neural Machine Translation System, section 7,
https://arxiv.org/abs/1609.08144.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.errors import unknown
from regard.search.step import Weights

LengthPenalty = Callable[[Float[Tensor, " l"]], Float[Tensor, " l"]]
"""From lengths to the divisors of the log-probabilities of hypotheses."""


def no_length_penalty(lengths: Float[Tensor, " l"]) -> Float[Tensor, " l"]:
    """lp = 1: hypotheses are compared by their log-probability."""
    return torch.ones_like(lengths)


def power(alpha: float = 1.0, before: int = 0) -> LengthPenalty:
    """lp(n) = n^α; with α = 1 hypotheses are compared by their mean log-probability per token.

    `before` counts further tokens before those of the hypothesis.
    """
    return lambda lengths: (lengths + before) ** alpha


def wu(alpha: float = 0.6) -> LengthPenalty:
    """lp(n) = ((5 + n) / 6)^α, gentler than n^α for short outputs (Wu et al. 2016)."""
    return lambda lengths: ((5 + lengths) / 6) ** alpha


LENGTH_PENALTIES: dict[str, Callable[[float], LengthPenalty]] = {
    "none": lambda alpha: no_length_penalty,
    "power": power,
    "wu": wu,
}
"""Length penalties by name, each made from its strength."""


def penalty_table(penalty: LengthPenalty, longest: int) -> Float[Tensor, " l"]:
    """lp(0), …, lp(longest), in float64; lp(0) is never used and stands as one."""
    lengths = torch.arange(1, longest + 1, dtype=torch.float64)
    values = penalty(lengths)
    slopes = values.diff()
    if not (values > 0).all() or not ((slopes >= 0).all() or (slopes <= 0).all()):
        raise ValueError(
            "a length penalty must be positive and monotonic, got "
            f"{values.tolist()} for lengths from 1"
        )
    return torch.cat([values.new_ones(1), values])


@dataclass(frozen=True)
class Coverage:
    """β Σₖ log min(Σₜ a[t, k], 1): penalises outputs that left a part of the source unattended.

    `weights` names the attention, whose heads are averaged; `keys` is True at real keys, False at
    padding. A key whose weights sum to less than `floor` counts as `floor`, so that attention with
    exact zeros has a finite penalty.
    """

    weights: str
    beta: float = 0.2
    keys: Bool[Tensor, "b k"] | None = None
    floor: float = 1e-6

    def __post_init__(self) -> None:
        if self.beta < 0:
            raise ValueError(f"a coverage penalty needs beta >= 0, got {self.beta}")

    def add(
        self,
        covered: Float[Tensor, "p k"] | None,
        parents: Int[Tensor, " n"] | None,
        weights: Weights,
    ) -> Float[Tensor, "n k"]:
        """The summed attention to each key so far, after one more step."""
        if self.weights not in weights:
            raise ValueError(unknown("attention weights", self.weights, weights))
        now = weights[self.weights]
        now = now.flatten(1, -2).mean(1) if now.ndim > 2 else now
        if covered is None:
            return now
        return now + (covered if parents is None else covered.index_select(0, parents))

    def penalty(
        self, covered: Float[Tensor, "n k"], sentences: Int[Tensor, " n"]
    ) -> Float[Tensor, " n"]:
        """The penalty of each hypothesis; at most zero."""
        logarithms = covered.clamp(self.floor, 1.0).log()
        if self.keys is not None:
            logarithms = logarithms.where(self.keys.index_select(0, sentences), 0.0)
        return self.beta * logarithms.sum(1)
