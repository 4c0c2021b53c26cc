"""Masks: which keys a query may attend to. True = may attend, everywhere.

A mask is a small lazy object over scores of shape ``[*b, q, k]``. Masks combine with ``&``, ``|``
and ``~``, become a tensor on demand, and draw themselves:

>>> print(causal() & window(2))
█ · · · · ·
█ █ · · · ·
· █ █ · · ·
· · █ █ · ·
· · · █ █ ·
· · · · █ █

Positions are aligned to the end when there are more keys than queries, as in decoding with a
cache: the last query stands at the last key.
"""

from collections.abc import Sequence
from functools import partial

import torch
from jaxtyping import Int
from torch import Tensor

from regard.attention.mask_types import (
    Causal,
    Documents,
    Given,
    Lengths,
    Mask,
    Relation,
    Window,
    as_mask,
)

__all__ = [
    "Causal",
    "Given",
    "Lengths",
    "Mask",
    "as_mask",
    "causal",
    "dilated",
    "documents",
    "lengths",
    "others",
    "past",
    "prefix",
    "window",
]


def causal() -> Mask:
    """Only the past and the present: no query attends to later keys."""
    return Causal()


def past() -> Mask:
    """Only the past: no query attends to its own position or to later keys.

    >>> print(past().draw(2, 2))
    · ·
    █ ·
    """
    return Causal(present=False)


def lengths(number: Int[Tensor, "*b"] | Sequence[int]) -> Mask:
    """Only the first `number` keys of each example: the rest is padding.

    >>> print(lengths([2]).draw(1, 4))
    █ █ · ·
    """
    return Lengths(_whole_numbers("lengths", number))


def window(size: int) -> Mask:
    """Only keys nearer than `size`, the query's own position included.

    With `causal()`, exactly the last `size` keys; alone, as many on the other side too.
    """
    return Window(_at_least_one("window", size))


def prefix(number: Int[Tensor, "*b"] | Sequence[int] | int) -> Mask:
    """The first `number` keys, open to all: ``causal() | prefix(n)`` reads a prompt both ways."""
    return Lengths(_whole_numbers("prefix", number), "prefix")


def documents(
    ids: Int[Tensor, "*b q"] | Sequence[int],
    keys: Int[Tensor, "*b k"] | Sequence[int] | None = None,
) -> Mask:
    """Only keys of the same document: several texts packed into one sequence stay apart."""
    query = _whole_numbers("documents", ids)
    return Documents(query, query if keys is None else _whole_numbers("documents", keys))


def dilated(step: int) -> Mask:
    """Only every `step`-th key, counted from the query's own position."""
    _at_least_one("dilated", step)
    return Relation(f"dilated({step})", partial(_multiple, step))


def others() -> Mask:
    """All keys but the query's own position."""
    return Relation("others()", torch.ne)


def _multiple(step: int, query: Tensor, key: Tensor) -> Tensor:
    return (query - key) % step == 0


def _whole_numbers(what: str, numbers: Tensor | Sequence[int] | int) -> Int[Tensor, "..."]:
    tensor = torch.as_tensor(numbers)
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        raise ValueError(f"{what} must be whole numbers; got {tensor.dtype}")
    return tensor


def _at_least_one(what: str, number: int) -> int:
    if not isinstance(number, int) or number < 1:
        raise ValueError(f"{what}({number}): expected a whole number of at least 1")
    return number
