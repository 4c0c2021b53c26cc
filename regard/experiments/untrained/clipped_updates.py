"""Updates of a network whose gradients explode, with and without clipping."""

import torch
from torch import nn

WIDTH, RATE, CLIP = 32, 0.1, 1.0
"""Size of the words, learning rate, and the largest norm of a clipped gradient."""


def descend(
    network: nn.Module, clip: float, length: int, updates: int = 30
) -> tuple[list[float], list[float]]:
    """The norm of each update on the way to a random target, and the loss before it.

    clip = inf: no clipping.
    """
    optimizer = torch.optim.SGD(network.parameters(), RATE)
    words, target = 1e-3 * torch.randn(4, length, WIDTH).double(), torch.randn(4, WIDTH).double()
    lengths, steps, losses = torch.full((4,), length), list[float](), list[float]()
    for _ in range(updates):
        optimizer.zero_grad()
        loss = (network(words, lengths).states[:, -1] - target).square().mean()
        loss.backward()
        losses.append(float(loss.detach()))
        norm = float(nn.utils.clip_grad_norm_(network.parameters(), clip))
        steps.append(RATE * min(norm, clip))
        optimizer.step()
    return steps, losses
