"""Decoders of translation: whole targets at once in training, one word at a time in search.

A decoder is a module class that is built from one `DecoderOptions` record. Its states are named
tuples of tensors with the batch first, so that a beam can reorder them; what is known of the source
stands apart, in `source`, since it is the same at every step.

`DECODERS` has one row per name. Another package adds rows with entry points in the group
"regard.decoders".
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention import masks
from regard.attention.deferred_gradients import apply_linear, deferred_gradients
from regard.errors import unknown
from regard.layers import (
    BahdanauStep,
    DecoderState,
    DecoderStepOutput,
    LuongStep,
    MemoryAttention,
    PreparedMemory,
)
from regard.layers.dropout import Dropout
from regard.layers.recurrent import make_cell
from regard.models.encoders import Context, real_positions
from regard.models.layer_options import LayerOptions
from regard.models.output import Weights
from regard.models.transformer_stack import Caches, TransformerStack

ORDERS: dict[str, type[BahdanauStep | LuongStep]] = {"bahdanau": BahdanauStep, "luong": LuongStep}


@dataclass(frozen=True)
class DecoderOptions:
    """Sizes and choices of a decoder."""

    layer: LayerOptions
    """Options that it has in common with encoders."""
    memory_size: int
    """Size of the encoder's states."""
    order: str = "luong"
    """Order of a recurrent decoder: bahdanau attends before each step, luong after it."""
    input_feeding: bool = False
    """Whether the output of a recurrent step is part of the next one's input."""
    local: str = "none"
    """Local attention of a recurrent decoder: none, m or p."""
    local_width: int = 5
    """Number of positions on each side that local attention reaches."""


class DecoderOutput(NamedTuple):
    """Vectors to predict from, attention weights by name, and the balance loss of experts."""

    states: Float[Tensor, "b t m"]
    weights: Weights
    balance: Float[Tensor, ""] | None


