"""External memory with read and write heads: attention that can also change its memory."""

import math
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention import scores
from regard.attention.scores import Score
from regard.errors import unknown
from regard.layers.memory.addressing import similarity
from regard.layers.memory.dnc import DNC, DNCState
from regard.layers.memory.ntm import NTM, NTMState

MemoryState = NTMState | DNCState


@runtime_checkable
class Mechanism(Protocol):
    """What `NTM` and `DNC` have in common: how a memory is addressed."""

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The parts of the interface vector, by name."""

    @property
    def initial_biases(self) -> dict[str, Tensor]:
        """Initial biases of some parts, by name, added to the usual random ones."""

    @property
    def tied_at_start(self) -> tuple[str, str]:
        """Two parts, the first of which starts with the weights of the second."""

    @property
    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        """The parts of the state of one sequence, by name."""

    def interface(self, parts: dict[str, Tensor]) -> Any:
        """The interface record, from the raw parts."""

    def initial(self, batch: int, device: torch.device, dtype: torch.dtype) -> Any:
        """The state before the first step."""

    def step(self, interface: Any, state: Any, score: str | Score) -> Any:
        """The state after one step."""


class MemoryOutput(NamedTuple):
    """One step with the memory: what was read, the state after it, and the weights of the heads."""

    read: Float[Tensor, "b r"]
    """What all read heads read, concatenated."""
    state: MemoryState
    weights: dict[str, Float[Tensor, "b h k"]]
    """"read" and "write": one row of weights over the slots per head."""


class Memory(nn.Module):
    """Slots that a controller (any network that runs in steps) writes to and reads from.

    A linear layer turns the controller's output into the interface: keys, strengths, gates, and
    what to erase and add. `addressing` says how heads find their slots:

    - "ntm": by content, then by moving from slot to slot, at most `reach` per step (see `NTM`);
    - "dnc": by content, by what is free, and by the order of writing (see `DNC`).

    Content addressing is `attend` with any score: a name, a module of `regard.attention.scores` or
    a callable. The papers use the cosine; the default is a cosine that ignores empty slots.

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
        self.score = scores.make_score(score, width, width, max_keys=slots)
        parts = self.mechanism.shapes.values()
        self.interface = nn.Linear(controller_size, sum(math.prod(shape) for shape in parts))
        self._initialize()
        self.read_size = read_heads * width

    @torch.no_grad()
    def _initialize(self) -> None:
        """Start the interface where learning is fast: see `NTM.initial_biases`."""
        weights = _split(self.interface.weight.mT, self.mechanism.shapes)
        biases = _split(self.interface.bias[None], self.mechanism.shapes)
        searched, written = self.mechanism.tied_at_start
        for parts in (weights, biases):
            parts[searched].copy_(parts[written][:, :1].expand_as(parts[searched]))
        for name, bias in self.mechanism.initial_biases.items():
            biases[name].add_(bias)

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

    def forward(self, controller: Float[Tensor, "b c"], state: MemoryState) -> MemoryOutput:
        """Write and read once, as the controller's output says."""
        self._check(controller, state)
        vector = self.interface(controller).to(state.memory.dtype)
        with torch.autocast(vector.device.type, enabled=False):
            interface = self.mechanism.interface(_split(vector, self.mechanism.shapes))
            state = self.mechanism.step(interface, state, self.score)
            read = (state.read @ state.memory).flatten(1)
        return MemoryOutput(read, state, {"read": state.read, "write": state.write})

    def _check(self, controller: Tensor, state: MemoryState) -> None:
        size = self.interface.in_features
        if controller.dim() != 2 or controller.shape[1] != size:
            raise ValueError(
                f"controller must be [batch, {size}], got shape {list(controller.shape)}"
            )
        for name, own_shape in self.mechanism.state_shapes.items():
            shape = (controller.shape[0], *own_shape)
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
