"""Machines that learn an algorithm: symbols in, one answer a step, with or without a memory."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention import masks
from regard.attention.scores import Score
from regard.errors import unknown
from regard.layers import Cell, Encoder, Memory
from regard.models.embedding import Embedding
from regard.models.output import Output, Weights
from regard.models.stack import Stack

MODELS = ("memory", "recurrent", "transformer")
CONTROLLERS = ("feed_forward", "elman", "gru", "lstm")


@dataclass(frozen=True)
class MachineConfig:
    """How a machine is built."""

    model: str = "memory"
    """memory, recurrent or transformer."""
    addressing: str = "ntm"
    """How heads find their slots: ntm (by content and by moving) or dnc (also by usage)."""
    controller: str = "feed_forward"
    """What works the memory: feed_forward, elman, gru or lstm."""
    slots: int = 48
    """Places of the memory."""
    slot_width: int = 20
    """Size of what a place holds."""
    read_heads: int = 2
    """Heads that read the memory; every second one begins as one that searches by content."""
    write_heads: int = 1
    """Heads that write to it."""
    attention: str | None = None
    """The score by which heads search, or of a transformer; each has its own default."""
    cell: str = "lstm"
    """elman, gru or lstm, in the recurrent model."""
    width: int = 64
    """Size of symbols' vectors and of states."""
    layers: int | None = None
    """Layers; 1 where recurrent and 3 in a transformer unless said."""
    heads: int = 4
    """Heads of a transformer."""
    dropout: float = 0.0
    """Share of features dropped in training."""
    max_length: int = 512
    """The longest problem with its answer, in symbols."""


class Machine(nn.Module):
    """Reads one symbol a step and says one: of a problem first, then of blanks while it answers.

    What it says at a step depends on the symbols up to there alone. Nothing of its answer comes
    back as input: it has to know by itself how far it came.

    Weights are called memory.read and memory.write, [b, h, t, slots]: where each head was at each
    step; decoder.0.self and so on in a transformer; a recurrent machine has none.
    """

    def __init__(self, config: MachineConfig, symbols: int, *, score: Score | None = None) -> None:
        """Build it.

        Args:
            config: how it is built.
            symbols: how many different symbols there are, padding and blank included.
            score: a callable where the config can only name one.
        """
        super().__init__()
        if config.model not in MODELS:
            raise ValueError(unknown("model", config.model, MODELS))
        self.config = config
        transformer = config.model == "transformer"
        self.embedding = Embedding(
            symbols,
            config.width,
            positions="sinusoids" if transformer else "none",
            dropout=config.dropout,
        )
        self.body: WithMemory | Recurrent | Transformer
        if config.model == "memory":
            self.body = WithMemory(config, score)
        else:
            self.body = (Transformer if transformer else Recurrent)(config, score)
        self.answer = nn.Linear(self.body.size, symbols)

    def forward(self, symbols: Int[Tensor, "b t"], *, need_weights: bool = False) -> Output:
        """Logits of the symbol to say at each step."""
        states, weights = self.body(self.embedding(symbols), need_weights=need_weights)
        return Output(self.answer(states), weights)


class Worked(NamedTuple):
    """The state of each step, and where it looked."""

    states: Float[Tensor, "b t s"]
    weights: Weights


class WithMemory(nn.Module):
    """A controller and a memory: c_t = f(x_t, r_{t-1}), r_t = memory(c_t), and [c_t; r_t] answers.

    A feed-forward controller, f = tanh(W [x_t; r_{t-1}]), remembers nothing by itself, so that what
    it learns on short problems cannot count steps and holds on longer ones.

    Graves, Wayne & Danihelka 2014, https://arxiv.org/abs/1410.5401
    """

    def __init__(self, config: MachineConfig, score: Score | None) -> None:
        super().__init__()
        if config.controller not in CONTROLLERS:
            raise ValueError(unknown("controller", config.controller, CONTROLLERS))
        width, heads = config.width, config.read_heads
        inputs = width + heads * config.slot_width
        plain = config.controller == "feed_forward"
        self.controller = (
            nn.Linear(inputs, width) if plain else Cell(inputs, width, config.controller)
        )
        chosen = score or config.attention
        self.memory = Memory(
            config.slots,
            config.slot_width,
            width,
            heads,
            config.write_heads,
            addressing=config.addressing,  # type: ignore[arg-type]
            **({} if chosen is None else {"score": chosen}),  # type: ignore[arg-type]
        )
        self.size = width + self.memory.read_size

    def forward(self, vectors: Float[Tensor, "b t w"], *, need_weights: bool = False) -> Worked:
        """Work through all steps, from an empty memory."""
        batch, _, width = vectors.shape
        remembered = self.memory.initial(batch)
        read = vectors.new_zeros(batch, self.memory.read_size)
        zeros = vectors.new_zeros(batch, width)
        state = self.controller.initial(zeros) if isinstance(self.controller, Cell) else (zeros,)
        states, looks = [], []
        for vector in vectors.unbind(1):
            together = torch.cat([vector, read], -1)
            if isinstance(self.controller, Cell):
                state = self.controller(together, state)
            else:
                state = (self.controller(together).tanh(),)
            read, remembered, look = self.memory(state[0], remembered)
            states.append(torch.cat([state[0], read], -1))
            looks.append(look)
        weights = {}
        if need_weights:
            for part in ("read", "write"):
                weights[f"memory.{part}"] = torch.stack([look[part] for look in looks], 2)
        return Worked(torch.stack(states, 1), weights)


class Recurrent(nn.Module):
    """A recurrent network alone: all that it knows of the problem is in its state."""

    def __init__(self, config: MachineConfig, score: Score | None) -> None:
        super().__init__()
        self.size = config.width
        self.network = Encoder(
            config.width,
            config.width,
            cell=config.cell,
            layers=config.layers or 1,
            bidirectional=False,
            dropout=config.dropout,
        )

    def forward(self, vectors: Float[Tensor, "b t w"], *, need_weights: bool = False) -> Worked:
        """Read on; there is no attention here, so there are no weights."""
        return Worked(self.network(vectors).states, {})


class Transformer(nn.Module):
    """Transformer blocks that look back at every earlier step: the past itself is the memory."""

    def __init__(self, config: MachineConfig, score: Score | None) -> None:
        super().__init__()
        self.size = config.width
        self.stack = Stack(
            config.width,
            config.layers or 3,
            heads=config.heads,
            dropout=config.dropout,
            score=score or config.attention or "scaled_dot",
            max_keys=config.max_length,
        )

    def forward(self, vectors: Float[Tensor, "b t w"], *, need_weights: bool = False) -> Worked:
        """Look back from every step."""
        passed = self.stack(vectors, masks.causal(), name="decoder", need_weights=need_weights)
        return Worked(passed.states, passed.weights)
