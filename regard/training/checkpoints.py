"""States of a run on disk: tensors and plain numbers in one file, whole or not at all."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from regard.errors import RegardError
from regard.training.folder import write_whole

FORMAT = "regard.state/1"
NEW, LATEST, PREVIOUS = "new.safetensors", "latest.safetensors", "previous.safetensors"


@dataclass(frozen=True)
class Position:
    """How far a run has come."""

    epoch: int = 0
    batch: int = 0
    """Batches of this epoch that are done."""
    step: int = 0
    seconds: float = 0.0
    best: float | None = None
    mark: float | None = None
    """What patience and halving measure against: the best of the looks that were due, without
    those that the end of a budget brought about."""
    since_best: int = 0
    """Looks since the mark."""
    halvings: int = 0
    stale: int = 0
    """Looks since the mark or the last halving."""
    loss_sum: float = 0.0
    """The training loss summed since the last look."""
    loss_count: int = 0
    """Over how many predictions."""
    kept: dict[str, float] = field(default_factory=dict)
    """Checkpoints kept for averaging, with their scores."""
    done: bool = False
    """Whether the budget is used up, or nothing improved."""
    budget: dict[str, int | float | None] = field(default_factory=dict)
    """With which budget it is done."""
    finished: bool = False
    """Whether what comes after the last update is done too."""


def save_state(
    folder: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    position: Position,
    carried: list[Tensor],
    random: list[Tensor],
) -> None:
    """Write the state; the one before stays beside it.

    `random` holds the state of the random numbers of each process.
    """
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    for number, slots in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{name}": slot for name, slot in slots.items()}
    tensors |= {f"carried.{i}": tensor.clone() for i, tensor in enumerate(carried)}
    tensors |= {random_of(rank): state for rank, state in enumerate(random)}
    numbers = json.dumps({"format": FORMAT, "position": asdict(position)})
    write_tensors(folder / NEW, tensors, {"regard": numbers})
    _put_in_place(folder)


def random_of(rank: int) -> str:
    """The name of a process's random numbers."""
    return "random" if rank == 0 else f"random.{rank}"


def mixed(*numbers: int) -> int:
    """A seed made of several numbers."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])


def _put_in_place(folder: Path) -> None:
    """Make the new state the latest; whenever this is broken off, the two newest remain."""
    latest = folder / LATEST
    try:
        if latest.exists():
            os.replace(latest, folder / PREVIOUS)
        os.replace(folder / NEW, latest)
    except OSError as error:
        raise RegardError(f"{latest}: cannot be written ({error.strerror})") from error


def load_state(
    folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, rank: int = 0
) -> tuple[Position, list[Tensor], str] | None:
    """Bring model, optimiser and random numbers to the last good state; None where there is none.

    Returns how far the run had come, what it carried over, and a note if the newest state could
    not be read. A process that was not there when the state was saved draws random numbers of its
    own, which depend on its seed and on how far the run had come.
    """
    found = [folder / name for name in (NEW, LATEST, PREVIOUS) if (folder / name).exists()]
    note = ""
    for path in found:
        try:
            tensors, numbers = read_tensors(path)
            position = _position(numbers, path)
            _restore(tensors, model, optimizer, path)
            if random_of(rank) in tensors:
                torch.set_rng_state(tensors[random_of(rank)])
            else:
                torch.manual_seed(mixed(torch.initial_seed(), position.step))
        except RegardError as error:
            if path == found[-1]:
                raise RegardError(
                    f"{error}; no older state is left: remove {folder} to begin anew"
                ) from error
            note = f"{error}; going on from the state before it"
            continue
        if path.name == NEW and rank == 0:
            _put_in_place(folder)
        carried = [tensors[f"carried.{i}"].clone() for i in range(_count(tensors, "carried."))]
        return position, carried, note
    return None


def _position(numbers: dict[str, Any], path: Path) -> Position:
    if numbers.get("format") != FORMAT:
        raise RegardError(f"{path}: not a state of this version of Regard")
    try:
        return Position(**numbers["position"])
    except (KeyError, TypeError) as error:
        raise RegardError(f"{path}: does not say how far the run had come") from error


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
    shapes = [parameter.shape for group in optimizer.param_groups for parameter in group["params"]]
    for index, theirs in slots.items():
        if index >= len(shapes) or any(
            t.dim() and t.shape != shapes[index] for t in theirs.values()
        ):
            raise RegardError(f"{path}: the optimiser of another model (parameter {index})")
    if "random" not in tensors:
        raise RegardError(f"{path}: weights alone, not a state to go on from")
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
    try:
        write_whole(path, lambda part: _save(part, plain, metadata))
    except safetensors.SafetensorError as error:  # its own, where the disk is full
        raise RegardError(f"{path}: cannot be written ({error})") from error


def _save(part: Path, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    part.touch()
    mode = part.stat().st_mode  # safetensors would let nobody else read the file
    safetensors.torch.save_file(tensors, part, metadata)
    part.chmod(mode)


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors of a file, and the plain numbers beside them."""
    try:
        with safetensors.safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            numbers = json.loads((file.metadata() or {}).get("regard", "{}"))
    except (OSError, ValueError, safetensors.SafetensorError) as error:
        raise RegardError(f"{path}: cannot be read, it may be cut off ({error})") from error
    return tensors, numbers if isinstance(numbers, dict) else {}


def _count(tensors: Mapping[str, Tensor], prefix: str) -> int:
    return sum(name.startswith(prefix) for name in tensors)
