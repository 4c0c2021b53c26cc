"""The recurrent encoder of a translator, in the native library: GRU and LSTM, in both directions.

The inputs of all words go through one product; then each direction takes its steps in one call.
Sequences are sorted by length and packed by time, so that nothing is computed for padding.
"""

import ctypes
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.models.encoders import Context, RecurrentEncoder, real_positions
from regard.models.native.native_library import KINDS, Operation, Plan, Sequences, library
from regard.models.native.native_products import PackedLinear, Precision

CELLS = {"GRU": "gru", "LSTM": "lstm"}
"""Operations by the mode of torch's network."""


def can_read(encoder: nn.Module) -> bool:
    """Whether an encoder is a recurrent network that can be compiled."""
    return type(encoder) is RecurrentEncoder and encoder.network.network.mode in CELLS


class NativeRecurrentEncoder:
    """A compiled recurrent encoder: the context that the encoder itself would give."""

    def __init__(self, encoder: RecurrentEncoder, quantize: Precision) -> None:
        network = encoder.network.network
        self.layers = [_Layer(network, layer, quantize) for layer in range(network.num_layers)]
        self.size = encoder.size

    def __call__(
        self,
        vectors: Float[Tensor, "b t w"],
        lengths: Int[Tensor, "b"],
        *,
        need_weights: bool = False,
    ) -> Context:
        """Encode the sequences; there is no attention, so there are no weights."""
        batch, time, _ = vectors.shape
        order = lengths.argsort(descending=True, stable=True)
        real = real_positions(time, lengths[order]).T
        active = real.sum(1)
        packed = _Packed(active, active.cumsum(0) - active, batch)
        words, last = vectors[order].transpose(0, 1)[real], vectors.new_zeros(0)
        for layer in self.layers:
            words, last = layer(words, packed)
        states = vectors.new_zeros(time, batch, self.size)
        states[real] = words
        back = order.argsort()
        return Context(
            states[:, back].transpose(0, 1).contiguous(),
            lengths,
            tuple(part[back] for part in last.unbind(1)),
        )


class _Packed(NamedTuple):
    """Sequences sorted by length and packed by time."""

    active: Int[Tensor, "t"]
    """How many of them reach each step."""
    first: Int[Tensor, "t"]
    """The row of the first of them."""
    sequences: int


class _Layer:
    """One layer, in one direction or both."""

    def __init__(self, network: nn.RNNBase, layer: int, quantize: Precision) -> None:
        suffixes = ("", "_reverse")[: 2 if network.bidirectional else 1]
        names = [f"l{layer}{suffix}" for suffix in suffixes]
        weights = [getattr(network, f"weight_ih_{name}") for name in names]
        biases = [getattr(network, f"bias_ih_{name}") for name in names]
        self.inputs = PackedLinear(torch.cat(weights), torch.cat(biases), quantize)
        self.hidden, self.state_vectors = network.hidden_size, 2 if network.mode == "LSTM" else 1
        self.gates = len(weights[0])
        recurrent = [
            PackedLinear(
                getattr(network, f"weight_hh_{name}"), getattr(network, f"bias_hh_{name}"), quantize
            )
            for name in names
        ]
        compiled = [self._compile(network.mode, product) for product in recurrent]
        self._tensors = recurrent, compiled
        self.plans = (Plan * len(compiled))(*(plan for plan, _ in compiled))

    def _compile(self, mode: str, product: PackedLinear) -> tuple[Plan, ctypes.Array[Operation]]:
        """One step: the state, then the gates of the input and, in a GRU, those of the state."""
        cell, gates = KINDS.index(CELLS[mode]), self._gates_column
        of_state = gates + self.gates if mode == "GRU" else gates
        operations = (Operation * 2)(
            Operation(
                kind=KINDS.index("product"),
                input=0,
                output=of_state,
                other=-1 if mode == "GRU" else gates,
                product=product.product,
            ),
            Operation(kind=cell, input=gates, other=of_state, state=0, width=self.hidden),
        )
        plan = Plan(
            operations=ctypes.cast(operations, ctypes.POINTER(Operation)),
            count=2,
            columns=of_state + self.gates,
            state_columns=self._gates_column,
        )
        return plan, operations

    @property
    def _gates_column(self) -> int:
        return self.state_vectors * self.hidden

    def __call__(
        self, words: Float[Tensor, "n w"], packed: _Packed
    ) -> tuple[Float[Tensor, "n h"], Float[Tensor, "b s h"]]:
        """The hidden vectors of all words, and the last state: its vectors, directions joined."""
        directions = len(self.plans)
        gates = self.inputs(words)
        outputs = gates.new_empty(len(words), directions * self.hidden)
        state = gates.new_zeros(directions, packed.sequences, self.state_vectors, self.hidden)
        records = (Sequences * directions)(
            *(
                Sequences(
                    steps=len(packed.active),
                    backward=direction,
                    active=packed.active.data_ptr(),
                    first=packed.first.data_ptr(),
                    inputs=gates.data_ptr() + 4 * direction * self.gates,
                    input=self._gates_column,
                    input_width=self.gates,
                    input_stride=gates.shape[1],
                    outputs=outputs.data_ptr() + 4 * direction * self.hidden,
                    output_width=self.hidden,
                    output_stride=outputs.shape[1],
                    state=state[direction].data_ptr(),
                )
                for direction in range(directions)
            )
        )
        failed = library().decoder_sequences(
            self.plans, records, directions, packed.sequences, torch.get_num_threads()
        )
        if failed:
            raise MemoryError("the native decoder cannot allocate its scratch memory")
        return outputs, state.permute(1, 2, 0, 3).flatten(2)
