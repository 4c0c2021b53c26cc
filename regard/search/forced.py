"""Forced decoding: what the model thinks of an output that somebody else wrote."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.search.hypotheses import Hypothesis
from regard.search.paths import follow
from regard.search.penalties import Coverage, LengthPenalty, unnormalised
from regard.search.steps import Look, Step, prepare, sentences_of, within


@torch.no_grad()
def forced(
    step: Step,
    state: Any,
    targets: Int[Tensor, "b t"],
    lengths: Int[Tensor, " b"] | None = None,
    *,
    bos: int | Int[Tensor, " b"],
    eos: int,
    length_penalty: LengthPenalty = unnormalised,
    coverage: Coverage | None = None,
    look: Look | None = None,
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
    start = prepare(state, bos, eos, limit, look=look)
    if start.longest > t and b:
        raise ValueError(f"targets {list(targets.shape)} are shorter than a length {start.longest}")
    inner = torch.arange(t, device=targets.device) < limit[:, None] - 1
    if ((targets == eos) & inner).any():
        raise ValueError(f"a target goes on after its end token {eos}")

    def dictated(
        log_probabilities: Float[Tensor, "n v"],
        position: int,
        sentences: Int[Tensor, " n"],
        tokens: Int[Tensor, " n"],
    ) -> Int[Tensor, " n"]:
        return within(targets[:, position].index_select(0, sentences), log_probabilities)

    return follow(step, state, start, dictated, length_penalty, coverage)
