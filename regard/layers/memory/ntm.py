"""The memory of the neural Turing machine: heads that address by content or move by location."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from regard.attention.scores import Score
from regard.layers.memory.addressing import (
    content_weights,
    erase_and_add,
    interpolate,
    sharpen,
    shift,
)


class NTMState(NamedTuple):
    """What passes from step to step: the slots, and where the heads last read and wrote."""

    memory: Float[Tensor, "b k w"]
    read: Float[Tensor, "b h k"]
    write: Float[Tensor, "b h k"]


class Heads(NamedTuple):
    """How each head finds its slots."""

    key: Float[Tensor, "b h w"]
    """What to search for."""
    strength: Float[Tensor, "b h"]
    """β ≥ 0: how exactly."""
    gate: Float[Tensor, "b h"]
    """g: 1 = by content, 0 = from where the head was."""
    distances: Float[Tensor, "b h s"]
    """A distribution over the moves −r … +r."""
    sharpness: Float[Tensor, "b h"]
    """γ ≥ 1: how much the result is sharpened."""


class NTMInterface(NamedTuple):
    """What a controller tells the memory at one step."""

    read: Heads
    write: Heads
    erase: Float[Tensor, "b h w"]
    add: Float[Tensor, "b h w"]


@dataclass(frozen=True)
class NTM:
    """Content and location addressing with erase and add.

    The heads write first, then read the result.

    Graves, Wayne & Danihelka 2014, https://arxiv.org/abs/1410.5401.
    """

    slots: int
    width: int
    read_heads: int
    write_heads: int
    reach: int = 1
    """How far a head may move in one step, in either direction."""

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The parts of the interface vector."""
        moves = 2 * self.reach + 1
        heads = self.read_heads + self.write_heads
        return {
            "key": (heads, self.width),
            "strength": (heads,),
            "gate": (heads,),
            "distances": (heads, moves),
            "sharpness": (heads,),
            "erase": (self.write_heads, self.width),
            "add": (self.write_heads, self.width),
        }

    @property
    def initial_biases(self) -> dict[str, Tensor]:
        """Initial biases of raw parts of the interface.

        Write heads move to the next slot. Read heads go by location, every second one by sharp
        content. With biases of zero, half of each head's weight would come from a search in a
        memory that is still empty, and what is written would be spread over all slots, again and
        again over the same ones.
        """
        distances = torch.zeros(self.shapes["distances"])
        distances[self.read_heads :, self.reach + 1 :] = 2
        gate = torch.full(self.shapes["gate"], -2.0)
        gate[1 : self.read_heads : 2] = 2
        return {"gate": gate, "strength": torch.tensor(4.0), "distances": distances}

    @property
    def tied_at_start(self) -> tuple[str, str]:
        """Parts with the same initial weights: a head searches for what would be written."""
        return "key", "add"

    @property
    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        """The parts of the state of one sequence."""
        return {
            "memory": (self.slots, self.width),
            "read": (self.read_heads, self.slots),
            "write": (self.write_heads, self.slots),
        }

    def interface(self, parts: dict[str, Tensor]) -> NTMInterface:
        """Raw numbers, each part mapped to its range."""
        heads = Heads(
            key=parts["key"],
            strength=F.softplus(parts["strength"]),
            gate=parts["gate"].sigmoid(),
            distances=parts["distances"].softmax(-1),
            sharpness=1 + F.softplus(parts["sharpness"]),
        )
        sides = [part.split([self.read_heads, self.write_heads], 1) for part in heads]
        return NTMInterface(
            read=Heads(*(read for read, _ in sides)),
            write=Heads(*(write for _, write in sides)),
            erase=parts["erase"].sigmoid(),
            add=parts["add"],
        )

    def initial(self, batch: int, device: torch.device, dtype: torch.dtype) -> NTMState:
        """An empty memory, with all heads at the first slot."""
        shapes = self.state_shapes.values()
        state = NTMState(*(torch.zeros(batch, *s, device=device, dtype=dtype) for s in shapes))
        state.read[..., 0] = state.write[..., 0] = 1
        return state

    def step(self, interface: NTMInterface, state: NTMState, score: str | Score) -> NTMState:
        """Write, then address what to read."""
        write = _address(interface.write, state.memory, state.write, score)
        memory = erase_and_add(state.memory, write, interface.erase, interface.add)
        return NTMState(memory, _address(interface.read, memory, state.read, score), write)


def _address(heads: Heads, memory: Tensor, previous: Tensor, score: str | Score) -> Tensor:
    content = content_weights(heads.key, memory, heads.strength, score)
    gated = interpolate(content, previous, heads.gate)
    return sharpen(shift(gated, heads.distances), heads.sharpness)
