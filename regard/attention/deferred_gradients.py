"""Gradients of what every step of a loop uses: summed once, after the last step, not at each.

A recurrent decoder multiplies by the same weights and attends to the same memory at every step.
Backward, autograd makes a gradient of the size of the weights (of the memory) for each step and
adds them up: with few sentences, that takes longer than the rest of the step. Inside
`deferred_gradients()` a step keeps the two factors of its weight gradient, and one product sums
them for all steps, dW = Σ_t g_tᵀ x_t; gradients of keys and values are added in place.

The values are those of the plain way, and gradients the same up to the order of sums.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from regard.attention import additive_native


class _Uses:
    """What the products with one weight leave: an input and the gradient of its output each."""

    def __init__(self) -> None:
        self.count = 0
        self.factors: dict[int, tuple[Tensor, Tensor]] = {}
        """By the number of the product, so that a second backward pass replaces the first."""


class _Collect(torch.autograd.Function):
    """A weight and a bias as they are; backward, the sum of what their uses left."""

    @staticmethod
    def forward(
        ctx: Any, weight: Tensor, bias: Tensor | None, uses: _Uses
    ) -> tuple[Tensor, Tensor | None]:
        ctx.uses, ctx.shape = uses, weight.shape
        ctx.set_materialize_grads(False)
        return weight.view_as(weight), None if bias is None else bias.view_as(bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *_: Tensor | None) -> tuple[Tensor | None, Tensor | None, None]:
        factors = list(ctx.uses.factors.values())
        ctx.uses.factors = {}
        if not factors:
            return None, None, None
        inputs, gradients = (torch.cat(parts) for parts in zip(*factors, strict=True))
        bias = gradients.sum(0) if ctx.needs_input_grad[1] else None
        return gradients.mT @ inputs, bias, None


class _Product(torch.autograd.Function):
    """x Wᵀ + b, which leaves the factors of the weight gradient to `_Collect`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, uses: _Uses) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.uses, ctx.number = uses, uses.count
        uses.count += 1
        return F.linear(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, None, None, None]:
        x, weight = ctx.saved_tensors
        gradient = gradients[0]
        ctx.uses.factors[ctx.number] = x.flatten(0, -2), gradient.flatten(0, -2)
        return gradient @ weight if ctx.needs_input_grad[0] else None, None, None, None


class _Sums:
    """The gradients of keys and values so far."""

    def __init__(self) -> None:
        self.key: Tensor | None = None
        self.value: Tensor | None = None


class _CollectMemory(torch.autograd.Function):
    """Keys and values as they are; backward, what was added up, and what came the plain way."""

    @staticmethod
    def forward(ctx: Any, key: Tensor, value: Tensor, sums: _Sums) -> tuple[Tensor, Tensor]:
        ctx.sums = sums
        ctx.set_materialize_grads(False)
        return key.view_as(key), value.view_as(value)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *plain: Tensor | None) -> tuple[Tensor | None, Tensor | None, None]:
        key, value = ctx.sums.key, ctx.sums.value
        ctx.sums.key = ctx.sums.value = None
        return _add(key, plain[0]), _add(value, plain[1]), None


class _Attention(torch.autograd.Function):
    """Additive attention by the kernel, which adds the gradients of keys and values in place."""

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        weight: Tensor,
        value: Tensor,
        seen: tuple[Tensor | None, ...],
        sums: _Sums,
    ) -> Tensor:
        output, log_sum = additive_native.run_attention(query, key, weight, value, seen)
        ctx.save_for_backward(query, key, weight, value, *seen, output, log_sum)
        ctx.sums = sums
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        query, key, weight, value, *rest = ctx.saved_tensors
        sums = ctx.sums
        if sums.key is None:
            sums.key, sums.value = torch.zeros_like(key), torch.zeros_like(value)
        query_gradient = torch.zeros_like(query)
        weight_gradient = additive_native.run_backward(
            gradients[0], (query, key, weight, value), rest, (query_gradient, sums.key, sums.value)
        )
        return query_gradient, None, weight_gradient, None, None, None


def _add(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other


class Deferred:
    """The weights and memories of one loop whose gradients wait for its end."""

    def __init__(self) -> None:
        self._weights: dict[int, tuple[Tensor, Tensor | None, _Uses]] = {}
        self._memories: dict[tuple[int, int], _Sums] = {}

    def product(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """x Wᵀ + b."""
        if id(weight) not in self._weights:
            uses = _Uses()
            own = _Collect.apply(weight, bias, uses)  # type: ignore[no-untyped-call]
            self._weights[id(weight)] = (*own, uses)
        product: Tensor = _Product.apply(x, *self._weights[id(weight)])  # type: ignore[no-untyped-call]
        return product

    def memory(
        self, key: Float[Tensor, "b k a"], value: Float[Tensor, "b k m"]
    ) -> tuple[Tensor, Tensor]:
        """Keys and values to attend to in each step."""
        if not (key.requires_grad and value.requires_grad and key.numel() and value.numel()):
            return key, value
        sums = _Sums()
        own: tuple[Tensor, Tensor] = _CollectMemory.apply(  # type: ignore[no-untyped-call]
            key.contiguous(), value.contiguous(), sums
        )
        self._memories[own[0].data_ptr(), own[1].data_ptr()] = sums
        return own

    def attention(
        self,
        query: Tensor,
        key: Tensor,
        weight: Tensor,
        value: Tensor,
        seen: tuple[Tensor | None, ...],
    ) -> Tensor | None:
        """The output of additive attention; None if this memory is not one of the loop."""
        sums = self._memories.get((key.data_ptr(), value.data_ptr()))
        if sums is None or any(one is not None and one.requires_grad for one in seen):
            return None
        output: Tensor = _Attention.apply(  # type: ignore[no-untyped-call]
            query, key, weight, value, tuple(seen), sums
        )
        return output


_CURRENT: ContextVar[Deferred | None] = ContextVar("regard_deferred_gradients", default=None)


@contextmanager
def deferred_gradients(*, wanted: bool = True) -> Iterator[Deferred | None]:
    """Around all steps of a loop; None where gradients are not deferred.

    They are not where no gradient is computed, under autocast (which multiplies in other types),
    in a transform of `torch.func`, and where `torch.compile` sees the whole loop anyway.
    """
    possible = (
        wanted
        and not torch.compiler.is_compiling()
        and torch.is_grad_enabled()
        and not torch.is_autocast_enabled("cpu")
        and not torch._C._are_functorch_transforms_active()
    )
    token = _CURRENT.set(Deferred() if possible else None)
    try:
        yield _CURRENT.get()
    finally:
        _CURRENT.reset(token)


def current() -> Deferred | None:
    """The loop that is run, if its gradients are deferred."""
    return None if torch.compiler.is_compiling() else _CURRENT.get()


def apply_linear(linear: nn.Linear, x: Float[Tensor, "*n i"]) -> Float[Tensor, "*n o"]:
    """A linear layer, whose weight gradient waits for the end of the loop that is run, if any."""
    loop = current()
    hooked = linear._forward_hooks or linear._forward_pre_hooks or linear._backward_hooks
    if loop is None or hooked or not linear.weight.requires_grad or type(linear) is not nn.Linear:
        plain: Tensor = linear(x)
        return plain
    return loop.product(x, linear.weight, linear.bias)
