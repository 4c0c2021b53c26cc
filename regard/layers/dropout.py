"""Dropout whose random numbers are cheap on a CPU."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

LEVELS = 1 << 16
"""The values of 16 random bits."""


class Dropout(nn.Module):
    """Each number is zero with probability p in training, the others grow by 1/(1 − p).

    torch generates a number of 32 bits for each; here one of 64 bits serves four, so that p is
    rounded to a multiple of 1/65536. A transformer spends a fifth of its time on a CPU otherwise.
    Srivastava and others, 2014: https://jmlr.org/papers/v15/srivastava14a.html
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout {p}: expected a probability from 0 to 1")
        self.p = p

    def forward(self, x: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
        """The input with some numbers set to zero."""
        if not self.training or self.p == 0:
            return x
        dropped = round(self.p * LEVELS)
        if x.device.type != "cpu" or dropped in (0, LEVELS):
            return F.dropout(x, self.p)
        random = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(1 << 63), None)
        kept = random.view(torch.int16)[: x.numel()].view(x.shape) >= dropped - LEVELS // 2
        return x * kept.to(x.dtype).mul_(LEVELS / (LEVELS - dropped))

    def extra_repr(self) -> str:
        """The probability of dropout."""
        return f"p={self.p}"
