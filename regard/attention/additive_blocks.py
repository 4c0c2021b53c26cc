"""Additive attention in blocks of PyTorch operations: the portable twin of the C kernel.

Forward and backward hold the tanh of one block of (query, key) pairs at a time, in one buffer that
every block uses again. Backward is written by hand: with t = tanh(query + key),

    d_query[q] = w Σ_k d_s (1 - t²),  d_key[k] = w Σ_q d_s (1 - t²),  d_w = Σ_qk d_s t

Of the softmax only the log of each row's sum is kept, and the weights are computed again
(Dao et al., 2022, https://arxiv.org/abs/2205.14135).
"""

import math
import time
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.additive_native import refuse

ELEMENTS_PER_THREAD = 1 << 18
"""Elements of a block for each thread: a megabyte of float32, which stays in its own cache."""
MAX_THREADS = 8
"""More threads than this do not make the block larger."""


class Seen(NamedTuple):
    """Which keys each query may attend to: spans of keys, a mask, both or neither."""

    start: Int[Tensor, "b q"] | None = None
    stop: Int[Tensor, "b q"] | None = None
    mask: Bool[Tensor, "m #q k"] | None = None
    mask_of: Int[Tensor, "b"] | None = None
    """Which of the m masks a batch element has."""

    @property
    def hides(self) -> bool:
        """Whether any pair may be unseen."""
        return self.start is not None or self.mask is not None

    def block(self, batch: slice, queries: slice, keys: slice) -> Tensor | None:
        """The mask [b, q, k] of one block, or None where everything is seen."""
        seen = None
        if self.start is not None and self.stop is not None:
            at = torch.arange(keys.start, keys.stop, device=self.start.device)
            seen = at >= self.start[batch, queries, None]
            seen &= at < self.stop[batch, queries, None]
        if self.mask is not None and self.mask_of is not None:
            rows = queries if self.mask.shape[1] > 1 else slice(None)
            mask = self.mask[self.mask_of[batch], rows, keys]
            seen = mask if seen is None else seen & mask
        return seen

    def key_ranges(self, queries: list[slice], keys: int) -> list[tuple[int, int]]:
        """For each slice of queries the keys that any of them, in any batch element, may see."""
        if self.start is None or self.stop is None or self.start.is_meta:
            return [(0, keys)] * len(queries)
        empty = self.start >= self.stop
        starts = self.start.masked_fill(empty, keys).amin(0)
        stops = self.stop.masked_fill(empty, 0).amax(0)
        return [
            (max(int(starts[rows].min()), 0), min(int(stops[rows].max()), keys)) for rows in queries
        ]


class _Block(NamedTuple):
    batch: slice
    queries: slice
    keys: range
    """From the first to the last key that any of the queries sees, in steps of a block's width."""


