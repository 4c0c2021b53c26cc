"""Attributions: how much each token mattered to each output, by gradients, erasure or attention.

F is the log-odds of what the model chose, x the vectors of the tokens. All methods return [o, t]:
one row per output, one number per token.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.inference.explain.hooks import (
    block_gradient,
    change_weights,
    constant_weights,
    record_outputs,
    replace_vectors,
    uniform_weights,
)
from regard.tasks.shared.attention_flow import AttentionFlow
from regard.tasks.shared.attention_modules import attention_modules
from regard.tasks.shared.explain_target import ExplainTarget

MAX_STEPS = 512
"""Maximum number of points of the quadrature of integrated gradients."""

Values = Float[np.ndarray, "o t"]
Vectors = list[Tensor]
"""[t, e] each: the outputs of the input layers."""


@dataclass(frozen=True, eq=False)
class Attributions:
    """How much each token mattered to each output, by one method."""

    values: Values
    details: dict[str, Any] = field(default_factory=dict)
    """Further plain values, for the trace."""


def attention(target: ExplainTarget) -> Attributions | None:
    """The attention of each output: the mean over heads and layers next to the output."""
    return _flow_values(_attention_flow(target).direct)


def attention_rollout(target: ExplainTarget) -> Attributions | None:
    """Attention followed down the layers, where several are stacked.

    Abnar and Zuidema, 2020, https://arxiv.org/abs/2005.00928
    """
    return _flow_values(_attention_flow(target).rollout)


def gradients(target: ExplainTarget) -> tuple[list[Tensor], Vectors]:
    """∂F/∂x of each output, [o, t, e] for each input layer, and x."""
    vectors = input_vectors(target)
    outputs = torch.arange(len(target.positions))
    parts: list[list[Tensor]] = [[] for _ in vectors]
    for which in outputs.split(target.batch_size):
        given = [x.expand(len(which), -1, -1) for x in vectors]
        for part, gradient in zip(parts, _gradient(target, given, which), strict=True):
            part.append(gradient)
    return [torch.cat(part) for part in parts], vectors


def gradient_norm(target: ExplainTarget) -> Attributions:
    """‖∂F/∂xᵢ‖: how much the output would change with the token's vector.

    Simonyan et al., 2014, https://arxiv.org/abs/1312.6034
    """
    parts, _ = gradients(target)
    squares = _numbers(sum(part.square().sum(-1) for part in parts))
    return Attributions(squares.clip(0) ** 0.5)


def gradient_times_input(target: ExplainTarget) -> Attributions:
    """xᵢ · ∂F/∂xᵢ: a token's share of a linear model's output, up to its bias.

    Shrikumar et al., 2016, https://arxiv.org/abs/1605.01713
    """
    parts, vectors = gradients(target)
    products = zip(parts, vectors, strict=True)
    return Attributions(_numbers(sum((gradient * x).sum(-1) for gradient, x in products)))


def integrated_gradients(
    target: ExplainTarget, steps: int = 32, *, tolerance: float = 0.01
) -> Attributions:
    """xᵢ · ∫₀¹ ∂F(αx)/∂xᵢ dα: shares that sum to F(x) - F(0), where every vector is zero.

    By Gauss–Legendre quadrature, with twice as many points until the sum is right to `tolerance`
    of itself (or there are 512): paths through saturated gates are steep. The details have
    F(x) - F(0) and what is missing from it.
    Sundararajan, Taly and Yan, 2017, https://arxiv.org/abs/1703.01365
    """
    vectors = input_vectors(target)
    outputs = torch.arange(len(target.positions))
    zeros = [torch.zeros_like(x) for x in vectors]
    difference = _numbers(_log_odds(target, vectors, outputs) - _log_odds(target, zeros, outputs))
    while True:
        values = _integral(target, vectors, steps)
        gap = values.sum(1) - difference
        close = np.abs(gap) <= tolerance * np.maximum(np.abs(difference), 0.1)
        if close.all() or 2 * steps > MAX_STEPS:
            details = {
                "log_odds_above_baseline": difference.tolist(),
                "integration_gap": gap.tolist(),
                "integration_steps": steps,
            }
            return Attributions(values, details)
        steps *= 2


def ngram_votes(target: ExplainTarget) -> Attributions | None:
    """What the n-grams that a token belongs to add to the log-odds, by counts, not by attention."""
    return None if target.votes is None else Attributions(target.votes)


def leave_one_out(target: ExplainTarget) -> Attributions:
    """F(x) - F(x without token i); 0 for tokens that an output does not depend on."""
    outputs, tokens = target.visible.shape
    pairs = np.argwhere(target.visible)
    kept = torch.ones(len(pairs) + outputs, tokens, dtype=torch.bool)
    kept[torch.arange(len(pairs)), torch.from_numpy(pairs[:, 1])] = False
    which = torch.cat([torch.from_numpy(pairs[:, 0]), torch.arange(outputs)])
    odds = np.concatenate([_numbers(part) for part in _in_batches(target, kept, which)])
    values = np.zeros((outputs, tokens))
    values[pairs[:, 0], pairs[:, 1]] = odds[len(pairs) :][pairs[:, 0]] - odds[: len(pairs)]
    return Attributions(values)


def gradient_through_values(target: ExplainTarget) -> Attributions | None:
    """‖∂F/∂xᵢ‖ with the attention weights held constant.

    Attention masks the error that is passed back: a token with weight aᵢ receives aᵢ times the
    error through its value, which is the only way left here.
    """
    modules = attention_modules(target.network)
    return _gradient_under(target, change_weights(modules, constant_weights)) if modules else None


def gradient_around_attention(target: ExplainTarget) -> Attributions | None:
    """‖∂F/∂xᵢ‖ with no gradient through attention at all."""
    modules = attention_modules(target.network)
    return _gradient_under(target, block_gradient(modules)) if modules else None


def gradient_under_uniform_attention(target: ExplainTarget) -> Attributions | None:
    """‖∂F/∂xᵢ‖ with the same attention weight for every token."""
    modules = attention_modules(target.network)
    return _gradient_under(target, change_weights(modules, uniform_weights)) if modules else None


def _gradient_under(
    target: ExplainTarget, intervention: AbstractContextManager[None]
) -> Attributions:
    with intervention:
        return gradient_norm(target)


def _attention_flow(target: ExplainTarget) -> AttentionFlow:
    with torch.no_grad():
        reading = target.read(target.all_tokens(1), _last_position(target), True)
    return target.flow(reading.weights, target.positions, target.tokens)


def _flow_values(weights: Tensor | None) -> Attributions | None:
    return None if weights is None else Attributions(_numbers(weights))


def input_vectors(target: ExplainTarget) -> Vectors:
    """The outputs of the input layers for the whole text, [t, e] each."""
    with torch.no_grad(), record_outputs(target.input_layers) as outputs:
        target.read(target.all_tokens(1), _last_position(target), False)
    return [output[0].detach() for output in outputs]


def _last_position(target: ExplainTarget) -> Tensor:
    return target.outputs(torch.tensor([len(target.positions) - 1]))[0]


def _integral(target: ExplainTarget, vectors: Vectors, steps: int) -> Values:
    points, shares = np.polynomial.legendre.leggauss(steps)
    alphas = torch.from_numpy((points + 1) / 2).to(vectors[0])
    outputs = len(target.positions)
    total = np.zeros((outputs, target.tokens))
    rows = torch.arange(outputs * steps)
    for batch in rows.split(target.batch_size):
        which, point = batch // steps, batch % steps
        given = [alphas[point.to(x.device)][:, None, None] * x for x in vectors]
        parts = _gradient(target, given, which)
        products = sum((g * x).sum(-1) for g, x in zip(parts, vectors, strict=True))
        weighted = _numbers(products) * (shares / 2)[point.numpy()][:, None]
        np.add.at(total, which.numpy(), weighted)
    return total


def _gradient(target: ExplainTarget, given: Vectors, which: Tensor) -> list[Tensor]:
    """∂F/∂x at these vectors [b, t, e]."""
    leaves = [x.detach().clone().requires_grad_() for x in given]
    with torch.enable_grad(), replace_vectors(target.input_layers, leaves):
        odds = target.log_odds(target.all_tokens(len(which)), which)
    if not odds.requires_grad:  # only attention leads to the words, and its gradient is blocked
        return [torch.zeros_like(x) for x in leaves]
    parts = torch.autograd.grad(odds.sum(), leaves, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(leaves, parts, strict=True)]


@torch.no_grad()
def _log_odds(target: ExplainTarget, vectors: Vectors, which: Tensor) -> Tensor:
    parts = []
    for batch in which.split(target.batch_size):
        given = [x.expand(len(batch), -1, -1) for x in vectors]
        with replace_vectors(target.input_layers, given):
            parts.append(target.log_odds(target.all_tokens(len(batch)), batch))
    return torch.cat(parts)


@torch.no_grad()
def _in_batches(
    target: ExplainTarget, kept: Bool[Tensor, "b t"], which: Tensor
) -> Iterator[Tensor]:
    for rows in torch.arange(len(kept)).split(target.batch_size):
        yield target.log_odds(kept[rows], which[rows])


def _numbers(values: Tensor | int) -> np.ndarray:
    assert isinstance(values, Tensor)
    numbers: np.ndarray = values.detach().cpu().double().numpy()
    return numbers
