"""Torch's fused kernel behind lazy masks: exact, and the [q, k] weights are never held.

Masks whose rows differ are served in blocks of queries, each against the keys in its reach alone:
a window costs its own size, and causal attention half, however keys and queries are aligned.
"""

from typing import cast

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.arguments import Arguments
from regard.attention.masks import Causal, Given, Lengths, Mask
from regard.attention.scores import DotType

BLOCK = 256
"""Queries of a block, and the unit of its range of keys."""
Added = Bool[Tensor, "..."] | Float[Tensor, "..."] | None


def fused_attention(call: Arguments) -> Float[Tensor, "... q v"]:
    """softmax(scale · query keyᵀ) value by the fused kernel; the plain twin is in `attend`."""
    query, key, scale = cast(DotType, call.score).factors(call.query, call.key)
    *batch, queries, keys = call.shape
    size = call.value.shape[-1]
    query, key, value = _one_size(query, key, call.value)
    query, key, value = (_four_axes(_dense(t), batch) for t in (query, key, value))
    whole = range(queries), range(keys)
    mask = call.mask
    if call.bias is None and isinstance(mask, Causal) and queries in (1, keys):
        output = _kernel(query, key, value, scale, None, causal=queries > 1)
    elif mask is None or isinstance(mask, Given | Lengths) or queries <= BLOCK:
        output = _kernel(query, key, value, scale, _added(call, *whole, query))
    else:
        output = _in_blocks(query, key, value, scale, call, mask)
    if output.shape[-1] != size:
        output = output[..., :size]
    return output if len(batch) == 2 else output.reshape(*batch, queries, size)


def _in_blocks(
    query: Tensor, key: Tensor, value: Tensor, scale: float, call: Arguments, mask: Mask
) -> Tensor:
    """Blocks of queries against the blocks of keys in their reach.

    Keys outside the reach of a block are left out; the mask decides about those inside. A slice of
    the keys costs nothing, but its gradient would be as large as the whole, for every block; so
    with gradients the keys are split once, and those in reach joined for each block.
    """
    queries, keys = call.shape[-2:]
    differentiated = torch.is_grad_enabled() and (key.requires_grad or value.requires_grad)
    key_blocks, value_blocks = key.split(BLOCK, -2), value.split(BLOCK, -2)
    outputs = []
    for start, block in zip(range(0, queries, BLOCK), query.split(BLOCK, -2), strict=True):
        rows = range(start, start + block.shape[-2])
        reach = mask.reach(queries, keys, rows)
        if len(reach) == 0:
            outputs.append(block.new_zeros(*block.shape[:-1], value.shape[-1]))
            continue
        near = slice(reach.start // BLOCK, -(-reach.stop // BLOCK))
        columns = range(near.start * BLOCK, min(near.stop * BLOCK, keys))
        if differentiated:
            near_key, near_value = (torch.cat(t[near], -2) for t in (key_blocks, value_blocks))
        else:
            near_key, near_value = (t[..., columns.start : columns.stop, :] for t in (key, value))
        added = _added(call, rows, columns, query)
        outputs.append(_kernel(block, near_key, near_value, scale, added))
    return torch.cat(outputs, -2)


def _kernel(
    query: Tensor, key: Tensor, value: Tensor, scale: float, added: Added, *, causal: bool = False
) -> Tensor:
    grouped = key.shape[-3] != query.shape[-3]
    return F.scaled_dot_product_attention(
        query, key, value, added, scale=scale, is_causal=causal, enable_gqa=grouped
    )


def _added(call: Arguments, rows: range, columns: range, like: Tensor) -> Added:
    """Mask and bias of one block as the kernel takes them: bool, or numbers with -inf."""
    added: Added = call.bias
    if added is not None:
        added = added.to(like.dtype)
        if added.ndim > 0 and added.shape[-1] > 1:
            added = added[..., columns.start : columns.stop]
        if added.ndim > 1 and added.shape[-2] > 1:
            added = added[..., rows.start : rows.stop, :]
    if call.mask is not None:
        allowed = call.mask.block(call.shape, rows, columns, like.device)
        added = allowed if added is None else torch.where(allowed, added, float("-inf"))
    if added is None:
        return None
    *batch, _, _ = call.shape
    added = added[(None,) * (max(4, len(batch) + 2) - added.ndim)]
    if len(batch) > 2:
        added = added.expand(*batch, *added.shape[-2:]).flatten(0, -4)
    return added


def _four_axes(tensor: Tensor, batch: list[int]) -> Tensor:
    """[*b, n, size] as [b, h, n, size], the leading axes spread out; shared heads stay shared."""
    if len(batch) == 2 and [*tensor.shape[:-2]] == batch:
        return tensor
    *leading, heads = (1,) * (2 - len(batch)) + tuple(batch)
    tensor = tensor[(None,) * (len(leading) + 3 - tensor.ndim)]
    own = heads if tensor.shape[-3] == 1 else tensor.shape[-3]
    return tensor.expand(*leading, own, *tensor.shape[-2:]).flatten(0, -4)


def _dense(tensor: Tensor) -> Tensor:
    """With other strides torch falls back to a kernel that holds the weights."""
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def _one_size(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The kernel wants values of the size of keys: zeros make up the difference."""
    size = max(query.shape[-1], value.shape[-1])
    if query.shape[-1] == value.shape[-1]:
        return query, key, value
    query, key, value = (F.pad(t, (0, size - t.shape[-1])) for t in (query, key, value))
    return query, key, value
