"""A recurrent network over padded sequences of different lengths, without packing them.

Packed sequences compute nothing for padding, but their backward pass costs the square of the time:
each step's slice gets a gradient of the size of the whole. Here both directions run over all steps,
the backward direction on sequences that are flipped at their own ends, so that padding comes last
in both and cannot reach a real state. The cost is linear in time, and the result is the same.
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

SATURATED = 1e4
"""Added to a gate at padding: its sigmoid is then exactly 0 or 1, in every floating-point type."""


class _Reorder(torch.autograd.Function):
    """Rows of a matrix in another order, where reordering twice gives the first order again."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, order: Tensor) -> Tensor:
        ctx.save_for_backward(order)
        return rows.index_select(0, order)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (order,) = ctx.saved_tensors
        return _apply(gradients[0], order), None


def run_padded(
    network: nn.RNNBase,
    inputs: Float[Tensor, "b t w"],
    lengths: Int[Tensor, "b"],
    before: tuple[Float[Tensor, "n b h"], ...],
) -> tuple[Float[Tensor, "b t s"], tuple[Float[Tensor, "n b h"], ...]]:
    """The states of the last layer, zero in the padding, and the last state of every direction.

    `n` is layers · directions, as torch orders it. The last state of an empty sequence has no
    meaning. What `network` computes on each sequence without its padding is the same.
    """
    batch, time, _ = inputs.shape
    directions = 2 if network.bidirectional else 1
    steps = torch.arange(time, device=inputs.device)
    lengths = lengths.to(inputs.device)[:, None]
    padding = (steps >= lengths)[:, :, None]
    flipped = torch.where(padding[:, :, 0], steps, lengths - 1 - steps)
    first_rows = torch.arange(0, batch * time, time, device=inputs.device)[:, None]
    order = (first_rows + flipped).flatten()
    ends = (lengths - 1).clamp(min=0)[:, :, None].expand(-1, -1, network.hidden_size)
    states = inputs.masked_fill(padding, 0.0)
    last: list[tuple[Tensor, ...]] = []
    for layer in range(network.num_layers):
        if layer:
            states = F.dropout(states, network.dropout, network.training)
        joined = []
        for direction in range(directions):
            number = layer * directions + direction
            read = _reorder(states, order) if direction else states
            weights = network.all_weights[number]
            first = tuple(part[number : number + 1].contiguous() for part in before)
            found, memory = _run_layer(network.mode, read, weights, first, padding)
            last.append((found.gather(1, ends)[:, 0], *memory))
            joined.append(_reorder(found, order) if direction else found)
        states = torch.cat(joined, -1).masked_fill(padding, 0.0)
    return states, tuple(torch.stack(parts) for parts in zip(*last, strict=True))


def _reorder(states: Float[Tensor, "b t w"], order: Int[Tensor, "r"]) -> Float[Tensor, "b t w"]:
    return _apply(states.flatten(0, 1), order).view_as(states)


def _apply(rows: Float[Tensor, "r w"], order: Int[Tensor, "r"]) -> Float[Tensor, "r w"]:
    return _Reorder.apply(rows, order)  # type: ignore[no-untyped-call,no-any-return]


def _run_layer(
    mode: str,
    inputs: Float[Tensor, "b t w"],
    weights: Sequence[Tensor],
    first: tuple[Tensor, ...],
    padding: Tensor,
) -> tuple[Float[Tensor, "b t h"], tuple[Tensor, ...]]:
    """One layer in one direction: its hidden states, and an LSTM's memory cell at the end."""
    # biases, one layer, no dropout, not in training, one direction, batch first
    options = (True, 1, 0.0, False, False, True)
    if mode == "GRU":
        return torch.gru(inputs, first[0], list(weights), *options)[0], ()
    if mode == "RNN_TANH":
        return torch.rnn_tanh(inputs, first[0], list(weights), *options)[0], ()
    # torch returns the memory after the last step alone. One more input, 1 at padding, closes the
    # input gate there and opens the forget gate, so that the memory stays what it was at the end.
    hidden = first[0].shape[-1]
    column = inputs.new_tensor([-SATURATED, SATURATED, 0.0, 0.0]).repeat_interleave(hidden)
    held = [torch.cat([weights[0], column[:, None].to(weights[0].dtype)], 1), *weights[1:]]
    marked = torch.cat([inputs, padding.to(inputs.dtype)], -1)
    states, _, memory = torch.lstm(marked, list(first), held, *options)
    return states, (memory[0],)
