"""Additive attention without the [b, q, k, hidden] tensor, forward and backward.

    s[q,k] = Σ_a w_a tanh(query[q,a] + key[k,a]),   output[q] = Σ_k softmax_k(s[q,k]) value[k]

Query and key are projected already, W_q q + b and W_k k. A C kernel computes it where it was built
and the tensors suit it, blocks of PyTorch operations otherwise, and the equation as it stands where
that is fastest; `choose` says which.

Bahdanau, Cho and Bengio, 2015, https://arxiv.org/abs/1409.0473
"""

import math

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention import additive_native as kernel
from regard.attention.additive_blocks import BlockAttention, BlockScores, Seen
from regard.attention.deferred_gradients import current

_KERNEL_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
Spans = tuple[Int[Tensor, "*#b q"], Int[Tensor, "*#b q"]]


def choose(query: Tensor, key: Tensor, value: Tensor | None = None) -> tuple[str, str]:
    """Which form serves these tensors ("native", "blocks" or "plain"), and why.

    >>> x = torch.zeros(2, 5, 8, dtype=torch.float64)
    >>> choose(x, x)
    ('blocks', 'torch.float64 is not for the C kernel')
    >>> choose(x[:, :1], x)
    ('plain', 'one query; torch.float64 is not for the C kernel')
    """
    if torch._C._are_functorch_transforms_active():
        return "plain", "a transform of torch.func is active"
    obstacle = _obstacle(query, key) if value is None else _obstacle(query, key, value)
    if obstacle is None:
        return "native", f"the C kernel, {kernel.level()}"
    if query.shape[-2] == 1:
        return "plain", f"one query; {obstacle}"
    if torch.compiler.is_compiling():
        return "plain", f"the compiler fuses it; {obstacle}"
    return "blocks", obstacle


def _obstacle(*tensors: Tensor) -> str | None:
    """Why the kernel cannot take these tensors."""
    for tensor in tensors:
        if tensor.device.type not in ("cpu", "meta"):
            return f"the C kernel is for the CPU, not {tensor.device}"
        if tensor.dtype not in _KERNEL_DTYPES:
            return f"{tensor.dtype} is not for the C kernel"
    return kernel.why_not()


def _form(native: bool | None, query: Tensor, key: Tensor, *others: Tensor) -> str:
    if native is False:
        return "blocks"
    if native:
        if obstacle := _obstacle(query, key, *others):
            raise ValueError(f"native=True, but {obstacle}")
        return "native"
    return choose(query, key, *others)[0]


def additive_scores(
    query: Float[Tensor, "*#b q a"],
    key: Float[Tensor, "*#b k a"],
    weight: Float[Tensor, "a"],
    *,
    native: bool | None = None,
) -> Float[Tensor, "*b q k"]:
    """s[q,k] = Σ_a w_a tanh(query[q,a] + key[k,a]).

    `native`: True insists on the C kernel, False on blocks; None leaves the choice to `choose`.

    >>> q, k, w = torch.zeros(3, 2), torch.zeros(4, 2), torch.ones(2)
    >>> additive_scores(q, k + 0.5, w)[0, 0].item()  # 2 tanh(0.5)
    0.924234...
    """
    _check(query, key, weight)
    form = _form(native, query, key)
    dtype = torch.promote_types(torch.promote_types(query.dtype, key.dtype), weight.dtype)
    if form == "plain":
        return _plain_scores(*_to_compute_dtype(dtype, query, key, weight)).to(dtype)
    batch = np.broadcast_shapes(query.shape[:-2], key.shape[:-2])
    query, key, weight = _to_compute_dtype(dtype, query, key, weight)
    query, key = _flat(query, batch), _flat(key, batch)
    inputs = query.contiguous(), key.contiguous(), weight.contiguous()
    if form == "blocks":
        scores: Tensor = BlockScores.apply(*inputs)  # type: ignore[no-untyped-call]
    elif _can_skip_operator(*inputs):
        scores = kernel.run_scores(*inputs)
    else:
        scores = kernel.scores(*inputs)
    return scores.view(*batch, *scores.shape[-2:]).to(dtype)


