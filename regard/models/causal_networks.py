"""Networks that read a sequence step by step and never ahead.

Recurrent, transformer, with memory, or any encoder that can be causal.

Each has `start`, which returns the state before the first vector, and `forward`, which reads on
from a state and returns the next one: a sequence read in pieces gives the outputs of the whole.
They are the bodies of the language model and of the algorithm model.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention import masks
from regard.attention.scores import Score
from regard.layers import Cache, Cell, Encoder, Memory
from regard.layers.dropout import Dropout
from regard.layers.memory.addressing import similarity
from regard.layers.memory.external_memory import MemoryState
from regard.layers.neural_cache import CachedStates
from regard.layers.recurrent import State
from regard.models.layer_options import LayerOptions
from regard.models.output import Weights
from regard.models.past_attention import PastAttention
from regard.models.transformer_stack import Caches, TransformerStack


class NetworkOutput(NamedTuple):
    """Vectors to predict from, attention weights by name, and the balance loss of experts."""

    states: Float[Tensor, "b t s"]
    weights: Weights
    balance: Float[Tensor, ""] | None = None


class LanguageState(NamedTuple):
    """The state of a recurrent or transformer network between two pieces of a text."""

    cell: State
    """Last states of the recurrent layers, [b, layers, w]; empty in a transformer."""
    past: Float[Tensor, "b n w"] | None
    """Past states that a recurrent network may attend to, or the vectors an encoder has read."""
    caches: Caches
    """Keys and values of each layer of a transformer."""
    about: Float[Tensor, "b 1 w"] | None
    """The vector that a text is conditioned on, which is added at every position."""
    position: int
    recent: Int[Tensor, "b m"] | None = None
    """The last words, where an n-gram model predicts beside the network."""
    cache: CachedStates | None = None
    """Earlier states of the text with the words after them, where these are attended to."""


class RecurrentNetwork(nn.Module):
    """h_t = f(W_h h_{t-1} + W_e x_t + b) or a gated cell, with or without attention to the past."""

    def __init__(
        self,
        options: LayerOptions,
        *,
        learned_start: bool = False,
        window: int | None = None,
        split: bool = False,
        output_dropout: float = 0.0,
    ) -> None:
        """Make the network.

        Args:
            options: sizes and choices of the layers.
            learned_start: learn the state before the first vector (default: zeros).
            window: number of past states to attend to (default: no attention).
            split: past states are split into a key, a value and a prediction part.
            output_dropout: proportion of the features of its states dropped in training.
        """
        super().__init__()
        self.size = options.width
        self.network = Encoder(
            options.width,
            options.width,
            cell=options.cell,
            layers=options.layers,
            bidirectional=False,
            dropout=options.dropout,
        )
        first = torch.zeros(2 if options.cell == "lstm" else 1, options.layers, options.width)
        self.first: Tensor
        if learned_start:
            self.first = nn.Parameter(first)
        else:
            self.register_buffer("first", first, persistent=False)
        self.look = (
            None
            if window is None
            else PastAttention(
                options.width,
                score="additive" if options.score is None else options.score,
                normalize=options.normalize,
                split=split,
                window=window,
            )
        )
        self.dropout = Dropout(output_dropout)

    def start(self, batch: int, about: Float[Tensor, "b 1 w"] | None = None) -> LanguageState:
        """The first state; the vector that a text is conditioned on is added to it."""
        hidden, *memory = self.first.unsqueeze(1).expand(-1, batch, -1, -1)
        if about is not None:
            hidden = hidden + about
        past = None if self.look is None else hidden.new_zeros(batch, 0, hidden.shape[-1])
        return LanguageState((hidden, *memory), past, (), about, 0)

    def forward(
        self, vectors: Float[Tensor, "b t w"], state: LanguageState, *, need_weights: bool = False
    ) -> tuple[NetworkOutput, LanguageState]:
        """Read on from a state."""
        if state.about is not None:
            vectors = vectors + state.about
        states, cell = self.network(vectors, None, state.cell)
        past, weights = state.past, {}
        if self.look is not None:
            states, past, attended = self.look(states, past, need_weights=need_weights)
            if attended is not None:
                weights["past"] = attended[:, None]
        after = state.position + vectors.shape[1]
        return (
            NetworkOutput(self.dropout(states), weights),
            LanguageState(cell, past, (), state.about, after),
        )


class TransformerNetwork(nn.Module):
    """Transformer blocks that attend to earlier positions."""

    def __init__(self, options: LayerOptions, *, reach: int | None = None) -> None:
        """Make the blocks.

        Args:
            options: sizes and choices of the blocks.
            reach: number of positions that each attends to, itself included (default: all).
        """
        super().__init__()
        self.size, self.reach = options.width, reach
        self.absolute = options.score == "location"
        self.stack = TransformerStack(options)

    def start(self, batch: int, about: Float[Tensor, "b 1 w"] | None = None) -> LanguageState:
        """The first state: no position to attend to."""
        return LanguageState((), None, self.stack.empty_caches(batch), about, 0)

    def forward(
        self, vectors: Float[Tensor, "b t w"], state: LanguageState, *, need_weights: bool = False
    ) -> tuple[NetworkOutput, LanguageState]:
        """Read on from a state; positions that no later one reaches are dropped from the caches."""
        after = state.position + vectors.shape[1]
        if state.about is not None:
            vectors = vectors + state.about
        states, weights, balance, caches = self.stack(
            vectors, self._mask(after), name="decoder", own=state.caches, need_weights=need_weights
        )
        if self.reach is not None:
            caches = tuple(_last_positions(cache, self.reach - 1) for cache in caches)
        return (
            NetworkOutput(states, weights, balance),
            LanguageState((), None, caches, state.about, after),
        )

    def _mask(self, length: int) -> masks.Mask:
        if self.reach is None or length <= self.reach:
            return masks.causal()
        if self.absolute:
            raise ValueError(_too_long(self.reach, length))
        return masks.causal() & masks.window(self.reach)


class EncoderNetwork(nn.Module):
    """Any causal encoder as a network: it encodes the vectors that it has read again in each call.

    A step costs as much as the text so far; recurrent networks and transformers, which keep a state
    instead, have classes of their own. Weights named encoder.0.self and so on are called
    decoder.0.self here, as in a transformer that reads nothing ahead.
    """

    def __init__(self, encoder: nn.Module, options: LayerOptions) -> None:
        """Wrap an encoder that was built from these options."""
        super().__init__()
        self.encoder = encoder
        self.size: int = encoder.size  # type: ignore[assignment]
        self.width, self.reach = options.width, options.max_keys
        self.absolute = options.score == "location"
        # tells the device and dtype of the weights to encoders that have none
        self.register_buffer("origin", torch.zeros(options.width), persistent=False)

    def start(self, batch: int, about: Float[Tensor, "b 1 w"] | None = None) -> LanguageState:
        """The first state: nothing was read."""
        past = self.get_buffer("origin").new_zeros(batch, 0, self.width)
        return LanguageState((), past, (), about, 0)

    def forward(
        self, vectors: Float[Tensor, "b t w"], state: LanguageState, *, need_weights: bool = False
    ) -> tuple[NetworkOutput, LanguageState]:
        """Read on from a state; vectors that no later position reaches are dropped."""
        after, count = state.position + vectors.shape[1], vectors.shape[1]
        if self.absolute and after > self.reach:
            raise ValueError(_too_long(self.reach, after))
        if state.about is not None:
            vectors = vectors + state.about
        read = vectors if state.past is None else torch.cat([state.past, vectors], 1)
        lengths = torch.full((len(read),), read.shape[1], device=read.device)
        context = self.encoder(read, lengths, need_weights=need_weights)
        weights = {
            name.replace("encoder.", "decoder.", 1): rows[:, :, -count:]
            for name, rows in context.weights.items()
        }
        past = read[:, max(0, read.shape[1] - self.reach + 1) :]
        return (
            NetworkOutput(context.states[:, -count:], weights, context.balance),
            LanguageState((), past, (), state.about, after),
        )


@dataclass(frozen=True)
class MemoryOptions:
    """Sizes and choices of an external memory."""

    slots: int
    slot_width: int
    read_heads: int = 1
    write_heads: int = 1
    addressing: Literal["ntm", "dnc"] = "ntm"
    score: str | Score | None = None
    """Score of content addressing (default: cosine similarity)."""


class MemoryNetworkState(NamedTuple):
    """The state of a controller and its memory between two steps."""

    controller: State
    memory: MemoryState
    read: Float[Tensor, "b r"]


class MemoryNetwork(nn.Module):
    """A controller with an external memory: c_t = f(x_t, r_{t-1}), r_t = memory(c_t).

    Its states are [c_t; r_t]. A feed-forward controller, f = tanh(W [x_t; r_{t-1}]), has no state
    of its own: it cannot count steps, so that what it learns from short problems holds for longer
    ones.

    Graves, Wayne & Danihelka 2014, https://arxiv.org/abs/1410.5401
    """

    def __init__(self, width: int, controller: str, options: MemoryOptions) -> None:
        """Make the controller and its memory.

        Args:
            width: size of the vectors that come in, and of the controller's output.
            controller: feed_forward, elman, gru or lstm.
            options: sizes and choices of the memory.
        """
        super().__init__()
        inputs = width + options.read_heads * options.slot_width
        self.controller = (
            nn.Linear(inputs, width)
            if controller == "feed_forward"
            else Cell(inputs, width, controller)
        )
        self.memory = Memory(
            options.slots,
            options.slot_width,
            width,
            options.read_heads,
            options.write_heads,
            addressing=options.addressing,
            score=similarity if options.score is None else options.score,
        )
        self.size = width + self.memory.read_size

    def start(self, batch: int) -> MemoryNetworkState:
        """An empty memory and a controller at rest."""
        memory = self.memory.initial(batch)
        zeros = memory.memory.new_zeros(batch, self.size - self.memory.read_size)
        controller = (
            self.controller.initial(zeros) if isinstance(self.controller, Cell) else (zeros,)
        )
        read = zeros.new_zeros(batch, self.memory.read_size)
        return MemoryNetworkState(controller, memory, read)

    def forward(
        self,
        vectors: Float[Tensor, "b t w"],
        state: MemoryNetworkState,
        *,
        need_weights: bool = False,
    ) -> tuple[NetworkOutput, MemoryNetworkState]:
        """Read on from a state, one step per vector."""
        controller, memory, read = state
        states, steps = [], []
        for vector in vectors.unbind(1):
            inputs = torch.cat([vector, read], -1)
            if isinstance(self.controller, Cell):
                controller = self.controller(inputs, controller)
            else:
                controller = (self.controller(inputs).tanh(),)
            read, memory, step_weights = self.memory(controller[0], memory)
            states.append(torch.cat([controller[0], read], -1))
            steps.append(step_weights)
        weights = {}
        if need_weights:
            for part in ("read", "write"):
                weights[f"memory.{part}"] = torch.stack([step[part] for step in steps], 2)
        return (
            NetworkOutput(torch.stack(states, 1), weights),
            MemoryNetworkState(controller, memory, read),
        )


def detach_state(state: LanguageState) -> LanguageState:
    """The same state without its history: back-propagation through time ends here."""
    return LanguageState(
        tuple(part.detach() for part in state.cell),
        None if state.past is None else state.past.detach(),
        tuple(Cache(cache.key.detach(), cache.value.detach()) for cache in state.caches),
        None if state.about is None else state.about.detach(),
        state.position,
        state.recent,
        state.cache,
    )


def _too_long(reach: int, length: int) -> str:
    return (
        f"location was made for {reach} positions, but this text has {length}: shorten it, or "
        f"raise max_length"
    )


def _last_positions(cache: Cache, positions: int) -> Cache:
    first = max(0, cache.key.shape[-2] - positions)
    return Cache(cache.key[..., first:, :], cache.value[..., first:, :])
