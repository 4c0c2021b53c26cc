"""Load a run from its folder; everything in it is verified before it is used."""

from collections.abc import Mapping
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

import torch

from regard.devices import AUTO, resolve_device
from regard.errors import RegardError
from regard.inference.import_run import import_temporarily
from regard.inference.run import Run, load_weights
from regard.pretrained.checkpoint import is_checkpoint
from regard.tasks.registry import TASKS
from regard.training import RunFolder
from regard.training.prepared_data import read_prepared, verify_prepared
from regard.training.run import earlier_options, make_configs
from regard.training.run_identity import check_identity, run_identity
from regard.training.tensor_files import read_header


def load(path: str | PathLike[str], device: str | torch.device = AUTO) -> Run:
    """A trained run, ready for use, on a device.

    The folder of a pretrained model is imported first, into a temporary folder.
    """
    chosen = resolve_device(device)
    folder = RunFolder(Path(path))
    if is_checkpoint(folder.path):
        folder = import_temporarily(folder.path)
    config = folder.config()
    name = config["task"]
    try:
        spec = TASKS.row(name)
        earlier = earlier_options(spec)
        data, model, _ = make_configs(spec, earlier | _options(config))
        default_data, default_model, _ = make_configs(spec, earlier)
    except RegardError as error:
        raise RegardError(f"{folder.path}: {error}") from error
    folder.require_weights()
    prepared = read_prepared(folder)
    used = {"task": name, "data": asdict(data), "model": asdict(model)}
    defaults = {"data": asdict(default_data), "model": asdict(default_model)}
    identity = run_identity(used, prepared.digest)
    check_identity(read_header(folder.model).about, identity, folder.model, defaults)
    verify_prepared(folder, prepared, corpora=False)
    task = spec.load(data, model, folder.data)
    network = load_weights(task, folder.model, chosen)
    part = getattr(task, "pretrained", None)
    options = config["model"] if part is None else asdict(part.architecture)
    return Run(name, folder, task, network, data, options)


def _options(config: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a run by name, from its config."""
    parts = [config.get(part) for part in ("data", "model", "training")]
    if not all(isinstance(part, dict) for part in parts):
        raise RegardError("its config has no data, model and training options")
    return {name: value for part in parts if part for name, value in part.items()}
