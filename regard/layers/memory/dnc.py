"""The memory of the differentiable neural computer, with usage and the order of writing."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from regard.attention.scores import Score
from regard.layers.memory.addressing import (
    allocation,
    content_weights,
    erase_and_add,
    follow_links,
    retention,
    update_links,
    update_precedence,
    update_usage,
)


class DNCState(NamedTuple):
    """What passes from step to step."""

    memory: Float[Tensor, "b k w"]
    read: Float[Tensor, "b h k"]
    write: Float[Tensor, "b 1 k"]
    usage: Float[Tensor, "b k"]
    """How much each slot is in use."""
    precedence: Float[Tensor, "b k"]
    """How much each slot was the last one written to."""
    links: Float[Tensor, "b k k"]
    """[i, j]: how much slot i was written right after slot j."""


class DNCInterface(NamedTuple):
    """What a controller tells the memory at one step."""

    read_key: Float[Tensor, "b h w"]
    read_strength: Float[Tensor, "b h"]
    read_modes: Float[Tensor, "b h 3"]
    """Shares of reading backward in time, by content, and forward in time."""
    write_key: Float[Tensor, "b 1 w"]
    write_strength: Float[Tensor, "b 1"]
    erase: Float[Tensor, "b 1 w"]
    add: Float[Tensor, "b 1 w"]
    free_gates: Float[Tensor, "b h"]
    """1 = the slots that were read last may be reused."""
    allocation_gate: Float[Tensor, "b 1"]
    """1 = write to a free slot, 0 = write by content."""
    write_gate: Float[Tensor, "b 1"]
    """0 = do not write."""


@dataclass(frozen=True)
class DNC:
    """Content addressing, allocation by usage, and links in the order of writing.

    There is one write head, as in the paper: usage and links are defined for one write per step.

    Graves et al. 2016, https://doi.org/10.1038/nature20101.
    """

    slots: int
    width: int
    read_heads: int

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The parts of the interface vector."""
        return {
            "read_key": (self.read_heads, self.width),
            "read_strength": (self.read_heads,),
            "read_modes": (self.read_heads, 3),
            "write_key": (1, self.width),
            "write_strength": (1,),
            "erase": (1, self.width),
            "add": (1, self.width),
            "free_gates": (self.read_heads,),
            "allocation_gate": (1,),
            "write_gate": (1,),
        }

    @property
    def initial_biases(self) -> dict[str, Tensor]:
        """Initial biases of raw parts of the interface: none."""
        return {}

    @property
    def tied_at_start(self) -> tuple[str, str]:
        """Parts with the same initial weights: a head searches for what would be written."""
        return "read_key", "add"

    @property
    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        """The parts of the state of one sequence."""
        return {
            "memory": (self.slots, self.width),
            "read": (self.read_heads, self.slots),
            "write": (1, self.slots),
            "usage": (self.slots,),
            "precedence": (self.slots,),
            "links": (self.slots, self.slots),
        }

    def interface(self, parts: dict[str, Tensor]) -> DNCInterface:
        """Raw numbers, each part mapped to its range."""
        return DNCInterface(
            read_key=parts["read_key"],
            read_strength=1 + F.softplus(parts["read_strength"]),
            read_modes=parts["read_modes"].softmax(-1),
            write_key=parts["write_key"],
            write_strength=1 + F.softplus(parts["write_strength"]),
            erase=parts["erase"].sigmoid(),
            add=parts["add"],
            free_gates=parts["free_gates"].sigmoid(),
            allocation_gate=parts["allocation_gate"].sigmoid(),
            write_gate=parts["write_gate"].sigmoid(),
        )

    def initial(self, batch: int, device: torch.device, dtype: torch.dtype) -> DNCState:
        """An empty memory: nothing written, nothing read, nothing in use."""
        shapes = self.state_shapes.values()
        return DNCState(*(torch.zeros(batch, *s, device=device, dtype=dtype) for s in shapes))

    def step(self, interface: DNCInterface, state: DNCState, score: str | Score) -> DNCState:
        """Free what was read, write, link the write to the one before, then address what to read.

        The order matters: usage needs the reads and writes of the step before; links need the
        precedence from before this write, so it is updated after them; reading follows links and
        sees a memory that already holds this write.
        """
        retained = retention(interface.free_gates, state.read)
        usage = update_usage(state.usage, state.write[:, 0], retained)
        write = _write_weights(interface, state.memory, usage, score)
        memory = erase_and_add(state.memory, write, interface.erase, interface.add)
        links = update_links(state.links, state.precedence, write[:, 0])
        precedence = update_precedence(state.precedence, write[:, 0])
        read = _read_weights(interface, memory, links, state.read, score)
        return DNCState(memory, read, write, usage, precedence, links)


def _write_weights(
    interface: DNCInterface, memory: Tensor, usage: Tensor, score: str | Score
) -> Float[Tensor, "b 1 k"]:
    """g_write · (g_allocation · allocation + (1 − g_allocation) · content)."""
    content = content_weights(interface.write_key, memory, interface.write_strength, score)
    free = allocation(usage)[:, None]
    place = torch.lerp(content, free, interface.allocation_gate[..., None])
    return interface.write_gate[..., None] * place


def _read_weights(
    interface: DNCInterface, memory: Tensor, links: Tensor, previous: Tensor, score: str | Score
) -> Float[Tensor, "b h k"]:
    """π₁ · backward + π₂ · content + π₃ · forward."""
    content = content_weights(interface.read_key, memory, interface.read_strength, score)
    forward, backward = follow_links(links, previous)
    ways = torch.stack([backward, content, forward], -1)
    return (ways * interface.read_modes[..., None, :]).sum(-1)
