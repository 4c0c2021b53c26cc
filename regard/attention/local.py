"""Luong's local attention: attend near a centre only, with any score.

*local-m*: the centre is the query's own position. *local-p*: it is predicted from the query, and a
Gaussian around it favours what is near. Use them as mask and bias of `attend`::

    centre = torch.arange(queries).float()                  # local-m
    centre = predict(query, source_lengths)                 # local-p, predict = LocalPrediction(…)
    attend(query, key, value, masks.lengths(n) & local_mask(centre, keys, width),
           bias=local_bias(centre, keys, width), score=…)

Luong multiplies the weights by the Gaussian after the softmax, so that they no longer sum to one;
here its logarithm is a bias before it: the same shape, and rows that sum to one.

Luong, Pham and Manning, 2015, https://arxiv.org/abs/1508.04025
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn


def local_mask(
    centre: Float[Tensor, "*b q"], keys: int, width: int | float
) -> Bool[Tensor, "*b q k"]:
    """Open within `width` of the centre: |k - centre| ≤ width.

    >>> local_mask(torch.tensor([1.0]), 4, 1)
    tensor([[ True,  True,  True, False]])
    """
    return _distance(centre, keys).abs() <= width


def local_bias(
    centre: Float[Tensor, "*b q"], keys: int, width: int | float
) -> Float[Tensor, "*b q k"]:
    """The logarithm of a Gaussian around the centre, -(k - centre)² / 2σ², with σ = width / 2."""
    return -2.0 * (_distance(centre, keys) / width) ** 2


class LocalPrediction(nn.Module):
    """The centre of local-p: length · sigmoid(vᵀ tanh(W query))."""

    def __init__(self, query_size: int, hidden: int | None = None) -> None:
        super().__init__()
        hidden = query_size if hidden is None else hidden
        self.hidden = nn.Linear(query_size, hidden, bias=False)
        self.centre = nn.Linear(hidden, 1, bias=False)

    def forward(
        self, query: Float[Tensor, "*b q d"], length: Int[Tensor, "*#b"] | int
    ) -> Float[Tensor, "*b q"]:
        """The centre of each query, from 0 to the length of its source."""
        share: Tensor = self.centre(self.hidden(query).tanh()).squeeze(-1).sigmoid()
        return share * (length[..., None] if isinstance(length, Tensor) else length)


def _distance(centre: Tensor, keys: int) -> Tensor:
    return torch.arange(keys, device=centre.device, dtype=centre.dtype) - centre[..., None]
