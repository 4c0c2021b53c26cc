"""Weights other than a model's own: how far apart they are, and a search for harmless ones."""

import torch
from torch import Tensor, nn

TOLERANCE = 0.05
"""How far an adversary may change probabilities (total variation)."""


def divergence(first: Tensor, second: Tensor) -> Tensor:
    """Jensen-Shannon divergence of weights in bits: 0 where they are equal, at most 1."""
    mean = (first + second) / 2
    both = [(p * ((p + 1e-12) / (mean + 1e-12)).log2()).sum(-1) for p in (first, second)]
    return (both[0] + both[1]) / 2


def adversarial_share(network: nn.Module, words: Tensor, weights: Tensor, steps: int) -> float:
    """For how many texts weights are found that differ by half a bit, with the same output."""
    probabilities = network(words, weights)[0].softmax(-1).detach()
    scores = torch.randn(weights.shape).requires_grad_()
    optimizer = torch.optim.Adam([scores], lr=0.2)
    for _ in range(steps):
        other = scores.softmax(-1)
        change = (network(words, other)[0].softmax(-1) - probabilities).abs().sum(-1) / 2
        loss = (100 * (change - TOLERANCE / 2).clamp(min=0) - divergence(weights, other)).sum()
        (scores.grad,) = torch.autograd.grad(loss, scores)
        optimizer.step()
    other = scores.detach().softmax(-1)
    change = (network(words, other)[0].softmax(-1) - probabilities).abs().sum(-1) / 2
    return float(((change <= TOLERANCE) & (divergence(weights, other) > 0.5)).float().mean())
