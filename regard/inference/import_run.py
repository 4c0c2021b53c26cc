"""A pretrained model as a run: imported into a run folder, or into a temporary one."""

import atexit
import json
import shutil
import tempfile
from dataclasses import asdict
from os import PathLike
from pathlib import Path

from regard.atomic_files import write_text
from regard.errors import RegardError
from regard.pretrained.checkpoint import open_checkpoint
from regard.pretrained.weights_by_name import task_of
from regard.tasks.registry import TASKS
from regard.training.prepared_data import identify_run, write_prepared
from regard.training.run import make_configs
from regard.training.run_folder import RunFolder
from regard.training.stored_runs.model_card import write_card
from regard.training.tensor_files import write_tensors


def import_run(source: str | PathLike[str], out: str | PathLike[str]) -> RunFolder:
    """Write the run of a pretrained model with a head.

    Everything is checked before the first file is written.

    Args:
        source: a folder with config.json, weights and tokenizer; or `hf:organization/name`, a
            model of the Hugging Face hub.
        out: the run folder, which must not exist yet.
    """
    checkpoint = open_checkpoint(_folder(source))
    spec = TASKS.row(task_of(checkpoint))
    folder = RunFolder(Path(out))
    if folder.path.is_dir() and any(folder.path.iterdir()):
        raise RegardError(f"{folder.path}: already contains files: choose another --out")
    adopted = spec.require("adopt", checkpoint.folder, "importing")(checkpoint)
    data, model, training = make_configs(spec, adopted.options)
    config = {"data": asdict(data), "model": asdict(model), "training": asdict(training)}
    with folder.begin({"task": spec.name, **config}):
        folder.data.mkdir(exist_ok=True)
        report = adopted.write(folder.data)
        write_prepared(folder, report.as_dict(), None)
        write_text(folder.packed, json.dumps({"how": "imported"}) + "\n")
        write_tensors(folder.model, adopted.weights, identify_run(folder))
    write_card(folder)
    return folder


def _folder(source: str | PathLike[str]) -> Path:
    if not str(source).startswith("hf:"):
        return Path(source)
    from regard.pretrained.hub_download import download_model

    return download_model(str(source))


def import_temporarily(source: Path) -> RunFolder:
    """The run of a pretrained model in a folder that is removed when the process ends."""
    parent = Path(tempfile.mkdtemp(prefix="regard-"))
    atexit.register(shutil.rmtree, parent, ignore_errors=True)
    return import_run(source, parent / (source.resolve().name or "model"))
