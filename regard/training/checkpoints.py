"""States of a run on disk: tensors and plain numbers in one file, whole or not at all."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from regard.errors import RegardError
from regard.training.folder import write_whole

FORMAT = "regard.state/1"
LATEST, PREVIOUS = "latest.safetensors", "previous.safetensors"


@dataclass(frozen=True)
class Position:
    """How far a run has come."""

    epoch: int = 0
    batch: int = 0
    """Batches of this epoch that are done."""
    step: int = 0
    seconds: float = 0.0
    best: float | None = None
    since_best: int = 0
    halvings: int = 0
    stale: int = 0
    """Looks since the best or the last halving."""
    kept: dict[str, float] = field(default_factory=dict)
    """Checkpoints kept for averaging, with their scores."""
    done: bool = False


def save_state(
    folder: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    position: Position,
    carried: list[Tensor],
) -> None:
    """Write the state; the one before stays beside it."""
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    for number, slots in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{name}": slot for name, slot in slots.items()}
    tensors |= {f"carried.{i}": tensor for i, tensor in enumerate(carried)}
    tensors["random"] = torch.get_rng_state()
    numbers = json.dumps({"format": FORMAT, "position": asdict(position)})
    latest, previous = folder / LATEST, folder / PREVIOUS
    new = folder / "new.safetensors"
    write_tensors(new, tensors, {"regard": numbers})
    if latest.exists():
        os.replace(latest, previous)
    os.replace(new, latest)


def load_state(
    folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[Position, list[Tensor], str] | None:
    """Bring model and optimiser to the last good state; None where there is none.

    Returns how far the run had come, what it carried over, and a note if the newest state could
    not be read.
    """
    note = ""
    for path in (folder / LATEST, folder / PREVIOUS):
        if not path.exists():
            continue
        try:
            tensors, numbers = read_tensors(path)
            if numbers.get("format") != FORMAT:
                raise RegardError(f"{path}: not a state of this version of Regard")
            _restore(tensors, model, optimizer, path)
        except RegardError as error:
            if path.name == PREVIOUS or not (folder / PREVIOUS).exists():
                raise
            note = f"{error}; going on from the state before it"
            continue
        position = Position(**numbers["position"])
        carried = [tensors[f"carried.{i}"] for i in range(_count(tensors, "carried."))]
        torch.set_rng_state(tensors["random"])
        return position, carried, note
    return None


def _restore(
    tensors: Mapping[str, Tensor], model: nn.Module, optimizer: torch.optim.Optimizer, path: Path
) -> None:
    weights = {n.removeprefix("model."): t for n, t in tensors.items() if n.startswith("model.")}
    load_weights(model, weights, path)
    slots: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith("optimizer."):
            _, number, slot = name.split(".", 2)
            slots.setdefault(int(number), {})[slot] = tensor.clone()
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": slots, "param_groups": groups})


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], path: Path) -> None:
    """Load weights that fit the model, or say which do not."""
    own = model.state_dict()
    wrong = sorted(own.keys() ^ weights.keys()) or [
        name for name in own if own[name].shape != weights[name].shape
    ]
    if wrong:
        raise RegardError(f"{path}: weights of another model ({wrong[0]} does not fit)")
    model.load_state_dict(dict(weights))


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str]) -> None:
    """Write tensors to a safetensors file, whole or not at all."""
    plain = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    write_whole(path, lambda part: safetensors.torch.save_file(plain, part, metadata))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors of a file, and the plain numbers beside them."""
    try:
        with safetensors.safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            numbers = json.loads((file.metadata() or {}).get("regard", "{}"))
    except (OSError, ValueError, safetensors.SafetensorError) as error:
        raise RegardError(f"{path}: cannot be read, it may be cut off ({error})") from error
    return tensors, numbers


def _count(tensors: Mapping[str, Tensor], prefix: str) -> int:
    return sum(name.startswith(prefix) for name in tensors)
