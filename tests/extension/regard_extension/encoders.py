"""An encoder in which each word attends evenly to itself and its neighbours."""

import torch
from torch import Tensor, nn

from regard.models.encoders import Context, real_positions
from regard.models.layer_options import LayerOptions


class NeighbourEncoder(nn.Module):
    """z = tanh(W · mean of the word and its neighbours)."""

    needs_positions = False
    attends = False
    can_be_causal = True

    def __init__(self, options: LayerOptions) -> None:
        super().__init__()
        self.size, self.causal = options.width, options.causal
        self.project = nn.Linear(options.width, options.width)

    def forward(self, vectors: Tensor, lengths: Tensor, *, need_weights: bool = False) -> Context:
        positions = torch.arange(vectors.shape[1])
        distance = positions[:, None] - positions
        near = (distance <= 1) & (distance >= (0 if self.causal else -1))
        allowed = (near & real_positions(vectors.shape[1], lengths)[:, None]).to(vectors)
        weights = allowed / allowed.sum(-1, keepdim=True).clamp(min=1)
        states = self.project(weights @ vectors).tanh()
        named = {"encoder.0.self": weights[:, None]} if need_weights else {}
        return Context.from_states(states, lengths, named)
