"""Interventions in a network: other vectors for its words, or other attention weights.

Hooks are registered on a copy of the network that shares its weights, so that the network itself,
which others may be using, is never changed.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention import normalizers
from regard.layers import MultiHead
from regard.models.past_attention import PastAttention

Change = Callable[[Tensor, Tensor | None], Tensor]
"""From weights [..., q, k] and the mask that they were computed under to other weights."""


def share_weights(network: nn.Module) -> nn.Module:
    """A copy of the modules that shares the weights, in evaluation mode."""
    shared = {id(tensor): tensor for tensor in (*network.parameters(), *network.buffers())}
    return copy.deepcopy(network, shared).eval()


@contextmanager
def replace_vectors(
    layers: Sequence[nn.Module], vectors: Sequence[Float[Tensor, "b t _"]]
) -> Iterator[None]:
    """The network with these vectors as the output of its input layers."""
    with ExitStack() as stack:
        for layer, output in zip(layers, vectors, strict=True):
            stack.enter_context(
                layer.register_forward_hook(lambda _layer, _input, _output, output=output: output)
            )
        yield


@contextmanager
def record_outputs(layers: Sequence[nn.Module]) -> Iterator[list[Tensor]]:
    """The outputs of some layers, in the order of the layers."""
    outputs: list[Tensor] = [torch.empty(0)] * len(layers)

    def record_as(number: int) -> Any:
        def hook(_layer: nn.Module, _input: Any, output: Tensor) -> None:
            outputs[number] = output

        return hook

    with ExitStack() as stack:
        for number, layer in enumerate(layers):
            stack.enter_context(layer.register_forward_hook(record_as(number)))
        yield outputs


@contextmanager
def change_weights(parts: Sequence[nn.Module], change: Change) -> Iterator[None]:
    """The network with other attention: `change` is applied to the output of each normalizer."""
    before = [part.normalize for part in parts]

    def with_change(name_or_normalizer: Any) -> normalizers.Normalizer:
        normalize = normalizers.normalizer_by_name(name_or_normalizer)
        return lambda scores, mask: change(normalize(scores, mask), mask)

    try:
        for part, normalizer in zip(parts, before, strict=True):
            part.normalize = with_change(normalizer)  # type: ignore[assignment]
        yield
    finally:
        for part, normalizer in zip(parts, before, strict=True):
            part.normalize = normalizer


@contextmanager
def block_gradient(parts: Sequence[nn.Module]) -> Iterator[None]:
    """The network without a gradient through its attention, neither weights nor values."""
    with ExitStack() as stack:
        for part in parts:
            if isinstance(part, PastAttention):
                width = part.join.out_features
                stack.enter_context(part.join.register_forward_pre_hook(_detach_second_half(width)))
            elif isinstance(part, MultiHead):
                stack.callback(part.__dict__.pop, "read", None)
                part.read = _without_gradient(part.read)  # type: ignore[method-assign]
            else:
                stack.enter_context(part.register_forward_hook(_detach_output))
        yield


def constant_weights(weights: Tensor, mask: Tensor | None) -> Tensor:
    """The same weights as constants: the gradient passes through the values alone."""
    return weights.detach()


def uniform_weights(weights: Tensor, mask: Tensor | None) -> Tensor:
    """The same weight for every allowed key, with the same sum."""
    allowed = torch.ones_like(weights) if mask is None else mask.expand_as(weights).to(weights)
    share = allowed / allowed.sum(-1, keepdim=True).clamp(min=1)
    return share * weights.sum(-1, keepdim=True)


def shuffle_weights(generator: torch.Generator) -> Change:
    """The same weights at other keys: each row is permuted by itself, among its allowed keys.

    Jain and Wallace, 2019, https://arxiv.org/abs/1902.10186
    """

    def change(weights: Tensor, mask: Tensor | None) -> Tensor:
        closed = (
            torch.zeros_like(weights, dtype=torch.bool)
            if mask is None
            else ~mask.expand_as(weights)
        )
        noise = torch.rand(weights.shape, generator=generator).to(weights.device)
        noise = noise.masked_fill(closed, 2.0)
        # both orders list the allowed keys first, one in random order and one as they stand
        permuted, plain = noise.argsort(-1), closed.to(torch.uint8).argsort(dim=-1, stable=True)
        return torch.zeros_like(weights).scatter(-1, permuted, weights.gather(-1, plain))

    return change


def _detach_second_half(width: int) -> Any:
    """For `PastAttention.join`, which reads the state and what was attended to side by side."""

    def hook(_part: nn.Module, given: tuple[Tensor]) -> Tensor:
        return torch.cat([given[0][..., :width], given[0][..., width:].detach()], -1)

    return hook


def _without_gradient(read: Callable[..., Any]) -> Callable[..., Any]:
    def read_detached(*given: Any, **options: Any) -> Any:
        return _detach_output(None, None, read(*given, **options))

    return read_detached


def _detach_output(_part: Any, _given: Any, attended: Any) -> Any:
    return attended._replace(output=attended.output.detach())
