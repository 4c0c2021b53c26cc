"""Decoder steps of recurrent translation: Bahdanau attends before the step, Luong after it.

Both take the previous word, their own state and the prepared source, and return a vector to predict
the next word from. Nothing is kept between calls: the state is an argument and a result.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.deferred_gradients import apply_linear
from regard.attention.masks import Mask
from regard.layers.expected_size import expect_size
from regard.layers.memory_attention import MemoryAttention, PreparedMemory
from regard.layers.recurrent import State, make_cell


class DecoderState(NamedTuple):
    """What passes from step to step; `fed` is the output of the step before, for input feeding."""

    cell: State
    fed: Float[Tensor, "b o"] | None
    position: int


class DecoderStepOutput(NamedTuple):
    """A vector to predict from, the state after the step, and the attention weights."""

    output: Float[Tensor, "b o"]
    state: DecoderState
    weights: Float[Tensor, "b k"] | None


class BahdanauStep(nn.Module):
    """c_t = attend(s_{t-1}, h), s_t = g([y_{t-1}; c_t], s_{t-1}): attend, then step.

    The output is o_t = tanh(W [s_t; c_t; y_{t-1}] + b); with input feeding, the cell's input is
    [y_{t-1}; c_t; o_{t-1}].

    Bahdanau, Cho and Bengio, 2015, https://arxiv.org/abs/1409.0473

    >>> reading = MemoryAttention(8, 10, score="additive")
    >>> step = BahdanauStep(4, reading)
    >>> source = reading.prepare(torch.randn(2, 5, 10))
    >>> output, state, weights = step(torch.randn(2, 4), step.initial(torch.zeros(2, 8)), source)
    >>> output.shape, weights.shape
    (torch.Size([2, 8]), torch.Size([2, 5]))
    """

    def __init__(
        self,
        input_size: int,
        reading: MemoryAttention,
        *,
        cell: str = "gru",
        input_feeding: bool = False,
        layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        """Make the cell around an attention whose query is the state.

        Args:
            input_size: size of the word vectors.
            reading: the attention from the state to the source; its query has the size
                of the state.
            cell: elman, gru or lstm.
            input_feeding: the output of a step is part of the next one's input.
            layers: number of cells on top of each other; attention's query is the top one's state.
            dropout: between layers, in training.
        """
        super().__init__()
        hidden, memory = reading.query_size, reading.memory_size
        self.reading, self.input_size, self.input_feeding = reading, input_size, input_feeding
        size = input_size + memory + (hidden if input_feeding else 0)
        self.cell = make_cell(size, hidden, cell, layers, dropout)
        self.output = nn.Linear(hidden + memory + input_size, hidden)

    def initial(
        self, hidden: Float[Tensor, "b h"], memory: Float[Tensor, "b h"] | None = None
    ) -> DecoderState:
        """The state before the first step; `memory` is an LSTM's, see `Cell.initial`."""
        return _initial(self.cell.initial(hidden, memory), self.input_feeding)

    def forward(
        self,
        inputs: Float[Tensor, "b w"],
        state: DecoderState,
        source: PreparedMemory,
        mask: Mask | Tensor | None = None,
        *,
        need_weights: bool = True,
    ) -> DecoderStepOutput:
        """One step.

        Args:
            inputs: the previous word.
            state: from `initial`, or from the step before.
            source: the result of the attention's `prepare` for the source.
            mask: True = may attend, in addition to the source's lengths: bool [b, k] or a lazy
                mask.
            need_weights: whether weights are returned; the rest is the same without.
        """
        expect_size("the input", inputs, self.input_size)
        context, weights = _attend(
            self.reading, state.cell[0], source, mask, state.position, need_weights
        )
        cell = self.cell(_join(inputs, context, state.fed), state.cell)
        output = apply_linear(self.output, _join(cell[0], context, inputs)).tanh()
        return _step_output(output, cell, state, weights, self.input_feeding)


class LuongStep(nn.Module):
    """s_t = g(y_{t-1}, s_{t-1}), c_t = attend(s_t, h): step, then attend.

    The output is the attentional state s̃_t = tanh(W [c_t; s_t] + b); with input feeding, the
    cell's input is [y_{t-1}; s̃_{t-1}].

    Luong, Pham and Manning, 2015, https://arxiv.org/abs/1508.04025
    """

    def __init__(
        self,
        input_size: int,
        reading: MemoryAttention,
        *,
        cell: str = "gru",
        input_feeding: bool = True,
        layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        """Make the cell around an attention whose query is the state; see `BahdanauStep`."""
        super().__init__()
        hidden, memory = reading.query_size, reading.memory_size
        self.reading, self.input_size, self.input_feeding = reading, input_size, input_feeding
        size = input_size + (hidden if input_feeding else 0)
        self.cell = make_cell(size, hidden, cell, layers, dropout)
        self.output = nn.Linear(memory + hidden, hidden)

    def initial(
        self, hidden: Float[Tensor, "b h"], memory: Float[Tensor, "b h"] | None = None
    ) -> DecoderState:
        """The state before the first step; `memory` is an LSTM's, see `Cell.initial`."""
        return _initial(self.cell.initial(hidden, memory), self.input_feeding)

    def forward(
        self,
        inputs: Float[Tensor, "b w"],
        state: DecoderState,
        source: PreparedMemory,
        mask: Mask | Tensor | None = None,
        *,
        need_weights: bool = True,
    ) -> DecoderStepOutput:
        """One step, with the arguments of `BahdanauStep`."""
        expect_size("the input", inputs, self.input_size)
        cell = self.cell(_join(inputs, state.fed), state.cell)
        context, weights = _attend(
            self.reading, cell[0], source, mask, state.position, need_weights
        )
        output = apply_linear(self.output, _join(context, cell[0])).tanh()
        return _step_output(output, cell, state, weights, self.input_feeding)


def _initial(cell: State, input_feeding: bool) -> DecoderState:
    return DecoderState(cell, torch.zeros_like(cell[0]) if input_feeding else None, 0)


def _attend(
    reading: MemoryAttention,
    hidden: Tensor,
    source: PreparedMemory,
    mask: Mask | Tensor | None,
    position: int,
    need_weights: bool,
) -> tuple[Tensor, Tensor | None]:
    """Attention of a single query to the source."""
    attended = reading(
        hidden.unsqueeze(1), source, mask, position=position, need_weights=need_weights
    )
    weights = attended.weights
    return attended.output.squeeze(1), None if weights is None else weights.squeeze(1)


def _join(*parts: Tensor | None) -> Tensor:
    return torch.cat([part for part in parts if part is not None], -1)


def _step_output(
    output: Tensor, cell: State, before: DecoderState, weights: Tensor | None, input_feeding: bool
) -> DecoderStepOutput:
    fed = output if input_feeding else None
    return DecoderStepOutput(output, DecoderState(cell, fed, before.position + 1), weights)