def additive_attention(
    query: Float[Tensor, "*#b q a"],
    key: Float[Tensor, "*#b k a"],
    weight: Float[Tensor, "a"],
    value: Float[Tensor, "*#b k v"],
    *,
    spans: Spans | None = None,
    mask: Bool[Tensor, "*#b #q k"] | None = None,
    native: bool | None = None,
) -> Float[Tensor, "*b q v"]:
    """softmax_k(Σ_a w_a tanh(query[q,a] + key[k,a])) value, in memory linear in q and k.

    `spans` = (start, stop): query q sees the keys start ≤ k < stop; `mask`: True = may attend.
    A fully masked query gets zeros. `native`: True insists on the C kernel, False on blocks.

    >>> q, k, v = torch.zeros(1, 2), torch.zeros(4, 2), torch.arange(4.0)[:, None]
    >>> additive_attention(q, k, torch.ones(2), v, spans=(torch.tensor([1]), torch.tensor([3])))
    tensor([[1.5000]])
    """
    _check(query, key, weight, value)
    form = _form(native, query, key, value)
    extra = [side.shape[:-1] for side in spans or ()]
    extra += [] if mask is None else [mask.shape[:-2]]
    batch = np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2], *extra)
    dtype = torch.promote_types(torch.promote_types(query.dtype, key.dtype), weight.dtype)
    dtype = torch.promote_types(dtype, value.dtype)
    query, key, weight, value = _to_compute_dtype(dtype, query, key, weight, value)
    if form == "plain":
        return _plain(query, key, weight, value, spans=spans, mask=mask, batch=batch).to(dtype)
    query, key, value = (_flat(tensor, batch) for tensor in (query, key, value))
    inputs = query.contiguous(), key.contiguous(), weight.contiguous(), value.contiguous()
    seen = _seen(spans, mask, batch, query.shape[-2], key.shape[-2])
    if form == "blocks":
        output: Tensor = BlockAttention.apply(*inputs, *seen)  # type: ignore[no-untyped-call]
    elif _can_skip_operator(*inputs):
        output, _ = kernel.run_attention(*inputs, seen)
    else:
        loop = current()
        deferred = None if loop is None else loop.attention(*inputs, seen)
        output = kernel.attention(*inputs, *seen)[0] if deferred is None else deferred
    return output.view(*batch, *output.shape[-2:]).to(dtype)


def _check(query: Tensor, key: Tensor, weight: Tensor, value: Tensor | None = None) -> None:
    sizes = (query.shape[-1], key.shape[-1], *weight.shape)
    if len(set(sizes)) > 1 or weight.ndim != 1:
        raise ValueError(
            f"query {list(query.shape)}, key {list(key.shape)} and weight {list(weight.shape)} "
            "must have the same last axis, the hidden size"
        )
    if value is not None and value.shape[-2] != key.shape[-2]:
        raise ValueError(
            f"key {list(key.shape)} and value {list(value.shape)} must have the same number of rows"
        )


def _to_compute_dtype(dtype: torch.dtype, *tensors: Tensor) -> tuple[Tensor, ...]:
    """In the dtype of the computation: sums of many bfloat16 terms would be off by percents."""
    wide = torch.float32 if dtype in (torch.bfloat16, torch.float16) else dtype
    return tuple(tensor.to(wide) for tensor in tensors)


def _flat(tensor: Tensor, batch: tuple[int, ...]) -> Tensor:
    return tensor.expand(*batch, *tensor.shape[-2:]).reshape(math.prod(batch), *tensor.shape[-2:])


def _seen(
    spans: Spans | None, mask: Tensor | None, batch: tuple[int, ...], queries: int, keys: int
) -> Seen:
    seen = Seen()
    if spans is not None:
        start, stop = (
            side.expand(*batch, queries).reshape(math.prod(batch), queries).long().contiguous()
            for side in spans
        )
        seen = seen._replace(start=start, stop=stop)
    if mask is not None:
        # The kernel takes each distinct mask once, with its number for every batch element.
        own, rows = mask.shape[:-2], mask.shape[-2]
        mask_of = torch.arange(math.prod(own), device=mask.device).view(own).expand(batch)
        mask = mask.expand(*own, rows, keys).reshape(math.prod(own), rows, keys).contiguous()
        seen = seen._replace(mask=mask, mask_of=mask_of.reshape(-1).contiguous())
    return seen


def _can_skip_operator(*tensors: Tensor) -> bool:
    """Whether the kernel can be called without its operator, which costs some 20 µs."""
    return (
        all(type(tensor) in (Tensor, torch.nn.Parameter) for tensor in tensors)
        and not (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors))
        and not any(tensor.is_meta for tensor in tensors)
        and not torch.compiler.is_compiling()
        and torch._C._get_tracing_state() is None
        and not torch._C._are_functorch_transforms_active()
        and not torch._C._len_torch_dispatch_stack()
    )


def _plain_scores(query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
    return torch.tanh(query.unsqueeze(-2) + key.unsqueeze(-3)) @ weight


def _plain(
    query: Tensor,
    key: Tensor,
    weight: Tensor,
    value: Tensor,
    *,
    spans: Spans | None,
    mask: Tensor | None,
    batch: tuple[int, ...],
) -> Tensor:
    """The equation as it stands; keys that are masked for all are cleared, as they may hold NaN."""
    queries, keys = query.shape[-2], key.shape[-2]
    seen = _seen(spans, mask, batch, queries, keys)
    count = math.prod(batch)
    visible = seen.block(slice(0, count), slice(0, queries), slice(0, keys))
    if visible is None:
        return torch.softmax(_plain_scores(query, key, weight), -1) @ value
    visible = visible.expand(-1, queries, -1).view(*batch, queries, keys)
    used = visible.any(-2).unsqueeze(-1)
    some = visible.any(-1, keepdim=True)
    query, key = torch.where(some, query, 0.0), torch.where(used, key, 0.0)
    scores = _plain_scores(query, key, weight)
    scores = scores.masked_fill(~visible & some, float("-inf"))
    weights = torch.softmax(scores, -1).masked_fill(~visible, 0.0)
    return torch.where(some, weights @ torch.where(used, value, 0.0), 0.0)
