"""Greedy search: the most likely token, every time."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.search.hypotheses import Hypothesis
from regard.search.paths import follow
from regard.search.penalties import LengthPenalty, unnormalised
from regard.search.steps import Limit, Look, Prefix, Step, prepare


@torch.no_grad()
def greedy(
    step: Step,
    state: Any,
    *,
    bos: int | Int[Tensor, " b"],
    eos: int,
    limit: Limit,
    length_penalty: LengthPenalty = unnormalised,
    prefix: Prefix | None = None,
    look: Look | None = None,
) -> list[Hypothesis]:
    """yₜ = argmax p(y | y₁ … yₜ₋₁), for each sentence; among equals the lowest token.

    `limit` is the most tokens that a sentence may have, the end token included.
    """
    start = prepare(state, bos, eos, limit, prefix, look)
    return follow(step, state, start, most_likely, length_penalty)


def most_likely(
    log_probabilities: Float[Tensor, "n v"],
    position: int,
    sentences: Int[Tensor, " n"],
    tokens: Int[Tensor, " n"],
) -> Int[Tensor, " n"]:
    """The most likely next token of each row."""
    return log_probabilities.max(1).indices
