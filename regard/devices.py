"""The device that computes: its option, what there is, and moving batches to it.

A device is chosen when a run is trained or loaded, and by nothing else: every tensor that a model
makes is on the device of its inputs, and a batch is moved to the device of the model that reads it.
"""

import argparse
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from regard.errors import OptionError

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

Batch = TypeVar("Batch")

AUTO = "auto"
"""The accelerator of this machine if there is one, else the CPU."""
FUSED_OPTIMIZERS = ("cpu", "cuda", "mps", "xpu")
"""Types of devices for which torch has optimizers that update all weights in one call."""
WITHOUT_FLOAT64 = ("mps",)
"""Types of devices that have no numbers of 64 bits."""


def add_device(parser: Any) -> None:
    """Add `--device` to a command that computes."""
    parser.add_argument(
        "--device",
        type=_device_name,
        default=AUTO,
        metavar="DEVICE",
        help="where to compute: auto, cpu, cuda, cuda:1, mps or xpu (default: auto, the "
        "accelerator if there is one, else the CPU)",
    )


def _device_name(text: str) -> str:
    """The name of a device, for argparse; whether there is one is checked when it is used."""
    if not re.fullmatch(r"[a-z]+(:\d{1,4})?", text):
        raise argparse.ArgumentTypeError(
            f"expected auto, cpu, or a device such as cuda or cuda:1, got {text[:30]!r}"
        )
    return text


def available_devices() -> "list[torch.device]":
    """The devices of this machine, the CPU first."""
    import torch

    devices = [torch.device("cpu")]
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    if accelerator is not None:
        count = torch.accelerator.device_count()
        devices += [torch.device(accelerator.type, i) for i in range(count)]
    return devices


def resolve_device(name: "str | torch.device" = AUTO, local_rank: int = 0) -> "torch.device":
    """The device of this name, which must be there.

    Args:
        name: auto, a type (cuda) or one device of it (cuda:1).
        local_rank: which of the accelerators is meant where the name does not say, in distributed
            training.
    """
    name = str(name)
    devices = available_devices()
    chosen = [device for device in devices if name in (str(device), device.type)]
    if name == AUTO:
        chosen = devices[1:] or devices
    if not chosen:
        known = ", ".join([AUTO, *map(str, devices)])
        raise OptionError("device", f"there is no {name} on this machine: expected one of {known}")
    if local_rank and chosen[0].type != "cpu":
        if len(chosen) <= local_rank:
            raise OptionError(
                "device",
                f"{local_rank + 1} or more processes on this machine, but {name} is "
                f"{len(chosen)} device{'s' * (len(chosen) > 1)}: start one process per device",
            )
        return chosen[local_rank]
    return chosen[0]


def describe_device(device: "torch.device") -> str:
    """The device as it is shown, with its model where torch knows it."""
    import torch

    if device.type == "cpu":
        return "cpu"
    get_name = getattr(torch.get_device_module(device), "get_device_name", None)
    return f"{device} ({get_name(device)})" if get_name is not None else str(device)


def prefers_bf16(device: "torch.device") -> bool:
    """Whether matrices are multiplied in bfloat16 by default: on CUDA with instructions for it."""
    import torch

    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


def widest_float(device: "torch.device") -> "torch.dtype":
    """float64 where the device has it, else float32."""
    import torch

    return torch.float32 if device.type in WITHOUT_FLOAT64 else torch.float64


def device_of(model: "nn.Module") -> "torch.device":
    """The device of a model: that of its weights."""
    import torch

    first = next(chain(model.parameters(), model.buffers()), None)
    return torch.device("cpu") if first is None else first.device


def to_device(batch: Batch, device: "torch.device | nn.Module") -> Batch:
    """The batch with all of its tensors on a device, or on that of a model.

    CUDA copies from pinned memory while it computes.
    """
    import torch

    where = device if isinstance(device, torch.device) else device_of(device)
    moved: Batch = _move(batch, where)
    return moved


def _move(part: Any, device: "torch.device") -> Any:
    import torch

    if isinstance(part, torch.Tensor):
        if device.type == "cuda" and part.device.type == "cpu":
            return part.pin_memory().to(device, non_blocking=True)
        return part.to(device)
    if isinstance(part, tuple) and hasattr(part, "_fields"):
        return type(part)(*(_move(inner, device) for inner in part))
    if isinstance(part, tuple | list):
        return type(part)(_move(inner, device) for inner in part)
    return part


def random_state(device: "torch.device") -> "Tensor | None":
    """The state of the random numbers of an accelerator; None for the CPU."""
    import torch

    if device.type == "cpu":
        return None
    module: Any = torch.get_device_module(device)
    state: Tensor = module.get_rng_state() if device.type == "mps" else module.get_rng_state(device)
    return state.cpu()


def set_random_state(device: "torch.device", state: "Tensor") -> None:
    """Continue the random numbers of an accelerator from a state of `random_state`."""
    import torch

    module: Any = torch.get_device_module(device)
    if device.type == "mps":
        module.set_rng_state(state)
    else:
        module.set_rng_state(state, device)


@contextmanager
def fork_random(device: "torch.device") -> Iterator[None]:
    """Restore the random numbers of the CPU and of the device afterwards."""
    import torch

    state = random_state(device)
    with torch.random.fork_rng(devices=[]):
        try:
            yield
        finally:
            if state is not None:
                set_random_state(device, state)