class FixedContextStep(nn.Module):
    """s_t = g([y_{t-1}; c], s_{t-1}): a step without attention, with the same context c each time.

    The output is o_t = tanh(W [s_t; c; y_{t-1}] + b).

    Cho et al., 2014, https://arxiv.org/abs/1406.1078
    """

    def __init__(
        self,
        input_size: int,
        hidden: int,
        context_size: int,
        *,
        cell: str,
        layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.cell = make_cell(input_size + context_size, hidden, cell, layers, dropout)
        self.output = nn.Linear(hidden + context_size + input_size, hidden)

    def initial(
        self, hidden: Float[Tensor, "b h"], memory: Float[Tensor, "b h"] | None = None
    ) -> DecoderState:
        """The state before the first step."""
        return DecoderState(self.cell.initial(hidden, memory), None, 0)

    def forward(
        self, inputs: Float[Tensor, "b w"], state: DecoderState, context: Float[Tensor, "b m"]
    ) -> DecoderStepOutput:
        """One step."""
        cell = self.cell(torch.cat([inputs, context], -1), state.cell)
        output = apply_linear(self.output, torch.cat([cell[0], context, inputs], -1)).tanh()
        return DecoderStepOutput(output, DecoderState(cell, None, state.position + 1), None)


class RecurrentSource(NamedTuple):
    """What a recurrent decoder knows of the source."""

    key: Float[Tensor, "b k a"] | None
    value: Float[Tensor, "b k m"] | None
    lengths: Int[Tensor, "b"] | None
    """None where there is no padding."""
    context: Float[Tensor, "b m"] | None
    """The summary of the source that every step gets, where there is no attention."""


class RecurrentState(NamedTuple):
    """The state of a recurrent decoder between two words."""

    source: RecurrentSource
    own: DecoderState

    @property
    def position(self) -> int:
        """Number of words so far."""
        return self.own.position


class RecurrentDecoder(nn.Module):
    """A recurrent decoder, in Bahdanau's or Luong's order, or without attention.

    s_0 = tanh(W h_T + b), from the last state of the encoder; an LSTM's memory cell begins as a
    linear function of the encoder's. With several layers, all of them begin so.
    """

    needs_positions: ClassVar[bool] = False
    needs_attention: ClassVar[bool] = False
    attends: ClassVar[bool] = False

    def __init__(self, options: DecoderOptions) -> None:
        """Make the decoder; the score "none" makes one without attention."""
        super().__init__()
        width = hidden = options.layer.width
        cell, memory_size = options.layer.cell, options.memory_size
        if options.order not in ORDERS:
            raise ValueError(unknown("order", options.order, ORDERS))
        self.first = nn.Linear(memory_size, hidden)
        self.first_memory = nn.Linear(memory_size, hidden) if cell == "lstm" else None
        self.dropout = Dropout(options.layer.dropout)
        self.one: FixedContextStep | BahdanauStep | LuongStep
        stacked: dict[str, Any] = {
            "layers": options.layer.layers,
            "dropout": options.layer.dropout,
        }
        if options.layer.score == "none":
            self.one = FixedContextStep(width, hidden, memory_size, cell=cell, **stacked)
            return
        reading = MemoryAttention(
            hidden,
            memory_size,
            score="additive" if options.layer.score is None else options.layer.score,
            hidden=hidden,
            normalize=options.layer.normalize,
            local=options.local,
            width=options.local_width,
            max_keys=options.layer.max_keys,
        )
        step = ORDERS[options.order]
        feeding = options.input_feeding
        self.one = step(width, reading, cell=cell, input_feeding=feeding, **stacked)

    def start(self, context: Context) -> RecurrentState:
        """The state before the first word."""
        hidden = self.first(context.last[0]).tanh()
        memory = None if self.first_memory is None else self.first_memory(context.last[-1])
        own = self.one.initial(hidden, memory)
        if isinstance(self.one, FixedContextStep):
            return RecurrentState(RecurrentSource(None, None, None, context.last[0]), own)
        _, key, value, lengths = self.one.reading.prepare(
            self.dropout(context.states), context.lengths
        )
        return RecurrentState(RecurrentSource(key, value, lengths, None), own)

    def step(
        self,
        vectors: Float[Tensor, "b w"],
        state: RecurrentState,
        *,
        allowed: Bool[Tensor, "b k"] | None = None,
        need_weights: bool = False,
    ) -> tuple[Tensor, RecurrentState, Weights]:
        """One word further; `allowed` restricts which source words it may attend to."""
        output, own, weights = self._step(vectors, state, allowed, need_weights)
        named = {} if weights is None else {"source": weights[:, None, None]}
        return self.dropout(output), RecurrentState(state.source, own), named

    def forward(
        self,
        vectors: Float[Tensor, "b t w"],
        context: Context,
        lengths: Int[Tensor, "b"] | None = None,
        *,
        need_weights: bool = False,
    ) -> DecoderOutput:
        """All words of known targets; what stands behind their `lengths` changes nothing."""
        source, own = self.start(context)
        outputs: list[Tensor] = []
        rows: list[Tensor] = []
        with deferred_gradients(wanted=self.training) as loop:
            if loop is not None and source.key is not None and source.value is not None:
                key, value = loop.memory(source.key, source.value)
                source = source._replace(key=key, value=value)
            for word in vectors.unbind(1):
                state = RecurrentState(source, own)
                output, own, weights = self._step(word, state, None, need_weights)
                outputs.append(output)
                if weights is not None:
                    rows.append(weights)
        named = {"source": torch.stack(rows, 1)[:, None]} if rows else {}
        return DecoderOutput(self.dropout(torch.stack(outputs, 1)), named, None)

    def _step(
        self, vectors: Tensor, state: RecurrentState, allowed: Tensor | None, need_weights: bool
    ) -> DecoderStepOutput:
        """The step itself: dropout on its output is left to the caller."""
        source, own = state
        if isinstance(self.one, FixedContextStep):
            fixed: DecoderStepOutput = self.one(vectors, own, source.context)
            return fixed
        assert source.key is not None  # start has prepared both
        assert source.value is not None
        # a score has weights: it is taken from the module, never from the state, which a beam
        # reorders
        score = self.one.reading.prepared_score()
        memory = PreparedMemory(score, source.key, source.value, source.lengths)
        stepped: DecoderStepOutput = self.one(
            vectors, own, memory, allowed, need_weights=need_weights
        )
        return stepped


class TransformerSource(NamedTuple):
    """What a transformer decoder knows of the source: keys and values of each layer."""

    caches: Caches
    lengths: Int[Tensor, "b"] | None
    """None where there is no padding."""


class TransformerState(NamedTuple):
    """The state of a transformer decoder between two words."""

    source: TransformerSource
    own: Caches
    position: int


class TransformerDecoder(nn.Module):
    """Transformer blocks that attend to earlier target words and to the source."""

    needs_positions: ClassVar[bool] = True
    needs_attention: ClassVar[bool] = True
    attends: ClassVar[bool] = True

    def __init__(self, options: DecoderOptions) -> None:
        super().__init__()
        self.stack = TransformerStack(options.layer, source_width=options.memory_size)

    def start(self, context: Context) -> TransformerState:
        """The state before the first word: the source is projected once, for all steps."""
        keys = context.states.shape[1]
        lengths = None if bool((context.lengths == keys).all()) else context.lengths
        source = TransformerSource(self.stack.source_caches(context.states), lengths)
        return TransformerState(source, self.stack.empty_caches(len(context.states)), 0)

    def step(
        self,
        vectors: Float[Tensor, "b w"],
        state: TransformerState,
        *,
        allowed: Bool[Tensor, "b k"] | None = None,
        need_weights: bool = False,
    ) -> tuple[Tensor, TransformerState, Weights]:
        """One word further; `allowed` restricts which source words it may attend to."""
        source_mask = _source_mask(state.source)
        if allowed is not None:
            restriction = masks.as_mask(allowed[:, None])
            source_mask = restriction if source_mask is None else source_mask & restriction
        passed = self.stack(
            vectors[:, None],
            name="decoder",
            own=state.own,
            source=state.source.caches,
            source_mask=source_mask,
            need_weights=need_weights,
        )
        after = TransformerState(state.source, passed.caches, state.position + 1)
        return passed.states[:, 0], after, passed.weights

    def forward(
        self,
        vectors: Float[Tensor, "b t w"],
        context: Context,
        lengths: Int[Tensor, "b"] | None = None,
        *,
        need_weights: bool = False,
    ) -> DecoderOutput:
        """All words of known targets at once; no word attends to later ones.

        The `lengths` keep padding from the experts.
        """
        state = self.start(context)
        passed = self.stack(
            vectors,
            masks.causal(),
            name="decoder",
            own=state.own,
            source=state.source.caches,
            source_mask=_source_mask(state.source),
            real=None if lengths is None else real_positions(vectors.shape[1], lengths),
            need_weights=need_weights,
        )
        return DecoderOutput(passed.states, passed.weights, passed.balance)


def _source_mask(source: TransformerSource) -> masks.Mask | None:
    return None if source.lengths is None else masks.lengths(source.lengths)
