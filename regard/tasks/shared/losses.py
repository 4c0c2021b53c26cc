"""Losses that several tasks use, and word dropout."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.data.tokenizers.tokenizer import UNK
from regard.devices import widest_float

CHUNK = 1 << 18
"""Logits that are processed together: about as many as the cache holds."""
BALANCE_WEIGHT = 0.01
"""Weight of the load-balance loss of experts (Fedus et al., 2021)."""


def balance_loss(balance: Float[Tensor, ""] | None) -> Float[Tensor, ""] | None:
    """The weighted load-balance loss of experts, where there are any."""
    return None if balance is None else BALANCE_WEIGHT * balance


def drop_words(words: Int[Tensor, "b t"], probability: float) -> Int[Tensor, "b t"]:
    """Word dropout: some words replaced by the unknown token; 0 is padding."""
    return words.masked_fill(
        (torch.rand(words.shape, device=words.device) < probability) & (words != 0), UNK
    )


def next_token_loss(
    logits: Float[Tensor, "b t v"], targets: Int[Tensor, "b t"], smoothing: float
) -> Float[Tensor, ""]:
    """Cross-entropy of each next token, summed; 0 is padding.

    Where a gradient is needed, the logits are overwritten: their memory becomes the gradient's.
    With thousands of words, copying them would take longer than all the rest of a small model.
    """
    rows, classes = logits.flatten(0, 1), targets.flatten()
    if rows.dtype == torch.float32 and rows.requires_grad and rows.is_contiguous():
        return _InPlaceCrossEntropy.apply(rows, classes, smoothing)  # type: ignore[no-untyped-call,no-any-return]
    if smoothing == 0.0 and not rows.requires_grad:
        step = max(1, CHUNK // rows.shape[-1])
        parts = zip(rows.split(step), classes.split(step), strict=True)
        return sum((_cross_entropy(x, y) for x, y in parts), start=rows.new_zeros(()))
    return F.cross_entropy(
        rows, classes, ignore_index=0, reduction="sum", label_smoothing=smoothing
    )


def _cross_entropy(x: Float[Tensor, "n v"], y: Int[Tensor, "n"]) -> Float[Tensor, ""]:
    loss = x.logsumexp(-1) - x.gather(-1, y.unsqueeze(-1)).squeeze(-1)
    return loss.masked_fill(y == 0, 0).sum()


class _InPlaceCrossEntropy(torch.autograd.Function):
    """L = Σ log Σ_v e^x_v − Σ_v y_v x_v, dL/dx = softmax(x) − y; y is smoothed."""

    @staticmethod
    def forward(
        ctx: Any, logits: Float[Tensor, "n v"], targets: Int[Tensor, "n"], smoothing: float
    ) -> Float[Tensor, ""]:
        size = logits.shape[-1]
        spread = smoothing / size
        total = logits.new_zeros((), dtype=widest_float(logits.device))
        step = max(1, CHUNK // size)
        gradient = logits.detach()
        for x, y in zip(gradient.split(step), targets.split(step), strict=True):
            here, y = y != 0, y.unsqueeze(-1)
            top = x.amax(-1, keepdim=True)
            right = x.gather(-1, y)
            mean = x.sum(-1) * spread if smoothing else 0.0
            x.sub_(top).exp_()
            mass = x.sum(-1, keepdim=True)
            loss = (mass.log() + top - (1 - smoothing) * right).squeeze(-1) - mean
            total += loss.masked_fill(~here, 0).sum()
            x.mul_(here.unsqueeze(-1) / mass)
            if smoothing:
                x.sub_(spread * here.unsqueeze(-1))
            x.scatter_add_(-1, y, (smoothing - 1) * here.unsqueeze(-1).to(x.dtype))
        ctx.gradient = gradient
        return total.to(logits.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Float[Tensor, ""]) -> tuple[Tensor, None, None]:
        return ctx.gradient.mul_(upstream), None, None
