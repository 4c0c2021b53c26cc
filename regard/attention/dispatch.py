"""Which path a call to `attend` takes, and why; every path gives the same answer."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.attention import additive
from regard.attention.arguments import Arguments, check_arguments
from regard.attention.masks import Mask
from regard.attention.normalizers import softmax
from regard.attention.scores import is_additive, is_dot


class Path(NamedTuple):
    """The name of a path and the reason why it was taken."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


def explain_path(
    query: Tensor, key: Tensor, value: Tensor, mask: Mask | Tensor | None = None, **options: Any
) -> Path:
    """Which path `attend` takes for these same arguments, and why.

    >>> import torch
    >>> x = torch.zeros(2, 5, 8)
    >>> print(explain_path(x, x, x))
    plain: the weights are requested
    >>> print(explain_path(x, x, x, need_weights=False))
    fused: a dot-type score under softmax, no weights requested
    """
    return choose_path(check_arguments(query, key, value, mask, **options))


def choose_path(call: Arguments) -> Path:
    """The fastest path that can serve the call."""
    if call.shape[-1] == 0:
        return Path("plain", "there are no keys")
    if reason := _needs_weights(call):
        return Path("plain", reason + _how_scores(call))
    if is_additive(call.score):
        if call.bias is not None:
            return Path("plain", "a bias on an additive score" + _how_scores(call))
        name, reason = additive.choose(call.query, call.key, call.value)
        return Path("plain" if name == "plain" else f"additive {name}", reason)
    if not is_dot(call.score):
        return Path("plain", "the score is not a dot product")
    if call.bias is not None and call.bias.requires_grad and torch.is_grad_enabled():
        return Path("plain", "the bias is learned, and the fused kernel gives it no gradient")
    return Path("fused", "a dot-type score under softmax, no weights requested")


def _needs_weights(call: Arguments) -> str | None:
    """Why the [q, k] weights must be computed, if they must."""
    if call.need_weights:
        return "the weights are requested"
    if call.normalize is not softmax:
        return f"the normalizer is {getattr(call.normalize, '__name__', call.normalize)}"
    if call.softcap is not None:
        return "soft cap"
    if call.dropout > 0.0:
        return "dropout applies to the weights"
    return None


def _how_scores(call: Arguments) -> str:
    if not is_additive(call.score):
        return ""
    name, _ = additive.choose(call.query, call.key)
    return f" (additive scores by {name})"
