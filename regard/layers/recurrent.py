"""Recurrent layers: Elman, GRU and LSTM, as one step and as an encoder of whole sequences.

The state is a tuple, (hidden,) or (hidden, cell) for the LSTM, with the batch first.

Elman, 1990, https://doi.org/10.1207/s15516709cog1402_1; Hochreiter and Schmidhuber, 1997,
https://doi.org/10.1162/neco.1997.9.8.1735; Cho et al., 2014, https://arxiv.org/abs/1406.1078
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.attention.deferred_gradients import Deferred, current
from regard.errors import unknown
from regard.layers.dropout import Dropout
from regard.layers.expected_size import expect_size
from regard.layers.padded_recurrence import run_padded

State = tuple[Tensor, ...]

STEPS: dict[str, type[nn.RNNCell | nn.GRUCell | nn.LSTMCell]] = {
    "elman": nn.RNNCell,
    "gru": nn.GRUCell,
    "lstm": nn.LSTMCell,
}
SEQUENCES: dict[str, type[nn.RNN | nn.GRU | nn.LSTM]] = {
    "elman": nn.RNN,
    "gru": nn.GRU,
    "lstm": nn.LSTM,
}


class EncoderOutput(NamedTuple):
    """The state at each position, and the last state of each layer, both directions joined."""

    states: Float[Tensor, "b t s"]
    last: tuple[Float[Tensor, "b l s"], ...]


class Cell(nn.Module):
    """One step of a recurrent network: h_t = tanh(W_e x_t + W_h h_{t-1} + b), or a gated variant.

    >>> cell = Cell(3, 5, "lstm")
    >>> hidden, memory = cell(torch.randn(2, 3), cell.initial(torch.zeros(2, 5)))
    >>> hidden.shape
    torch.Size([2, 5])
    """

    def __init__(self, input_size: int, hidden: int, kind: str = "gru") -> None:
        super().__init__()
        if kind not in STEPS:
            raise ValueError(unknown("cell", kind, STEPS))
        self.kind = kind
        self.step = STEPS[kind](input_size, hidden)

    def initial(
        self, hidden: Float[Tensor, "b h"], memory: Float[Tensor, "b h"] | None = None
    ) -> State:
        """The state that begins with this hidden vector.

        An LSTM also has a memory cell: the one given, or else the hidden vector too.
        """
        expect_size("the hidden vector", hidden, self.step.hidden_size)
        if self.kind == "lstm":
            return hidden, hidden if memory is None else memory
        if memory is not None:
            raise ValueError(f"only an lstm has a memory cell; this is {self.kind}")
        return (hidden,)

    def forward(self, inputs: Float[Tensor, "b w"], state: State) -> State:
        """The next state; its first part is the hidden vector."""
        expect_size("the input", inputs, self.step.input_size)
        loop = current()
        if loop is not None and self._is_plain:
            return self._step_in_loop(loop, inputs, state)
        if self.kind == "lstm":
            return tuple(self.step(inputs, state))
        return (self.step(inputs, state[0]),)

    @property
    def _is_plain(self) -> bool:
        """Whether all weights are learned, and nobody watches the step."""
        step = self.step
        hooked = step._forward_hooks or step._forward_pre_hooks or step._backward_hooks
        return not hooked and all(weight.requires_grad for weight in step.parameters())

    def _step_in_loop(self, loop: Deferred, inputs: Tensor, state: State) -> State:
        """The same step, written out, with the weight gradients deferred."""
        hidden, step = state[0], self.step
        given = loop.product(inputs, step.weight_ih, step.bias_ih)
        recurrent = loop.product(hidden, step.weight_hh, step.bias_hh)
        if self.kind == "elman":
            return ((given + recurrent).tanh(),)
        size = step.hidden_size
        if self.kind == "gru":
            both = (given[:, : 2 * size] + recurrent[:, : 2 * size]).sigmoid()
            reset, update = both.chunk(2, 1)
            new = (given[:, 2 * size :] + reset * recurrent[:, 2 * size :]).tanh()
            return (torch.lerp(new, hidden, update),)
        gates = given + recurrent
        entry, forget = gates[:, : 2 * size].sigmoid().chunk(2, 1)
        cell = forget * state[1] + entry * gates[:, 2 * size : 3 * size].tanh()
        return gates[:, 3 * size :].sigmoid() * cell.tanh(), cell


class StackedCell(nn.Module):
    """Cells on top of each other: each reads the hidden vector of the one below it.

    The state begins with that of the top cell, whose hidden vector is what a query needs; those of
    the others follow, from the bottom up.

    >>> cell = StackedCell(3, 5, "lstm", layers=2)
    >>> state = cell(torch.randn(2, 3), cell.initial(torch.zeros(2, 5)))
    >>> len(state), state[0].shape
    (4, torch.Size([2, 5]))
    """

    def __init__(
        self, input_size: int, hidden: int, kind: str = "gru", *, layers: int, dropout: float = 0.0
    ) -> None:
        """Make the cells; dropout is applied between them."""
        super().__init__()
        sizes = [input_size] + [hidden] * (layers - 1)
        self.cells = nn.ModuleList(Cell(size, hidden, kind) for size in sizes)
        self.dropout = Dropout(dropout)

    def initial(
        self, hidden: Float[Tensor, "b h"], memory: Float[Tensor, "b h"] | None = None
    ) -> State:
        """The state in which every cell begins like `Cell.initial`."""
        return tuple(part for cell in self.bottom_up for part in cell.initial(hidden, memory))

    @property
    def bottom_up(self) -> list[Cell]:
        """The cells, each below the next."""
        return [cell for cell in self.cells if isinstance(cell, Cell)]

    def forward(self, inputs: Float[Tensor, "b w"], state: State) -> State:
        """The next state; its first part is the hidden vector of the top cell."""
        parts = len(state) // len(self.cells)
        *lower, top = self.bottom_up
        after: list[Tensor] = []
        for number, cell in enumerate(lower, 1):
            after += cell(inputs, state[parts * number : parts * (number + 1)])
            inputs = self.dropout(after[-parts])
        return (*top(inputs, state[:parts]), *after)


def make_cell(
    input_size: int, hidden: int, kind: str, layers: int = 1, dropout: float = 0.0
) -> Cell | StackedCell:
    """One cell, or several on top of each other."""
    if layers == 1:
        return Cell(input_size, hidden, kind)
    return StackedCell(input_size, hidden, kind, layers=layers, dropout=dropout)


class Encoder(nn.Module):
    """A recurrent network over whole sequences, in one direction or in both.

    Padding changes nothing: the backward direction begins at the end of each sequence. States of
    both directions are joined. Without gradients, sequences are packed, which computes nothing for
    padding; with gradients they are flipped (`run_padded`), which is linear in their length. So are
    those of an LSTM with little padding, for which torch has a fused kernel.

    Schuster and Paliwal, 1997, https://doi.org/10.1109/78.650093

    >>> encoder = Encoder(3, 5)
    >>> states, (last,) = encoder(torch.randn(2, 7, 3), torch.tensor([7, 4]))
    >>> states.shape, last.shape
    (torch.Size([2, 7, 10]), torch.Size([2, 1, 10]))
    """

    def __init__(
        self,
        input_size: int,
        hidden: int,
        *,
        cell: str = "gru",
        layers: int = 1,
        bidirectional: bool = True,
        dropout: float = 0.0,
    ) -> None:
        """Make the network.

        Args:
            input_size: size of the vectors that come in.
            hidden: size of the state of one direction.
            cell: elman, gru or lstm.
            layers: number of stacked layers.
            bidirectional: also read from the end; states are twice as large.
            dropout: between layers, in training; not applied to the states of the last layer.
        """
        super().__init__()
        if cell not in SEQUENCES:
            raise ValueError(unknown("cell", cell, SEQUENCES))
        self.layers = layers
        self.directions = 2 if bidirectional else 1
        self.size = hidden * self.directions
        self.network = SEQUENCES[cell](
            input_size,
            hidden,
            layers,
            batch_first=True,
            bidirectional=bidirectional,
            dropout=dropout if layers > 1 else 0.0,
        )

    def forward(
        self,
        inputs: Float[Tensor, "b t w"],
        lengths: Int[Tensor, "b"] | None = None,
        state: State | None = None,
    ) -> EncoderOutput:
        """Read the sequences.

        Args:
            inputs: the vectors of each sequence, padded after its end.
            lengths: how many of them are real, 0 included (default: all). States after the end are
                zero, and the last state is that at the end.
            state: where to begin, as `last` of an earlier call (default: zeros). In one
                direction, two calls equal one on the joined sequence.
        """
        expect_size("the input", inputs, self.network.input_size)
        batch, time, _ = inputs.shape
        before = self._zeros(inputs) if state is None else state
        if inputs.shape[:2].numel() == 0:
            return EncoderOutput(inputs.new_zeros(batch, time, self.size), before)
        if lengths is None:
            states, last = self.network(inputs, self._inner(before))
            return EncoderOutput(states, self._outer(last))
        _check_lengths(lengths, inputs)
        flip = torch.is_grad_enabled() or self._gains_by_flipping(inputs, lengths)
        run = self._run_flipped if flip else self._run_packed
        states, last = run(inputs, lengths, before)
        empty = (lengths == 0).to(inputs.device)[:, None, None]
        after = zip(before, last, strict=True)
        return EncoderOutput(
            states.masked_fill(empty, 0.0),
            tuple(torch.where(empty, old, new) for old, new in after),
        )

    def _gains_by_flipping(self, inputs: Tensor, lengths: Tensor) -> bool:
        """Whether torch's fused LSTM, which takes no packed sequences, saves more than padding."""
        fused = self.network.mode == "LSTM" and torch.backends.mkldnn.is_available()
        if not fused or inputs.device.type != "cpu" or inputs.dtype != torch.float32:
            return False
        return 3 * int(lengths.sum()) >= 2 * lengths.numel() * inputs.shape[1]

    def _run_flipped(self, inputs: Tensor, lengths: Tensor, before: State) -> EncoderOutput:
        """The network on padded sequences; the last state of an empty one has no meaning."""
        inner = self._inner(before)
        parts = inner if isinstance(inner, tuple) else (inner,)
        states, last = run_padded(self.network, inputs, lengths, parts)
        return EncoderOutput(states, self._outer(last))

    def _run_packed(self, inputs: Tensor, lengths: Tensor, before: State) -> EncoderOutput:
        """The plain twin of `_run_flipped`, which is faster without gradients."""
        empty = (lengths == 0).to(inputs.device)[:, None, None]
        packed = pack_padded_sequence(
            # A packed sequence has at least one step: an empty one takes it on zeros, and the
            # result of that step has no meaning.
            inputs.masked_fill(empty, 0.0),
            lengths.clamp(min=1).cpu(),
            batch_first=True,
            enforce_sorted=False,
        )
        packed_states, last = self.network(packed, self._inner(before))
        states, _ = pad_packed_sequence(
            packed_states, batch_first=True, total_length=inputs.shape[1]
        )
        return EncoderOutput(states, self._outer(last))

    def _zeros(self, inputs: Tensor) -> State:
        zeros = inputs.new_zeros(len(inputs), self.layers, self.size)
        return (zeros, zeros) if self.network.mode == "LSTM" else (zeros,)

    def _outer(self, last: Tensor | tuple[Tensor, ...]) -> State:
        """[layers · directions, b, h] of torch as [b, layers, directions · h]."""
        parts = last if isinstance(last, tuple) else (last,)
        return tuple(
            part.unflatten(0, (self.layers, self.directions)).permute(2, 0, 1, 3).flatten(2)
            for part in parts
        )

    def _inner(self, state: State) -> Tensor | tuple[Tensor, ...]:
        parts = tuple(
            part.unflatten(2, (self.directions, -1)).permute(1, 2, 0, 3).flatten(0, 1).contiguous()
            for part in state
        )
        return parts if len(parts) > 1 else parts[0]


def _check_lengths(lengths: Tensor, inputs: Tensor) -> None:
    batch, time, _ = inputs.shape
    if lengths.shape != (batch,):
        raise ValueError(
            f"lengths of shape {list(lengths.shape)} for inputs of shape {list(inputs.shape)}: "
            f"expected one number per sequence, [{batch}]"
        )
    low, high = int(lengths.min()), int(lengths.max())
    if low < 0 or high > time:
        raise ValueError(
            f"lengths from {low} to {high} for inputs of shape {list(inputs.shape)}: expected "
            f"0 to {time}"
        )
