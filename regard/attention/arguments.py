"""The arguments of one call to `attend`, checked: names resolved, shapes agreed."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from regard.attention import masks, normalizers, scores
from regard.attention.masks import Mask
from regard.attention.normalizers import Normalizer
from regard.attention.scores import Score


@dataclass(frozen=True)
class Arguments:
    """The arguments of `attend`, all checked."""

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Mask | None
    score: Score
    normalize: Normalizer
    bias: Tensor | None
    softcap: float | None
    dropout: float
    need_weights: bool
    shape: tuple[int, ...]
    """The shape of the scores, [*b, q, k]."""
    group: int
    """How many query heads share a key head."""


def check_arguments(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Mask | Tensor | None = None,
    *,
    score: str | Score = "scaled_dot",
    normalize: str | Normalizer = "softmax",
    bias: Tensor | None = None,
    softcap: float | None = None,
    dropout: float = 0.0,
    need_weights: bool = True,
) -> Arguments:
    """Check the arguments of `attend`; a ValueError names the shapes that do not fit."""
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if not isinstance(tensor, Tensor):
            raise ValueError(f"{name} must be a tensor; got {type(tensor).__name__}")
        if tensor.ndim < 2:
            raise ValueError(f"{name} needs at least two axes, [.., n, size]; got {_of(tensor)}")
        if not tensor.is_floating_point():
            raise ValueError(f"{name} must hold floating-point numbers; got {tensor.dtype}")
    if not query.dtype == key.dtype == value.dtype and not _autocast(query):
        raise ValueError(
            f"query, key and value must have the same dtype; got {query.dtype}, "
            f"{key.dtype} and {value.dtype}"
        )
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(
            f"key and value must have the same length, but there are {key.shape[-2]} keys "
            f"in {_of(key)} and {value.shape[-2]} values in {_of(value)}"
        )
    if not 0.0 <= dropout < 1.0:
        raise ValueError(f"dropout must be a probability from 0 to less than 1; got {dropout}")
    if softcap is not None and not softcap > 0.0:
        raise ValueError(f"softcap must be a positive number; got {softcap}")
    group = _group(query, key, value)
    batch = _batch(query, key, value, group)
    shape = (*batch, query.shape[-2], key.shape[-2])
    lazy = None if mask is None else masks.as_mask(mask)
    if lazy is not None:
        shape = lazy.fit(shape)
    if bias is not None:
        shape = _fit_bias(bias, shape)
    return Arguments(
        query=query,
        key=key,
        value=value,
        mask=lazy,
        score=scores.score_by_name(score),
        normalize=normalizers.normalizer_by_name(normalize),
        bias=bias,
        softcap=softcap,
        dropout=dropout,
        need_weights=need_weights,
        shape=shape,
        group=group,
    )


def share_heads(tensor: Tensor, group: int) -> Tensor:
    """Each key head once for every query head of its group."""
    return tensor if group == 1 else tensor.repeat_interleave(group, dim=-3)


def clear_masked_keys(call: Arguments) -> Arguments:
    """The same call with zeros at keys and values that are masked for every query.

    Whatever stands in padding, NaN too, then reaches neither output nor gradients: a weight of
    zero alone would not do, since 0 · NaN is NaN.
    """
    seen = None if call.mask is None else call.mask.seen(call.shape, call.query.device)
    if seen is None:
        return call
    key, value = (
        tensor.masked_fill(~_narrowed(seen, tensor.shape[:-2]).mT, 0.0)
        for tensor in (call.key, call.value)
    )
    return replace(call, key=key, value=value)


def _narrowed(seen: Tensor, leading: tuple[int, ...]) -> Tensor:
    """Which keys any query may attend to, [*b, 1, k], for keys with these leading axes.

    A key that is shared by heads or examples (an axis of 1, or none) counts if one of them does.
    """
    while seen.ndim - 2 > len(leading):
        seen = seen.any(0)
    for axis, size in enumerate(leading[len(leading) - seen.ndim + 2 :]):
        if seen.shape[axis] not in (1, size):
            seen = seen.any(axis, keepdim=True)
    return seen


def _of(tensor: Tensor) -> str:
    return str(list(tensor.shape))


def _group(query: Tensor, key: Tensor, value: Tensor) -> int:
    """Query heads to a key head; heads stand on the third axis from the end, behind a batch."""
    if min(query.ndim, key.ndim, value.ndim) < 4 or key.shape[-3] in (1, query.shape[-3]):
        return 1
    heads, shared = query.shape[-3], key.shape[-3]
    if query.shape[-3] == 1:
        return 1
    if heads % shared or value.shape[-3] != shared:
        raise ValueError(
            f"{heads} query heads cannot share {shared} key heads and {value.shape[-3]} value "
            f"heads: got query {_of(query)}, key {_of(key)}, value {_of(value)}; the number of "
            f"query heads must be a multiple of the others, and those must be equal"
        )
    return heads // shared


def _batch(query: Tensor, key: Tensor, value: Tensor, group: int) -> tuple[int, ...]:
    leading = query.shape[:-2]
    if group == 1 and leading == key.shape[:-2] == value.shape[:-2]:
        return tuple(leading)
    try:
        return np.broadcast_shapes(leading, _spread(key, group), _spread(value, group))
    except ValueError:
        raise ValueError(
            f"query {_of(query)}, key {_of(key)} and value {_of(value)} have no common batch: "
            f"their leading axes must be equal or 1 (fewer key heads than query heads need four "
            f"axes, [b, h, n, size])"
        ) from None


def _spread(tensor: Tensor, group: int) -> tuple[int, ...]:
    """The leading axes once each key head stands for its group of query heads."""
    leading = tuple(tensor.shape[:-2])
    return leading if group == 1 else (*leading[:-1], leading[-1] * group)


def _fit_bias(bias: Tensor, shape: tuple[int, ...]) -> tuple[int, ...]:
    if not isinstance(bias, Tensor) or not bias.is_floating_point():
        kind = bias.dtype if isinstance(bias, Tensor) else type(bias).__name__
        raise ValueError(f"bias must be a floating-point tensor; got {kind}")
    try:
        both = np.broadcast_shapes(bias.shape, shape)
    except ValueError:
        both = ()
    if both[-2:] != shape[-2:]:
        raise ValueError(
            f"bias of shape {_of(bias)} does not broadcast with scores of shape "
            f"{list(shape)} = [.., queries, keys]"
        )
    return both


def _autocast(tensor: Tensor) -> bool:
    return torch.is_autocast_enabled(tensor.device.type)
