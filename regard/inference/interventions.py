"""Hands inside a network: give it other vectors for its words, or other attention.

Everything is hung on a twin of the network that shares its weights, so that the network itself,
which others may be using, is never touched.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention import normalizers
from regard.layers import MultiHead, Pooling, Reading
from regard.models.lookback import LookBack

Change = Callable[[Tensor, Tensor | None], Tensor]
"""From weights [..., q, k] and the mask that they were made under to other weights."""


def twin(network: nn.Module) -> nn.Module:
    """A copy of the modules over the same weights, in evaluation."""
    shared = {id(tensor): tensor for tensor in (*network.parameters(), *network.buffers())}
    return copy.deepcopy(network, shared).eval()


def attentions(network: nn.Module) -> list[nn.Module]:
    """The parts of a network that compute weights: sums, means and maxima do not."""
    return [
        part
        for part in network.modules()
        if isinstance(part, MultiHead | Reading | LookBack)
        or (isinstance(part, Pooling) and part.kind in ("weighted", "fixed"))
    ]


@contextmanager
def given_vectors(
    parts: Sequence[nn.Module], vectors: Sequence[Float[Tensor, "b t _"]]
) -> Iterator[None]:
    """The network with these vectors for what its first layers make of the words."""
    with ExitStack() as stack:
        for part, theirs in zip(parts, vectors, strict=True):
            stack.enter_context(
                part.register_forward_hook(lambda _part, _given, _made, theirs=theirs: theirs)
            )
        yield


@contextmanager
def recorded(parts: Sequence[nn.Module]) -> Iterator[list[Tensor]]:
    """What first layers make of the words, in the order of the parts."""
    found: list[Tensor] = [torch.empty(0)] * len(parts)

    def keep(number: int) -> Any:
        def hook(_part: nn.Module, _given: Any, made: Tensor) -> None:
            found[number] = made

        return hook

    with ExitStack() as stack:
        for number, part in enumerate(parts):
            stack.enter_context(part.register_forward_hook(keep(number)))
        yield found


@contextmanager
def changed_weights(parts: Sequence[nn.Module], change: Change) -> Iterator[None]:
    """The network with other attention: `change` is applied to what each normalizer gives."""
    before = [part.normalize for part in parts]

    def instead(normalizer: Any) -> normalizers.Normalizer:
        named = normalizers.named(normalizer)
        return lambda scores, mask: change(named(scores, mask), mask)

    try:
        for part, normalizer in zip(parts, before, strict=True):
            part.normalize = instead(normalizer)  # type: ignore[assignment]
        yield
    finally:
        for part, normalizer in zip(parts, before, strict=True):
            part.normalize = normalizer


@contextmanager
def cut_off(parts: Sequence[nn.Module]) -> Iterator[None]:
    """The network with no gradient through what its attention reads, neither weights nor values."""
    with ExitStack() as stack:
        for part in parts:
            if isinstance(part, LookBack):
                width = part.join.out_features
                stack.enter_context(part.join.register_forward_pre_hook(_second_half(width)))
            elif isinstance(part, MultiHead):
                stack.callback(part.__dict__.pop, "read", None)
                part.read = _without_gradient(part.read)  # type: ignore[method-assign]
            else:
                stack.enter_context(part.register_forward_hook(_output_alone))
        yield


def held(weights: Tensor, mask: Tensor | None) -> Tensor:
    """The same weights as constants: gradient passes through the values alone."""
    return weights.detach()


def uniform(weights: Tensor, mask: Tensor | None) -> Tensor:
    """Every key that may be looked at alike, with the same sum."""
    allowed = torch.ones_like(weights) if mask is None else mask.expand_as(weights).to(weights)
    share = allowed / allowed.sum(-1, keepdim=True).clamp(min=1)
    return share * weights.sum(-1, keepdim=True)


def shuffled(generator: torch.Generator) -> Change:
    """The same weights at other keys: each row permuted by itself, among those it may look at.

    Jain and Wallace, 2019, https://arxiv.org/abs/1902.10186
    """

    def change(weights: Tensor, mask: Tensor | None) -> Tensor:
        closed = (
            torch.zeros_like(weights, dtype=torch.bool)
            if mask is None
            else ~mask.expand_as(weights)
        )
        noise = torch.rand(weights.shape, generator=generator).masked_fill(closed, 2.0)
        # both orders list the open keys first, one at random and one as they stand
        drawn, plain = noise.argsort(-1), closed.to(torch.uint8).argsort(dim=-1, stable=True)
        return torch.zeros_like(weights).scatter(-1, drawn, weights.gather(-1, plain))

    return change


def _second_half(width: int) -> Any:
    def hook(_part: nn.Module, given: tuple[Tensor]) -> Tensor:
        return torch.cat([given[0][..., :width], given[0][..., width:].detach()], -1)

    return hook


def _without_gradient(read: Callable[..., Any]) -> Callable[..., Any]:
    def instead(*given: Any, **options: Any) -> Any:
        return _output_alone(None, None, read(*given, **options))

    return instead


def _output_alone(_part: Any, _given: Any, made: Any) -> Any:
    return made._replace(output=made.output.detach())
