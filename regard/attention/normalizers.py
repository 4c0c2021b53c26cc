"""Normalizers: from scores to weights, over the keys that a query may attend to.

Each is a function ``(scores [*b, q, k], mask or None) -> weights [*b, q, k]``. Weights of masked
keys are exactly zero, and a fully masked row is all zeros, with zero gradient.

`NORMALIZERS` has one row per name. Another package adds rows with entry points in the group
"regard.normalizers"; a reference "package.module:function" serves in place of a name.
"""

import re
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.attention_tables import NORMALIZERS
from regard.errors import unknown
from regard.plugins import is_reference

Normalizer = Callable[[Tensor, Tensor | None], Tensor]
Scores = Float[Tensor, "*b k"]
Allowed = Bool[Tensor, "*#b #k"] | None


def softmax(scores: Scores, mask: Allowed = None) -> Scores:
    """wᵢ = exp(sᵢ) / Σⱼ exp(sⱼ).

    >>> softmax(torch.tensor([0.0, 0.0, 9.0]), torch.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    if mask is None:
        return scores.softmax(-1)
    return _fill(scores, mask, float("-inf")).softmax(-1).masked_fill(~mask, 0.0)


def sparsemax(scores: Scores, mask: Allowed = None) -> Scores:
    """The point of the simplex nearest to the scores: many weights are exactly zero.

    Martins and Astudillo, 2016, https://arxiv.org/abs/1602.02068
    """
    import entmax

    return _sparse(entmax.sparsemax, scores, mask)


def entmax15(scores: Scores, mask: Allowed = None) -> Scores:
    """Between softmax and sparsemax: wᵢ = max(0, sᵢ/2 - τ)², with τ so that they sum to one.

    Peters, Niculae and Martins, 2019, https://arxiv.org/abs/1905.05702
    """
    import entmax

    return _sparse(entmax.entmax15, scores, mask)


def sigmoid(scores: Scores, mask: Allowed = None) -> Scores:
    """wᵢ = 1 / (1 + exp(-sᵢ)): each key for itself; rows need not sum to one."""
    return _close(scores.sigmoid(), mask)


def hard(scores: Scores, mask: Allowed = None) -> Scores:
    """All weight on the best key; backward, the gradient of softmax (straight-through).

    Bengio, Léonard and Courville, 2013, https://arxiv.org/abs/1308.3432
    """
    soft = softmax(scores, mask)
    if scores.shape[-1] == 0:
        return soft
    best = soft.argmax(-1, keepdim=True)
    one_hot = _close(torch.zeros_like(soft).scatter(-1, best, 1.0), mask)
    return one_hot + (soft - soft.detach())


def sum(scores: Scores, mask: Allowed = None) -> Scores:
    """wᵢ = sᵢ / Σⱼ sⱼ: plain division, without the exponential; zeros where the sum is zero."""
    scores = _close(scores, mask)
    total = scores.sum(-1, keepdim=True)
    return torch.where(total == 0, 0.0, scores / torch.where(total == 0, 1.0, total))


def none(scores: Scores, mask: Allowed = None) -> Scores:
    """The scores themselves, zero where masked."""
    return _close(scores, mask)


def top_k(number: int) -> Normalizer:
    """Softmax over the `number` best keys of each query, zero elsewhere."""
    if number < 1:
        raise ValueError(f"top_k({number}): expected a whole number of at least 1")

    def top(scores: Scores, mask: Allowed = None) -> Scores:
        candidates = scores if mask is None else scores.masked_fill(~mask, float("-inf"))
        best = candidates.detach().topk(min(number, scores.shape[-1]), dim=-1).indices
        chosen = torch.zeros_like(scores, dtype=torch.bool).scatter(-1, best, True)
        return softmax(scores, chosen if mask is None else chosen & mask)

    top.__name__ = f"top_k({number})"
    return top


def normalizer_by_name(normalize: str | Normalizer) -> Normalizer:
    """The normalizer of this name (``"top_k(4)"`` for four keys) or reference.

    A function is returned as it is.
    """
    if isinstance(normalize, str):
        if best := re.fullmatch(r"top_k\((\d+)\)", normalize):
            return top_k(int(best[1]))
        if not is_reference(normalize) and normalize not in NORMALIZERS:
            raise ValueError(unknown("normalizer", normalize, [*NORMALIZERS, "top_k(4)"]))
        normalize = NORMALIZERS.resolve(normalize)
    if not callable(normalize) or isinstance(normalize, type):
        raise ValueError(
            f"a normalizer is a name or a function (scores, mask) -> weights; got {normalize!r}"
        )
    return normalize


def _close(weights: Tensor, mask: Tensor | None) -> Tensor:
    return weights if mask is None else weights.masked_fill(~mask, 0.0)


def _fill(scores: Tensor, mask: Tensor, low: Tensor | float) -> Tensor:
    """`low` at masked keys; zeros in fully masked rows, so that nothing is NaN there."""
    filled = torch.where(mask, scores, low)
    return filled.masked_fill(~mask.any(-1, keepdim=True), 0.0)


def _sparse(function: Callable[..., Tensor], scores: Tensor, mask: Tensor | None) -> Tensor:
    """A normalizer of the entmax package, with masks and empty rows.

    Both mappings give exactly zero to scores 2 or more below the best, so masked keys are put
    there: the sums inside stay finite, which they don't with -inf.
    """
    if scores.numel() == 0:
        return scores.softmax(-1)
    scores = _Once.apply(scores)  # type: ignore[no-untyped-call]
    if mask is None:
        return function(scores, dim=-1)
    best = scores.detach().masked_fill(~mask, float("-inf")).amax(-1, keepdim=True)
    return function(_fill(scores, mask, best - 4.0), dim=-1).masked_fill(~mask, 0.0)


class _Once(torch.autograd.Function):
    """The identity, differentiable once: entmax's own second derivative is wrong."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor) -> Tensor:
        return scores.view_as(scores)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        if torch.is_grad_enabled():
            raise RuntimeError(
                "sparsemax and entmax15 can be differentiated only once: use softmax where a "
                "second derivative (create_graph=True) is needed"
            )
        return gradient
