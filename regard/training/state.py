"""Saved states of a run: tensors and plain numbers, each state in one file.

A state is first written in full as `new`, then `latest` becomes `previous`, then `new` becomes
`latest`. Each step is one atomic rename. So whenever the process is killed, the files that exist
are complete, and from newest to oldest their order is new, latest, previous: resuming takes the
first one that can be read. An older state leads to the same result as a newer one, because the run
repeats the updates after it bit for bit; it only takes longer.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from regard.devices import device_of, set_random_state
from regard.errors import RegardError
from regard.training.run_identity import check_identity
from regard.training.tensor_files import load_weights, read_tensors, write_tensors

FORMAT = "regard.state/3"
NEW, LATEST, PREVIOUS = "new.safetensors", "latest.safetensors", "previous.safetensors"


@dataclass(frozen=True)
class Position:
    """How far a run is.

    Merits are pairs that compare in order: the main metric, with the sign that makes higher better,
    and the negative validation loss, which decides between equal metrics. On small validation data
    the metric stays the same over many updates that still lower the loss.
    """

    epoch: int = 0
    """Number of epochs before this one."""
    batch: int = 0
    """Number of batches of this epoch that were trained on; after the last one the position stays
    there until the next epoch starts."""
    step: int = 0
    """Number of updates, each of one or several batches."""
    seconds: float = 0.0
    """Training time."""
    best: list[float] | None = None
    """Merit of the best weights, which model.safetensors holds."""
    mark: list[float] | None = None
    """Best merit of the validations that were due, which patience and halving compare
    with; a validation that only the end of a budget brought about does not count."""
    lowest_loss: float | None = None
    """Lowest validation loss of those that were due."""
    since_best: int = 0
    """Number of due validations since the mark was set or the validation loss was lower than ever:
    early in training the loss falls while a metric such as BLEU still goes up and down near 0."""
    halvings: int = 0
    """Number of times that the learning rate was halved."""
    stale: int = 0
    """Number of due validations since the mark was set or the learning rate halved."""
    loss_sum: float = 0.0
    """Training loss since the last validation, summed over predictions."""
    loss_count: int = 0
    """Number of these predictions."""
    first_loss: float | None = None
    """Training loss of the first update, with which later ones are compared."""
    kept: dict[str, list[float]] = field(default_factory=dict)
    """Checkpoints kept for averaging, with their merits."""
    done: bool = False
    """Whether all updates are made: the budget is used up, or nothing improved for too long."""
    ended: str = ""
    """Why it is done: `patience`, or the part of the budget that was used up."""
    budget: dict[str, int | float | None] = field(default_factory=dict)
    """The budget with which it is done."""
    finished: bool = False
    """Whether it is done and the checkpoints are averaged."""
    products: str = ""
    """The library that multiplies float32 matrices (`matrix_products`); chosen once for a run."""


class SavedState(NamedTuple):
    """What `load_state` returns beside the restored model, optimizer and random numbers."""

    position: Position = Position()
    carried: tuple[Tensor, ...] = ()
    note: str = ""
    """Says that a newer state could not be read."""
    metrics: str | None = None
    """The digest of the metrics when the state was saved."""


def save_state(
    folder: Path,
    *,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    position: Position,
    carried: list[Tensor],
    random: list[Tensor],
    device_random: list[Tensor],
    device: torch.device,
    identity: Mapping[str, Any],
    metrics: str,
) -> None:
    """Write the state of a run; the previous one is kept.

    `random` holds the state of the random number generator of each process, `device_random` that of
    its accelerator if there is one, `identity` what the run is (`run_identity`), and `metrics` the
    digest of its metrics.
    """
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    for number, slots in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{name}": slot for name, slot in slots.items()}
    tensors |= {f"carried.{i}": tensor.clone() for i, tensor in enumerate(carried)}
    tensors |= {_random_name(rank): state for rank, state in enumerate(random)}
    tensors |= {_random_name(rank, device): state for rank, state in enumerate(device_random)}
    about = {"format": FORMAT, "position": asdict(position), "metrics": metrics, **identity}
    write_tensors(folder / NEW, tensors, about)
    _make_latest(folder)


def _random_name(rank: int, device: torch.device | None = None) -> str:
    """The name of the tensor with the state of a process's random number generator.

    An accelerator has a generator of its own, whose state means nothing to another type of device.
    """
    where = "" if device is None else f".{device.type}"
    return f"random{where}" if rank == 0 else f"random{where}.{rank}"


def combine_seeds(*numbers: int) -> int:
    """One seed from several numbers."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])


