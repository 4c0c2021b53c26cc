"""Decoders of translation: whole targets at once in training, a word at a time in search.

All states of a step are tensors with the batch first, so that a beam can reorder them. What is
known of the source stands apart, in `source`: it is the same at every step.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention import masks
from regard.attention.normalizers import Normalizer
from regard.attention.scores import Score
from regard.errors import unknown
from regard.layers import (
    BahdanauStep,
    Cell,
    DecoderState,
    LuongStep,
    Prepared,
    Reading,
    Stepped,
)
from regard.layers.dropout import Dropout
from regard.models.encoders import Context, real_places
from regard.models.output import Weights
from regard.models.stack import Caches, Stack

ORDERS: dict[str, type[BahdanauStep | LuongStep]] = {"bahdanau": BahdanauStep, "luong": LuongStep}


class Decoded(NamedTuple):
    """Vectors to predict from, where it looked, and the balance loss of experts."""

    states: Float[Tensor, "b t m"]
    weights: Weights
    balance: Float[Tensor, ""] | None


class BlindStep(nn.Module):
    """s_t = g([y_{t-1}; c], s_{t-1}): a step without attention; the context c is always the same.

    The output is o_t = tanh(W [s_t; c; y_{t-1}] + b).

    Cho et al., 2014, https://arxiv.org/abs/1406.1078
    """

    def __init__(self, input_size: int, hidden: int, context_size: int, *, cell: str) -> None:
        super().__init__()
        self.cell = Cell(input_size + context_size, hidden, cell)
        self.output = nn.Linear(hidden + context_size + input_size, hidden)

    def initial(
        self, hidden: Float[Tensor, "b h"], memory: Float[Tensor, "b h"] | None = None
    ) -> DecoderState:
        """The state before the first step."""
        return DecoderState(self.cell.initial(hidden, memory), None, 0)

    def forward(
        self, inputs: Float[Tensor, "b w"], state: DecoderState, context: Float[Tensor, "b m"]
    ) -> Stepped:
        """One step."""
        cell = self.cell(torch.cat([inputs, context], -1), state.cell)
        output = self.output(torch.cat([cell[0], context, inputs], -1)).tanh()
        return Stepped(output, DecoderState(cell, None, state.position + 1), None)


class RecurrentSource(NamedTuple):
    """What a recurrent decoder knows of the source."""

    key: Float[Tensor, "b k a"] | None
    value: Float[Tensor, "b k m"] | None
    lengths: Int[Tensor, "b"] | None
    """None where all of it is real."""
    context: Float[Tensor, "b m"] | None
    """What it is told at every step, where it has no attention."""


class RecurrentState(NamedTuple):
    """What passes from word to word of a recurrent decoder."""

    source: RecurrentSource
    own: DecoderState

    @property
    def position(self) -> int:
        """How many words there were."""
        return self.own.position


class RecurrentDecoder(nn.Module):
    """A recurrent decoder, in Bahdanau's or Luong's order, or without attention.

    s_0 = tanh(W h_T + b), from the last state of the encoder; an LSTM's memory cell begins as a
    linear function of the encoder's.
    """

    def __init__(
        self,
        width: int,
        hidden: int,
        memory_size: int,
        *,
        cell: str = "gru",
        score: str | Score = "additive",
        normalize: str | Normalizer = "softmax",
        order: str = "bahdanau",
        input_feeding: bool = False,
        local: str = "none",
        local_width: int = 5,
        dropout: float = 0.0,
        max_keys: int = 1024,
    ) -> None:
        """Make the decoder.

        Args:
            width: size of the word vectors.
            hidden: size of the state.
            memory_size: size of the encoder's states.
            cell: elman, gru or lstm.
            score: any score, or "none" for no attention.
            normalize: any normalizer.
            order: bahdanau or luong.
            input_feeding: the output of a step is part of the next one's input.
            local: none, m or p.
            local_width: how far local attention looks on each side.
            dropout: on the source that is looked at, and on what words are predicted from.
            max_keys: the longest source for the score "location".
        """
        super().__init__()
        if order not in ORDERS:
            raise ValueError(unknown("order", order, ORDERS))
        self.first = nn.Linear(memory_size, hidden)
        self.first_memory = nn.Linear(memory_size, hidden) if cell == "lstm" else None
        self.dropout = Dropout(dropout)
        self.one: BlindStep | BahdanauStep | LuongStep
        if score == "none":
            self.one = BlindStep(width, hidden, memory_size, cell=cell)
            return
        reading = Reading(
            hidden,
            memory_size,
            score=score,
            hidden=hidden,
            normalize=normalize,
            local=local,
            width=local_width,
            max_keys=max_keys,
        )
        self.one = ORDERS[order](width, reading, cell=cell, input_feeding=input_feeding)

    def start(self, context: Context) -> RecurrentState:
        """The state before the first word."""
        hidden = self.first(context.last[0]).tanh()
        memory = None if self.first_memory is None else self.first_memory(context.last[-1])
        own = self.one.initial(hidden, memory)
        if isinstance(self.one, BlindStep):
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
        look: Bool[Tensor, "b k"] | None = None,
        need_weights: bool = False,
    ) -> tuple[Tensor, RecurrentState, Weights]:
        """One word further: `look` says where it may look, if that is to be forced."""
        output, own, weights = self._step(vectors, state, look, need_weights)
        named = {} if weights is None else {"source": weights[:, None, None]}
        return self.dropout(output), RecurrentState(state.source, own), named

    def forward(
        self,
        vectors: Float[Tensor, "b t w"],
        context: Context,
        lengths: Int[Tensor, "b"] | None = None,
        *,
        need_weights: bool = False,
    ) -> Decoded:
        """All words of known targets; what stands behind their `lengths` changes nothing here."""
        source, own = self.start(context)
        outputs: list[Tensor] = []
        looks: list[Tensor] = []
        for word in vectors.unbind(1):
            output, own, weights = self._step(word, RecurrentState(source, own), None, need_weights)
            outputs.append(output)
            if weights is not None:
                looks.append(weights)
        named = {"source": torch.stack(looks, 1)[:, None]} if looks else {}
        return Decoded(self.dropout(torch.stack(outputs, 1)), named, None)

    def _step(
        self, vectors: Tensor, state: RecurrentState, look: Tensor | None, need_weights: bool
    ) -> Stepped:
        """The step itself: dropout on its output is left to the caller."""
        source, own = state
        if isinstance(self.one, BlindStep):
            blind: Stepped = self.one(vectors, own, source.context)
            return blind
        assert source.key is not None  # start has prepared both
        assert source.value is not None
        # The score has weights, so it is taken from the module and never stands in the state.
        score = self.one.reading.keyed_score()
        memory = Prepared(score, source.key, source.value, source.lengths)
        stepped: Stepped = self.one(vectors, own, memory, look, need_weights=need_weights)
        return stepped


class TransformerSource(NamedTuple):
    """What a transformer decoder knows of the source: keys and values of each layer."""

    caches: Caches
    lengths: Int[Tensor, "b"] | None
    """None where all of it is real."""


class TransformerState(NamedTuple):
    """What passes from word to word of a transformer decoder."""

    source: TransformerSource
    own: Caches
    position: int


class TransformerDecoder(nn.Module):
    """Transformer blocks that look back at the target and over at the source."""

    def __init__(self, stack: Stack) -> None:
        """Make it of blocks with a source."""
        super().__init__()
        self.stack = stack

    def start(self, context: Context) -> TransformerState:
        """The state before the first word: the source is projected once, nothing else is known."""
        keys = context.states.shape[1]
        lengths = None if bool((context.lengths == keys).all()) else context.lengths
        source = TransformerSource(self.stack.remember(context.states), lengths)
        return TransformerState(source, self.stack.nothing(len(context.states)), 0)

    def step(
        self,
        vectors: Float[Tensor, "b w"],
        state: TransformerState,
        *,
        look: Bool[Tensor, "b k"] | None = None,
        need_weights: bool = False,
    ) -> tuple[Tensor, TransformerState, Weights]:
        """One word further: `look` says where it may look in the source, if that is forced."""
        source_mask = _source_mask(state.source)
        if look is not None:
            pinned = masks.as_mask(look[:, None])
            source_mask = pinned if source_mask is None else source_mask & pinned
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
    ) -> Decoded:
        """All words of known targets at once; no word looks ahead.

        Nor does any look behind the `lengths`; they keep padding from the experts.
        """
        state = self.start(context)
        passed = self.stack(
            vectors,
            masks.causal(),
            name="decoder",
            own=state.own,
            source=state.source.caches,
            source_mask=_source_mask(state.source),
            real=None if lengths is None else real_places(vectors.shape[1], lengths),
            need_weights=need_weights,
        )
        return Decoded(passed.states, passed.weights, passed.balance)


def _source_mask(source: TransformerSource) -> masks.Mask | None:
    return None if source.lengths is None else masks.lengths(source.lengths)
