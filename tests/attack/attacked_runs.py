"""Small trained runs to damage and to forge; one of each per process."""

import atexit
import json
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from jaxtyping import config as jaxtyping_config

from regard.inference import load
from regard.training import RunFolder
from regard.training.prepared_data import Prepared, read_prepared
from regard.training.run import train_run
from regard.training.run_identity import run_identity
from regard.training.tensor_files import read_tensors, write_tensors
from regard.verified_files import file_digest
from tests.training.tiny import OPTIONS, write_data

TEXTS = ["the film was very great", "not bad at all ✓", "naïve plot"]


@cache
def _folder() -> Path:
    folder = Path(mkdtemp(prefix="regard-attack-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def options(task: str) -> dict[str, Any]:
    """The options of the run of a task."""
    more = {"tokenizer": "bpe"} if task == "translation" else {}
    place = _folder() / f"data-{task}"
    place.mkdir()
    return {"data": write_data(place, task), **OPTIONS[task], **more}


@cache
def trained(task: str) -> Path:
    """A finished run."""
    run = _train(task, _folder() / f"{task}-finished")
    answers(run)  # imports what processes that are forked later would import one by one
    return run


@cache
def interrupted(task: str) -> Path:
    """A run that was stopped two thirds through, with two states and with checkpoints."""
    return _train(task, _folder() / f"{task}-stopped", steps=9)


def _train(task: str, out: Path, steps: int | None = None) -> Path:
    left = iter(range(steps or 10**9))
    before = jaxtyping_config.jaxtyping_disable
    jaxtyping_config.update("jaxtyping_disable", True)  # shapes are checked elsewhere
    try:
        train_run(task, options(task), out, stop=lambda: next(left) + 1 == steps)
    finally:
        jaxtyping_config.update("jaxtyping_disable", before)
    return out


def answers(run: Path) -> list[Any]:
    """What a run predicts, in plain values."""
    return [(p.output, p.details) for p in load(run).predict(TEXTS)]


def change_config(run: Path, **given: Any) -> None:
    """Change options in the config of a run, in whichever part they are."""
    path = run / "config.json"
    config = json.loads(path.read_text("utf-8"))
    for name, value in given.items():
        part = next(p for p in ("data", "model", "training") if name in config[p])
        config[part][name] = value
    path.write_text(json.dumps(config), "utf-8")


def seal(run: Path) -> None:
    """Make all digests right again: what someone does who crafts a run on purpose."""
    folder = RunFolder(run)
    record = json.loads(folder.prepared.read_text("utf-8"))
    digests = {n: file_digest(folder.data / n) for n in read_prepared(folder).digests}
    folder.prepared.write_text(json.dumps(record | {"digests": digests}), "utf-8")
    config = json.loads((run / "config.json").read_text("utf-8"))
    identity = run_identity(config, Prepared(None, digests).digest)
    write_tensors(folder.model, read_tensors(folder.model)[0], identity)