def _make_latest(folder: Path) -> None:
    """Rename the new state to the latest, and the latest to the previous one."""
    latest = folder / LATEST
    try:
        if latest.exists():
            os.replace(latest, folder / PREVIOUS)
        os.replace(folder / NEW, latest)
    except OSError as error:
        raise RegardError(f"{latest}: cannot be written ({error.strerror})") from error


def remove_older_states(folder: Path) -> None:
    """Remove the state before the latest one, which a finished run does not need."""
    if (folder / LATEST).exists():
        (folder / PREVIOUS).unlink(missing_ok=True)


def load_state(
    folder: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    rank: int = 0,
    identity: Mapping[str, Any] | None = None,
) -> SavedState | None:
    """Restore model, optimizer and random numbers from the newest readable state; None without one.

    It is an error if the state is of a run with another `identity`. A process that did not exist
    when the state was saved (the run resumes with more processes) seeds its random numbers with its
    own seed and the step; so does one that resumes on another type of device.
    """
    paths = [folder / name for name in (NEW, LATEST, PREVIOUS) if (folder / name).exists()]
    note = ""
    for path in paths:
        try:
            tensors, about = read_tensors(path)
            position = _read_position(about, path)
            check_identity(about, identity or {}, path)
            _restore(tensors, model, optimizer, path)
            _restore_random(tensors, rank, position, path, device_of(model))
        except RegardError as error:
            if path == paths[-1]:
                raise RegardError(
                    f"{error}; no older state is left: remove {folder} to train from the start"
                ) from error
            note = f"{error}; resuming from the state before it"
            continue
        if path.name == NEW and rank == 0:
            _make_latest(folder)  # the process was killed before it could
        count = sum(name.startswith("carried.") for name in tensors)
        carried = tuple(tensors[f"carried.{i}"].clone() for i in range(count))
        metrics = about.get("metrics")
        return SavedState(position, carried, note, metrics if isinstance(metrics, str) else None)
    return None


def _restore_random(
    tensors: Mapping[str, Tensor], rank: int, position: Position, path: Path, device: torch.device
) -> None:
    """The random numbers of the CPU and of the device; new ones for a device that had none."""
    try:
        torch.manual_seed(combine_seeds(torch.initial_seed(), position.step))
        if _random_name(rank) in tensors:
            torch.set_rng_state(tensors[_random_name(rank)])
        if _random_name(rank, device) in tensors:
            set_random_state(device, tensors[_random_name(rank, device)])
    except (RuntimeError, TypeError) as error:
        raise RegardError(f"{path}: has no random numbers to resume with") from error


def _read_position(numbers: dict[str, Any], path: Path) -> Position:
    if numbers.get("format") != FORMAT:
        raise RegardError(f"{path}: not a state of this version of Regard")
    try:
        position = Position(**numbers["position"])
    except (KeyError, TypeError) as error:
        raise RegardError(f"{path}: has no position of the run") from error
    counts = (position.epoch, position.batch, position.step, position.halvings)
    if any(type(count) is not int or count < 0 for count in counts):
        raise RegardError(f"{path}: its position is not that of a run")
    return position


def _restore(
    tensors: Mapping[str, Tensor], model: nn.Module, optimizer: torch.optim.Optimizer, path: Path
) -> None:
    weights = {n.removeprefix("model."): t for n, t in tensors.items() if n.startswith("model.")}
    load_weights(model, weights, path, finite=False)  # a run that diverged may resume as it is
    slots: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if re.match(r"optimizer\.\d+\.", name):
            _, number, slot = name.split(".", 2)
            slots.setdefault(int(number), {})[slot] = tensor.clone()
    groups = optimizer.state_dict()["param_groups"]
    shapes = [parameter.shape for group in optimizer.param_groups for parameter in group["params"]]
    for index, saved in slots.items():
        if index >= len(shapes) or any(
            t.dim() and t.shape != shapes[index] for t in saved.values()
        ):
            raise RegardError(f"{path}: the optimizer of another model (parameter {index})")
    if "random" not in tensors:
        raise RegardError(f"{path}: has weights only, which is not enough to resume from")
    optimizer.load_state_dict({"state": slots, "param_groups": groups})
