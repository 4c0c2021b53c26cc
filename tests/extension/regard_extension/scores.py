"""A score by distance: keys near the query get more attention."""

import torch
from torch import Tensor


def negative_distance(query: Tensor, key: Tensor) -> Tensor:
    """-‖q - k‖ for each pair."""
    return -torch.cdist(query, key)