def _slices(length: int, size: int) -> list[slice]:
    """About equal slices of at most `size`."""
    count = -(-length // max(size, 1))
    return [slice(i * length // count, (i + 1) * length // count) for i in range(count)]


def _blocks(batch: int, queries: int, keys: int, hidden: int, seen: Seen) -> Iterator[_Block]:
    """Split [batch, queries, keys] into blocks whose tanh, `hidden` per pair, fits a cache."""
    if not batch * queries * keys:
        return
    threads = min(torch.get_num_threads(), MAX_THREADS)
    pairs = max(1, threads * ELEMENTS_PER_THREAD // max(hidden, 1))  # (query, key) pairs per block
    # Square blocks read the fewest queries and keys; with few queries they become wider.
    width = min(keys, max(math.isqrt(pairs), pairs // queries))
    width = -(-keys // -(-keys // width))  # the same number of blocks, of about equal width
    rows = _slices(queries, pairs // width)
    # Only where one block holds all pairs of a batch element can it hold several elements.
    together = pairs // (keys * queries) if (len(rows), width) == (1, keys) else 1
    ranges = seen.key_ranges(rows, keys)
    for elements in _slices(batch, together):
        for row, (first, last) in zip(rows, ranges, strict=True):
            yield _Block(elements, row, range(first, max(first, last), width))


def _key_slices(keys: range) -> Iterator[slice]:
    """The keys of a block, one width after the other."""
    for first in keys:
        yield slice(first, min(first + keys.step, keys.stop))


class _Tanh:
    """tanh(query + key) of one block after the other, [b, q, k, a], in one buffer."""

    def __init__(self, query: Tensor, key: Tensor, seen: Seen) -> None:
        self.query, self.key, self.seen = query, key, seen
        self.buffer = query.new_empty(0)
        # Where hidden pairs may hold NaN, their tanh is cleared: 0 · NaN would reach the sums.
        self.poisoned = seen.hides and not (_finite(query) and _finite(key))

    def __call__(self, block: _Block, keys: slice) -> tuple[Tensor, Tensor | None]:
        """tanh of some keys of a block, and which pairs are seen; the others hold anything."""
        query = self.query[block.batch, block.queries, None]
        key = self.key[block.batch, None, keys]
        shape = (query.shape[0], query.shape[1], key.shape[2], key.shape[3])
        size = math.prod(shape)
        if self.buffer.numel() < size:
            self.buffer = query.new_empty(size)
        t = self.buffer[:size].view(shape)
        torch.add(query, key, out=t)
        _replace_by_tanh(t)
        seen = self.seen.block(block.batch, block.queries, keys) if self.seen.hides else None
        if self.poisoned and seen is not None:
            t.masked_fill_(~seen.unsqueeze(-1), 0.0)
        return t, seen


def _replace_by_tanh(t: Tensor) -> None:
    """tanh in place: torch's own, or 2 σ(2x) − 1 where that is much faster, within 2·10⁻⁷."""
    if t.device.type == "cpu" and t.dtype == torch.float32 and _sigmoid_is_faster():
        t.mul_(2).sigmoid_().mul_(2).sub_(1)
    else:
        t.tanh_()


@cache
def _sigmoid_is_faster() -> bool:
    """Whether 2 σ(2x) − 1 takes less than half as long as torch's tanh, measured in milliseconds.

    torch leaves tanh to MKL, which is slow on processors that are not Intel's: 0.5 instead of 2.7
    billion numbers per second. Elsewhere tanh is the faster of the two.
    """
    numbers = torch.linspace(-3, 3, 1 << 14, device="cpu")
    taken: dict[str, list[float]] = {"tanh": [], "sigmoid": []}
    for _ in range(7):
        began = time.perf_counter()
        numbers.tanh()
        middle = time.perf_counter()
        numbers.mul(2).sigmoid_().mul_(2).sub_(1)
        taken["tanh"].append(middle - began)
        taken["sigmoid"].append(time.perf_counter() - middle)
    return 2 * min(taken["sigmoid"]) < min(taken["tanh"])


def _finite(tensor: Tensor) -> bool:
    return tensor.is_meta or bool(torch.isfinite(tensor).all())


def _weighted_sum(weights: Tensor, items: Tensor, finite: bool) -> Tensor:
    """weights [b, m, n] @ items [b, n, v]; a weight of zero hides even NaN and infinity."""
    if finite:
        return weights @ items
    rows = [
        torch.where(row.unsqueeze(-1) == 0, 0.0, row.unsqueeze(-1) * items).sum(1)
        for row in weights.unbind(1)
    ]
    return torch.stack(rows, 1)


def _project(t: Tensor, weight: Tensor) -> Tensor:
    return (t.view(-1, t.shape[3]) @ weight).view(t.shape[:3])


def _add_gradients(
    d_s: Tensor, t: Tensor, block: _Block, keys: slice, sums: tuple[Tensor, Tensor, Tensor]
) -> None:
    """Adds the gradients of one block to the sums of query, key and weight; overwrites t.

    The factor w is common to all blocks; the callers multiply it in at the end.
    """
    query, key, weight = sums
    weight.addmv_(t.view(-1, t.shape[3]).mT, d_s.reshape(-1))
    slope = torch.addcmul(t.new_ones(()), t, t, value=-1.0, out=t)
    query[block.batch, block.queries] += (d_s.unsqueeze(2) @ slope).squeeze(2)
    by_key = d_s.mT.contiguous()  # rows of a strided matrix are multiplied six times slower
    key[block.batch, keys] += (by_key.unsqueeze(2) @ slope.transpose(1, 2)).squeeze(2)


def _shape(query: Tensor, key: Tensor) -> tuple[int, int, int, int]:
    return query.shape[0], query.shape[1], key.shape[1], query.shape[2]


class _Refuse(torch.autograd.Function):
    """Passes first gradients on; a second differentiation is an error with words."""

    @staticmethod
    def forward(ctx: Any, count: int, *tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(tensor.clone() for tensor in tensors[:count])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        refuse()


def _first_only(gradients: tuple[Tensor, ...], *inputs: Tensor) -> tuple[Tensor, ...]:
    if not torch.is_grad_enabled():
        return gradients
    result: tuple[Tensor, ...] = _Refuse.apply(  # type: ignore[no-untyped-call]
        len(gradients), *gradients, *inputs
    )
    return result


class BlockScores(torch.autograd.Function):
    """[b, q, a], [b, k, a], [a] → [b, q, k], all of one dtype."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
        """The scores."""
        ctx.save_for_backward(query, key, weight)
        scores = query.new_empty(query.shape[0], query.shape[1], key.shape[1])
        tanh = _Tanh(query, key, Seen())
        for block in _blocks(*_shape(query, key), Seen()):
            for keys in _key_slices(block.keys):
                t, _ = tanh(block, keys)
                scores[block.batch, block.queries, keys] = _project(t, weight)
        return scores

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        """The gradients of query, key and weight."""
        query, key, weight = ctx.saved_tensors
        with torch.no_grad():
            sums = torch.zeros_like(query), torch.zeros_like(key), torch.zeros_like(weight)
            tanh = _Tanh(query, key, Seen())
            for block in _blocks(*_shape(query, key), Seen()):
                for keys in _key_slices(block.keys):
                    t, _ = tanh(block, keys)
                    d_s = gradient[block.batch, block.queries, keys]
                    _add_gradients(d_s, t, block, keys, sums)
            gradients = sums[0].mul_(weight), sums[1].mul_(weight), sums[2]
        return _first_only(gradients, gradient, query, key, weight)


class BlockAttention(torch.autograd.Function):
    """[b, q, a], [b, k, a], [a], [b, k, v] and the parts of `Seen` → [b, q, v], of one dtype."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, weight: Tensor, value: Tensor, *parts: Tensor | None
    ) -> Float[Tensor, "b q v"]:
        """The output; a fully masked query gets zeros."""
        seen = Seen(*parts)
        output = query.new_zeros(*query.shape[:2], value.shape[2])
        log_sum = query.new_full(query.shape[:2], float("-inf"))
        tanh = _Tanh(query, key, seen)
        finite = not seen.hides or _finite(value)
        for batch, queries, keys in _blocks(*_shape(query, key), seen):
            if not keys:
                continue
            scores = query.new_empty(*query[batch, queries].shape[:2], keys.stop - keys.start)
            for part in _key_slices(keys):
                t, visible = tanh(_Block(batch, queries, keys), part)
                s = scores[..., part.start - keys.start : part.stop - keys.start]
                s.copy_(_project(t, weight))
                if visible is not None:
                    s.masked_fill_(~visible, float("-inf"))
            # A row's softmax over all of its keys at once; a fully masked row keeps output 0 and
            # log_sum -inf.
            top = scores.amax(-1, keepdim=True)
            top.masked_fill_(top == float("-inf"), 0.0)
            weights = scores.sub_(top).exp_()
            total = weights.sum(-1, keepdim=True)
            summed = _weighted_sum(weights, value[batch, keys.start : keys.stop], finite)
            output[batch, queries] = summed / total.masked_fill(total == 0, 1.0)
            log_sum[batch, queries] = (top + total.log()).squeeze(-1)
        ctx.save_for_backward(query, key, weight, value, *parts, output, log_sum)
        return output

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        """The gradients of query, key, weight and value."""
        query, key, weight, value, *parts, output, log_sum = ctx.saved_tensors
        seen = Seen(*parts)
        with torch.no_grad():
            sums = torch.zeros_like(query), torch.zeros_like(key), torch.zeros_like(weight)
            d_value = torch.zeros_like(value)
            tanh = _Tanh(query, key, seen)
            finite = not seen.hides or _finite(gradient)
            for block in _blocks(*_shape(query, key), seen):
                batch, queries, _ = block
                d_out = gradient[batch, queries]
                # d_s = weights · (d_weights - delta), the gradient of softmax, where
                # delta = Σ_k weights d_weights = d_out · output.
                delta = (d_out * output[batch, queries]).sum(-1, keepdim=True)
                row_sum = log_sum[batch, queries, None]
                for keys in _key_slices(block.keys):
                    t, visible = tanh(block, keys)
                    weights = _project(t, weight).sub_(row_sum).exp_()
                    d_s = d_out @ value[batch, keys].mT
                    d_s.sub_(delta).mul_(weights)
                    if visible is not None:
                        weights.masked_fill_(~visible, 0.0)
                        d_s.masked_fill_(~visible, 0.0)
                    d_value[batch, keys] += _weighted_sum(weights.mT, d_out, finite)
                    _add_gradients(d_s, t, block, keys, sums)
            gradients = sums[0].mul_(weight), sums[1].mul_(weight), sums[2], d_value
        return *_first_only(gradients, gradient, query, key, weight, value), *[None] * 4
