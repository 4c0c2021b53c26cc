"""Attributions: how much each token mattered to each output, by gradients, by gaps, by attention.

F is the log-odds of what the model chose, x the vectors of the tokens. All give [o, t]: a row an
output, a number a token.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.inference.interventions import (
    attentions,
    changed_weights,
    cut_off,
    given_vectors,
    held,
    recorded,
    uniform,
)
from regard.inference.questions import Question
from regard.inference.reach import Reached

MOST_STEPS = 512

Values = Float[np.ndarray, "o t"]
Vectors = list[Tensor]
"""[t, e] each: what the first layers make of the tokens."""


class Integrated(NamedTuple):
    """Integrated gradients, and what they should sum to: F(x) - F(0)."""

    values: Values
    difference: Float[np.ndarray, "o"]
    steps: int

    @property
    def gap(self) -> Float[np.ndarray, "o"]:
        """What is missing from completeness, which the quadrature leaves."""
        missing: np.ndarray = self.values.sum(1) - self.difference
        return missing


def attention(question: Question) -> Reached:
    """Where each output looked, and what is left of it when attention is followed down."""
    kept = torch.ones(1, question.tokens, dtype=torch.bool)
    with torch.no_grad():
        answer = question.read(kept, torch.tensor(question.places[-1:]), True)
    return question.reach(answer.weights, question.places, question.tokens)


def gradients(question: Question) -> tuple[list[Tensor], Vectors]:
    """∂F/∂x of each output, [o, t, e] for each of the first layers, and x."""
    vectors = first_vectors(question)
    which = torch.arange(len(question.places))
    found: list[list[Tensor]] = [[] for _ in vectors]
    for some in which.split(question.at_once):
        given = [x.expand(len(some), -1, -1) for x in vectors]
        for part, gradient in zip(found, _gradient(question, given, some)[0], strict=True):
            part.append(gradient)
    return [torch.cat(parts) for parts in found], vectors


def gradient_norm(question: Question) -> Values:
    """‖∂F/∂xᵢ‖: how much the output would change with the token's vector.

    Simonyan et al., 2014, https://arxiv.org/abs/1312.6034
    """
    found, _ = gradients(question)
    return _numbers(sum(part.square().sum(-1) for part in found)).clip(0) ** 0.5


def gradient_times_input(question: Question) -> Values:
    """xᵢ · ∂F/∂xᵢ: a token's share of a linear model's output, up to its bias.

    Shrikumar et al., 2016, https://arxiv.org/abs/1605.01713
    """
    found, vectors = gradients(question)
    parts = zip(found, vectors, strict=True)
    return _numbers(sum((gradient * x).sum(-1) for gradient, x in parts))


def integrated_gradients(
    question: Question, steps: int = 32, *, tolerance: float = 0.01
) -> Integrated:
    """xᵢ · ∫₀¹ ∂F(αx)/∂xᵢ dα: shares that sum to F(x) - F(0), where every vector is zero.

    By Gauss and Legendre's quadrature, with twice as many points until the sum is right to
    `tolerance` of itself (or there are 512): paths through saturated gates are steep.
    Sundararajan, Taly and Yan, 2017, https://arxiv.org/abs/1703.01365
    """
    vectors = first_vectors(question)
    which = torch.arange(len(question.places))
    ends = [torch.stack([torch.zeros_like(x), x]) for x in vectors]
    values: Tensor = torch.cat(
        [_log_odds(question, [e[end] for e in ends], which)[None] for end in (0, 1)]
    )
    difference = _numbers(values[1] - values[0])
    while True:
        found = Integrated(_integral(question, vectors, steps), difference, steps)
        close = np.abs(found.gap) <= tolerance * np.maximum(np.abs(difference), 0.1)
        if close.all() or 2 * steps > MOST_STEPS:
            return found
        steps *= 2


def leave_one_out(question: Question) -> Values:
    """F(x) - F(x without token i); 0 for what an output does not depend on or cannot lose."""
    outputs, tokens = question.visible.shape
    pairs = np.argwhere(question.visible)
    kept = torch.ones(len(pairs) + outputs, tokens, dtype=torch.bool)
    kept[torch.arange(len(pairs)), torch.from_numpy(pairs[:, 1])] = False
    which = torch.cat([torch.from_numpy(pairs[:, 0]), torch.arange(outputs)])
    odds = np.concatenate([_numbers(part) for part in _each(question, kept, which)])
    found = np.zeros((outputs, tokens))
    found[pairs[:, 0], pairs[:, 1]] = odds[len(pairs) :][pairs[:, 0]] - odds[: len(pairs)]
    return found


def masked_error(question: Question) -> dict[str, Values]:
    """How much gradient reaches each token, ‖∂F/∂xᵢ‖, with attention as it is and changed.

    Attention masks the error that is passed back: a token with weight aᵢ receives aᵢ times the
    error through its value. `values` holds the weights constant, so that this is the only way;
    `around` lets nothing through attention at all; `uniform` gives every token the same weight.
    """
    parts = attentions(question.network)
    ways: dict[str, Callable[[], AbstractContextManager[None]]] = {
        "gradient": nullcontext,
        "gradient through values": partial(changed_weights, parts, held),
        "gradient around attention": partial(cut_off, parts),
        "gradient under uniform attention": partial(changed_weights, parts, uniform),
    }
    found = {}
    for name, way in ways.items():
        with way():
            found[name] = gradient_norm(question)
        if not parts:
            break
    return found


def first_vectors(question: Question) -> Vectors:
    """What the first layers make of the tokens, [t, e] each."""
    kept = torch.ones(1, question.tokens, dtype=torch.bool)
    with torch.no_grad(), recorded(question.first) as found:
        question.read(kept, torch.tensor(question.places[-1:]), False)
    return [part[0].detach() for part in found]


def _integral(question: Question, vectors: Vectors, steps: int) -> Values:
    points, shares = np.polynomial.legendre.leggauss(steps)
    alphas = torch.from_numpy((points + 1) / 2).to(vectors[0])
    outputs = len(question.places)
    total = np.zeros((outputs, question.tokens))
    rows = torch.arange(outputs * steps)
    for some in rows.split(question.at_once):
        which, point = some // steps, some % steps
        given = [alphas[point][:, None, None] * x for x in vectors]
        found, _ = _gradient(question, given, which)
        products = sum((g * x).sum(-1) for g, x in zip(found, vectors, strict=True))
        weighted = _numbers(products) * (shares / 2)[point.numpy()][:, None]
        np.add.at(total, which.numpy(), weighted)
    return total


def _gradient(question: Question, given: Vectors, which: Tensor) -> tuple[list[Tensor], Tensor]:
    """∂F/∂x at these vectors [b, t, e], and F."""
    leaves = [x.detach().clone().requires_grad_() for x in given]
    with torch.enable_grad(), given_vectors(question.first, leaves):
        kept = torch.ones(len(which), question.tokens, dtype=torch.bool)
        odds = question.log_odds(kept, which)
    if not odds.requires_grad:  # nothing but attention led to the words, and it was cut
        return [torch.zeros_like(x) for x in leaves], odds
    found = torch.autograd.grad(odds.sum(), leaves, allow_unused=True)
    whole = [torch.zeros_like(x) if g is None else g for x, g in zip(leaves, found, strict=True)]
    return whole, odds.detach()


@torch.no_grad()
def _log_odds(question: Question, vectors: Vectors, which: Tensor) -> Tensor:
    found = []
    for some in which.split(question.at_once):
        given = [x.expand(len(some), -1, -1) for x in vectors]
        kept = torch.ones(len(some), question.tokens, dtype=torch.bool)
        with given_vectors(question.first, given):
            found.append(question.log_odds(kept, some))
    return torch.cat(found)


@torch.no_grad()
def _each(question: Question, kept: Bool[Tensor, "b t"], which: Tensor) -> Iterator[Tensor]:
    for rows in torch.arange(len(kept)).split(question.at_once):
        yield question.log_odds(kept[rows], which[rows])


def _numbers(values: Tensor | int) -> np.ndarray:
    assert isinstance(values, Tensor)
    found: np.ndarray = values.detach().double().numpy()
    return found
