"""Which way a call to `attend` is computed, and why: every path gives the same answer."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.attention import additive
from regard.attention.arguments import Arguments, check
from regard.attention.masks import Mask
from regard.attention.normalizers import softmax
from regard.attention.scores import AdditiveType, DotType


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
    plain: the weights are asked for
    >>> print(explain_path(x, x, x, need_weights=False))
    fused: a dot-type score under softmax, no weights asked for
    """
    return choose(check(query, key, value, mask, **options))


def choose(call: Arguments) -> Path:
    """The fastest path that can serve the call."""
    if reason := _needs_weights(call):
        return Path("plain", reason + _how_scores(call))
    if isinstance(call.score, AdditiveType):
        if call.bias is not None:
            return Path("plain", "a bias on an additive score" + _how_scores(call))
        name, reason = additive.choose(*_hidden_shapes(call), call.value)
        return Path("plain" if name == "plain" else f"additive {name}", reason)
    if not isinstance(call.score, DotType):
        return Path("plain", "the score is not a dot product")
    if call.bias is not None and call.bias.requires_grad and torch.is_grad_enabled():
        return Path("plain", "the bias is learned, and the fused kernel gives it no gradient")
    return Path("fused", "a dot-type score under softmax, no weights asked for")


def _needs_weights(call: Arguments) -> str | None:
    """Why the [q, k] weights must be made, if they must."""
    if call.need_weights:
        return "the weights are asked for"
    if call.normalize is not softmax:
        return f"the normalizer is {getattr(call.normalize, '__name__', call.normalize)}"
    if call.softcap is not None:
        return "soft cap"
    if call.dropout > 0.0:
        return "dropout falls on the weights"
    return None


def _hidden_shapes(call: Arguments) -> tuple[Tensor, Tensor]:
    """Stand-ins of the projected query and key, for their shapes alone."""
    assert isinstance(call.score, AdditiveType)
    hidden = call.score.weight.shape[0]
    return (
        call.query.new_empty(1).expand(*call.query.shape[:-1], hidden),
        call.key.new_empty(1).expand(*call.key.shape[:-1], hidden),
    )


def _how_scores(call: Arguments) -> str:
    if not isinstance(call.score, AdditiveType):
        return ""
    name, _ = additive.choose(*_hidden_shapes(call))
    return f" (additive scores by {name})"
