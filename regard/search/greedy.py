"""Greedy search: the most likely token at every step."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.search.hypotheses import Hypothesis
from regard.search.penalties import LengthPenalty, no_length_penalty
from regard.search.single_path import follow
from regard.search.step import AllowedKeys, Limit, Prefix, Step, prepare


@torch.no_grad()
def greedy(
    step: Step,
    state: Any,
    *,
    bos: int | Int[Tensor, " b"],
    eos: int,
    limit: Limit,
    length_penalty: LengthPenalty = no_length_penalty,
    prefix: Prefix | None = None,
    allowed: AllowedKeys | None = None,
) -> list[Hypothesis]:
    """yₜ = argmax p(y | y₁ … yₜ₋₁), for each sentence; among equals the lowest token.

    `limit` is the most tokens that a sentence may have, the end token included.
    """
    start = prepare(state, bos, eos, limit, prefix, allowed)
    return follow(step, state, start, choose_most_likely, length_penalty)


def choose_most_likely(
    log_probabilities: Float[Tensor, "n v"],
    position: int,
    sentences: Int[Tensor, " n"],
    tokens: Int[Tensor, " n"],
) -> Int[Tensor, " n"]:
    """The most likely next token of each row."""
    return log_probabilities.max(1).indices
