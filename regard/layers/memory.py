"""External memory with read and write heads: attention that can also change what it looks at."""

import math
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention import scores
from regard.attention.scores import Score
from regard.errors import unknown
from regard.layers.addressing import similarity
from regard.layers.dnc import DNC, DNCState
from regard.layers.ntm import NTM, NTMState

MemoryState = NTMState | DNCState


@runtime_checkable
class Mechanism(Protocol):
    """What `NTM` and `DNC` have in common: how a memory is addressed."""

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The parts of the interface vector, by name."""

    @property
    def leanings(self) -> dict[str, Tensor]:
        """What the first bias of some parts is, by name, besides a little at random."""

    @property
    def alike(self) -> tuple[str, str]:
        """Two parts, the first of which has the first weights of the second."""

    @property
    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        """The parts of the state of one sequence, by name."""

    def interface(self, parts: dict[str, Tensor]) -> Any:
        """The interface record, from the raw parts."""

    def initial(self, batch: int, device: torch.device, dtype: torch.dtype) -> Any:
        """The state before the first step."""

    def step(self, interface: Any, state: Any, score: str | Score) -> Any:
        """The state after one step."""


class Remembered(NamedTuple):
    """One step with the memory: what was read, the state after it, and where the heads were."""

    read: Float[Tensor, "b r"]
    """The readings of all read heads, side by side."""
    state: MemoryState
    weights: dict[str, Float[Tensor, "b h k"]]
    """"read" and "write": a row of weights over the slots for each head."""


class Memory(nn.Module):
    """Slots that a controller (any network that runs in steps) writes to and reads from.

    A linear layer turns the controller's output into the interface: keys, strengths, gates, and
    what to erase and add. `addressing` says how heads find their slots:

    - "ntm": by content, then by moving from slot to slot, at most `reach` a step (see `NTM`);
    - "dnc": by content, by what is free, and by the order of writing (see `DNC`).

    Content addressing is `attend` with any score: a name, a module of `regard.attention.scores` or
    a callable. The papers take the cosine; so does the default, which spares empty slots.

    The state is an argument and a result; `initial` makes the first one. The step computes in the
    state's dtype, also under autocast, since rounding adds up over the steps.

    >>> memory = Memory(slots=16, width=4, controller_size=8, read_heads=2, addressing="dnc")
    >>> state = memory.initial(batch=3)
    >>> for controller in torch.randn(5, 3, 8):
    ...     read, state, weights = memory(controller, state)
    >>> read.shape, weights["read"].shape, weights["write"].shape
    (torch.Size([3, 8]), torch.Size([3, 2, 16]), torch.Size([3, 1, 16]))
    """

    def __init__(
        self,
        slots: int,
        width: int,
        controller_size: int,
        read_heads: int = 1,
        write_heads: int = 1,
        *,
        addressing: Literal["ntm", "dnc"] = "ntm",
        score: str | Score = similarity,
        reach: int = 1,
    ) -> None:
        super().__init__()
        sizes = {
            "slots": slots,
            "width": width,
            "controller_size": controller_size,
            "read_heads": read_heads,
            "write_heads": write_heads,
        }
        for name, size in sizes.items():
            if size < 1:
                raise ValueError(f"{name} must be at least 1, got {size}")
        if reach < 0:
            raise ValueError(f"reach must not be negative, got {reach}")
        self.mechanism = _mechanism(addressing, slots, width, read_heads, write_heads, reach)
        self.score = scores.make(score, width, width, max_keys=slots)
        parts = self.mechanism.shapes.values()
        self.interface = nn.Linear(controller_size, sum(math.prod(shape) for shape in parts))
        self._lean()
        self.read_size = read_heads * width

    @torch.no_grad()
    def _lean(self) -> None:
        """Let the fresh interface lean to where learning is quick: see `NTM.leanings`."""
        weights = _split(self.interface.weight.mT, self.mechanism.shapes)
        biases = _split(self.interface.bias[None], self.mechanism.shapes)
        sought, written = self.mechanism.alike
        for parts in (weights, biases):
            parts[sought].copy_(parts[written][:, :1].expand_as(parts[sought]))
        for name, leaning in self.mechanism.leanings.items():
            biases[name].add_(leaning)

    def initial(
        self,
        batch: int,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> MemoryState:
        """An empty memory for each of `batch` sequences; device and dtype are the layer's own."""
        weight = self.interface.weight
        where = weight.device if device is None else torch.device(device)
        state: MemoryState = self.mechanism.initial(batch, where, dtype or weight.dtype)
        return state

    def forward(self, controller: Float[Tensor, "b c"], state: MemoryState) -> Remembered:
        """Write and read once, as the controller's output says."""
        self._check(controller, state)
        vector = self.interface(controller).to(state.memory.dtype)
        with torch.autocast(vector.device.type, enabled=False):
            interface = self.mechanism.interface(_split(vector, self.mechanism.shapes))
            state = self.mechanism.step(interface, state, self.score)
            read = (state.read @ state.memory).flatten(1)
        return Remembered(read, state, {"read": state.read, "write": state.write})

    def _check(self, controller: Tensor, state: MemoryState) -> None:
        size = self.interface.in_features
        if controller.dim() != 2 or controller.shape[1] != size:
            raise ValueError(
                f"controller must be [batch, {size}], got shape {list(controller.shape)}"
            )
        for name, one in self.mechanism.state_shapes.items():
            shape = (controller.shape[0], *one)
            got = getattr(state, name, None)
            if got is None or got.shape != shape:
                raise ValueError(
                    f"state.{name} must have shape {list(shape)}, got "
                    f"{None if got is None else list(got.shape)}: take the state from initial "
                    "or from the step before"
                )


def _mechanism(
    addressing: str, slots: int, width: int, read_heads: int, write_heads: int, reach: int
) -> Mechanism:
    if addressing == "ntm":
        return NTM(slots, width, read_heads, write_heads, reach)
    if addressing == "dnc":
        if write_heads != 1:
            raise ValueError(f"the memory of a DNC has one write head, got {write_heads}")
        return DNC(slots, width, read_heads)
    raise ValueError(unknown("addressing", addressing, ["ntm", "dnc"]))


def _split(vector: Float[Tensor, "b n"], shapes: dict[str, tuple[int, ...]]) -> dict[str, Tensor]:
    """The parts of the interface vector, each in its shape."""
    parts = vector.split([math.prod(shape) for shape in shapes.values()], dim=-1)
    named = zip(shapes.items(), parts, strict=True)
    return {name: part.unflatten(-1, shape) for (name, shape), part in named}
