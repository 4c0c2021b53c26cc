"""Forced decoding: the log-probability and the attention of a given output."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.search.hypotheses import Hypothesis
from regard.search.penalties import Coverage, LengthPenalty, no_length_penalty
from regard.search.single_path import follow
from regard.search.step import AllowedKeys, Step, check_vocabulary, prepare, sentences_of


@torch.no_grad()
def force_decode(
    step: Step,
    state: Any,
    targets: Int[Tensor, "b t"],
    lengths: Int[Tensor, " b"] | None = None,
    *,
    bos: int | Int[Tensor, " b"],
    eos: int,
    length_penalty: LengthPenalty = no_length_penalty,
    coverage: Coverage | None = None,
    allowed: AllowedKeys | None = None,
) -> list[Hypothesis]:
    """log p(y | x) = Σₜ log p(yₜ | y₁ … yₜ₋₁, x) of the given targets, with their attention.

    The first `lengths` tokens of each row count (all, where None), the end token among them if the
    output is to be finished.
    """
    b, t = targets.shape
    sentences, _ = sentences_of(state, bos)
    if sentences != b:
        raise ValueError(f"{b} targets for a state of {sentences} sentences")
    limit = torch.full((b,), t, device=targets.device) if lengths is None else lengths
    start = prepare(state, bos, eos, limit, allowed=allowed)
    if start.longest > t and b:
        raise ValueError(f"targets {list(targets.shape)} are shorter than a length {start.longest}")
    inner = torch.arange(t, device=targets.device) < limit[:, None] - 1
    if ((targets == eos) & inner).any():
        raise ValueError(f"a target continues after its end token {eos}")

    def choose_target(
        log_probabilities: Float[Tensor, "n v"],
        position: int,
        sentences: Int[Tensor, " n"],
        tokens: Int[Tensor, " n"],
    ) -> Int[Tensor, " n"]:
        return check_vocabulary(targets[:, position].index_select(0, sentences), log_probabilities)

    return follow(step, state, start, choose_target, length_penalty, coverage)
