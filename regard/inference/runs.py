"""Runs: train one, load one, and use it."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from itertools import count
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.data import Summary, resolve
from regard.data.blueprints import KINDS as TOKENIZERS
from regard.errors import RegardError, unknown
from regard.options import at_least, check_names, make
from regard.tasks.kinds import KINDS, Kind
from regard.tasks.parts import with_corpora
from regard.tasks.task import Evaluation, Prediction, Task
from regard.training import Position, Progress, RunFolder, TrainingConfig, train
from regard.training.checkpoints import load_weights, read_tensors
from regard.training.folder import write_text

SIZES = ("width", "layers", "heads", "queries", "window", "local_width", "max_length")
"""Options of models that count something there must be one of."""


@dataclass(frozen=True)
class Run:
    """A trained model with all that it needs to be used."""

    name: str
    folder: RunFolder
    task: Task
    model: nn.Module
    data: Any
    """The data options it was trained with."""

    def __call__(self, texts: Sequence[str], **options: Any) -> list[str]:
        """One output for each text: its translation, label, tags or continuation."""
        return [found.output for found in self.predict(texts, **options)]

    def predict(self, texts: Sequence[str], **options: Any) -> list[Prediction]:
        """One prediction for each text, with all that is known of it; an empty text has none."""
        if isinstance(texts, str):
            raise ValueError(f"expected a list of texts, got one text: write [{texts!r}]")
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        filled = [text for text in clean if text.strip()]
        found = iter(self.task.predict(self.model, filled, **options) if filled else [])
        return [_line(next(found)) if text.strip() else Prediction("") for text in clean]

    def evaluate(
        self,
        data: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        tell: Callable[[str], None] = lambda line: None,
        **options: Any,
    ) -> Evaluation:
        """How well it does on these files, which are read as those of training were."""
        summary = Summary()
        examples = list(KINDS[self.name].read(self.data, resolve(data), summary))
        summary.require(1, "to evaluate")
        found = self.task.score(self.model, examples, **options)
        tell(str(summary))
        return found


def _line(found: Prediction) -> Prediction:
    """A prediction whose output is one line, whatever the model wrote."""
    return Prediction(" ".join(found.output.splitlines()), found.cut, found.details)


def configs(task: str, given: Mapping[str, Any]) -> tuple[Any, Any, TrainingConfig]:
    """Data, model and training config of a task from options by name."""
    kind = _kind(task)
    check_names(given, (kind.data, kind.model, TrainingConfig), task)
    defaults = dict(kind.defaults)
    if given.get("steps") is not None or given.get("minutes") is not None:
        defaults["epochs"] = None
    options = {**defaults, **given}
    data: Any = make(kind.data, options)
    model: Any = make(kind.model, options)
    _check_values(kind, data, model)
    return data, model, make(TrainingConfig, options)


def _kind(task: str) -> Kind:
    if task not in KINDS:
        raise RegardError(unknown("task", task, KINDS))
    return KINDS[task]


def _check_values(kind: Kind, data: Any, model: Any) -> None:
    """Find wrong values before any data is read: build the network once, for a few words."""
    if getattr(data, "tokenizer", TOKENIZERS[0]) not in TOKENIZERS:
        raise RegardError(unknown("tokenizer", data.tokenizer, TOKENIZERS))
    at_least(model, **{name: 1 for name in SIZES if hasattr(model, name)})
    name = "max_tokens" if hasattr(data, "max_tokens") else "window_tokens"
    longest = getattr(data, name, 0)
    parts = [getattr(model, part, None) for part in ("model", "encoder", "decoder")]
    if "transformer" in parts and longest >= model.max_length:
        raise RegardError(f"option max_length: expected more than {name}, which is {longest}")
    if getattr(model, "several", False):
        raise RegardError("option several: training with several labels a text is not there yet")
    try:
        with torch.random.fork_rng(devices=[]):
            kind.network(model)
    except (ValueError, ArithmeticError, RuntimeError) as error:
        raise RegardError(f"these options do not make a model: {error}") from error


def train_run(
    task: str,
    options: Mapping[str, Any],
    out: str | PathLike[str] | None = None,
    *,
    report: Callable[[Progress], None] = lambda progress: None,
    tell: Callable[[str], None] = lambda line: None,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[RunFolder, Position]:
    """Train, or go on training, in a run folder; how far it came."""
    data, model, training = configs(task, options)
    folder = RunFolder(Path(out) if out is not None else _next_folder(task))
    parts = {"data": asdict(data), "model": asdict(model), "training": asdict(training)}
    with folder.begin({"task": task, **parts}) as known:
        if known:
            tell(f"going on with the run in {folder.path}")
        if not folder.prepared.exists():
            try:
                folder.data.mkdir(exist_ok=True)
                told = KINDS[task].prepare(data, folder.data, training.seed)
            except OSError as error:
                raise RegardError(f"{folder.data}: {error.strerror or error}") from error
            except (RegardError, KeyboardInterrupt):
                if not known:
                    folder.abandon()
                raise
            write_text(folder.prepared, json.dumps({"read": told}, ensure_ascii=False))
            tell(told)
        prepared = with_corpora(KINDS[task].load(data, model, folder.data), folder.data)
        return folder, train(prepared, training, folder, report=report, stop=stop)


def load(path: str | PathLike[str]) -> Run:
    """A trained run, ready to be used."""
    folder = RunFolder(Path(path))
    config = folder.config()
    name = config["task"]
    try:
        data, model, _ = configs(name, _options(config))
    except RegardError as error:
        raise RegardError(f"{folder.path}: {error}") from error
    if not folder.model.exists():
        raise RegardError(f"{folder.path}: holds no weights yet: train it first")
    task = KINDS[name].load(data, model, folder.data)
    network = task.build()
    load_weights(network, read_tensors(folder.model)[0], folder.model)
    return Run(name, folder, task, network.eval(), data)


def _options(config: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a run by name, from its config."""
    parts = [config.get(part) for part in ("data", "model", "training")]
    if not all(isinstance(part, dict) for part in parts):
        raise RegardError("its config has no data, model and training options")
    return {name: value for part in parts if part for name, value in part.items()}


def _next_folder(task: str) -> Path:
    for number in count(1):
        path = Path("runs") / f"{task}-{date.today().isoformat()}-{number}"
        if not path.exists():
            return path
    raise AssertionError  # count never ends
