"""Runs: train one, load one, and use it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from itertools import count
from pathlib import Path
from typing import Any

from torch import nn

from regard.data import Summary, read_labelled, read_lines, read_pairs, read_tagged
from regard.errors import RegardError, unknown
from regard.options import check_names, make
from regard.tasks.classification import Classification
from regard.tasks.kinds import KINDS
from regard.tasks.language import Language
from regard.tasks.tagging import Tagging
from regard.tasks.task import Evaluation, Task
from regard.tasks.translation import Translation
from regard.training import Progress, RunFolder, TrainingConfig, train
from regard.training.checkpoints import load_weights, read_tensors


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
        filled = [text for text in texts if text.strip()]
        outputs = iter(self._predict(filled, options))
        return [next(outputs) if text.strip() else "" for text in texts]

    def _predict(self, texts: list[str], options: Mapping[str, Any]) -> list[str]:
        if not texts:
            return []
        task, model = self.task, self.model
        if isinstance(task, Translation):
            found = task.translate(model, texts, width=options.get("beam", 5))
            outputs = task.target.decode_batch([best.output for best in found])
        elif isinstance(task, Classification):
            outputs = [task.labels.names[row.argmax()] for row in task.classify(model, texts)]
        elif isinstance(task, Tagging):
            outputs = [" ".join(tags) for tags in task.tag(model, [t.split() for t in texts])]
        elif isinstance(task, Language):
            found = task.generate(model, texts, **options)
            outputs = task.tokenizer.decode_batch([best.output for best in found])
        else:
            raise RegardError(f"{self.folder.path}: a run of task {self.name} makes no predictions")
        # an output is a line, whatever the model wrote
        return [" ".join(output.splitlines()) for output in outputs]

    def evaluate(
        self, data: str | Sequence[str], *, lowercase: bool = False, beam: int = 5
    ) -> Evaluation:
        """How well it does on these files, which are read as those of training were."""
        paths = [data] if isinstance(data, str) else list(data)
        summary, options, task = Summary(), self.data, self.task
        if isinstance(task, Translation):
            pairs = list(read_pairs(paths, options.source, options.target, summary))
            return task.score(self.model, pairs, width=beam, lowercase=lowercase)
        if isinstance(task, Classification):
            labelled = read_labelled(paths, options.text, options.label, summary=summary)
            return task.score(self.model, list(labelled))
        if isinstance(task, Tagging):
            tagged = read_tagged(paths, options.text, options.label, summary)
            return task.score(self.model, list(tagged))
        if isinstance(task, Language):
            lines = read_lines(paths, options.text, None, summary)
            return task.score(self.model, [line.text for line in lines])
        raise RegardError(f"{self.folder.path}: a run of task {self.name} cannot be evaluated")


def configs(task: str, given: Mapping[str, Any]) -> tuple[Any, Any, TrainingConfig]:
    """Data, model and training config of a task from options by name."""
    if task not in KINDS:
        raise RegardError(unknown("task", task, KINDS))
    kind = KINDS[task]
    check_names(given, (kind.data, kind.model, TrainingConfig), task)
    defaults = dict(kind.defaults)
    if given.get("steps") is not None or given.get("minutes") is not None:
        defaults["epochs"] = None
    options = {**defaults, **given}
    return make(kind.data, options), make(kind.model, options), make(TrainingConfig, options)


def train_run(
    task: str,
    options: Mapping[str, Any],
    out: str | Path | None = None,
    *,
    report: Callable[[Progress], None] = lambda progress: None,
    tell: Callable[[str], None] = lambda line: None,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[RunFolder, bool]:
    """Train, or go on training, in a run folder; whether it was finished."""
    data, model, training = configs(task, options)
    folder = RunFolder(Path(out) if out is not None else _next_folder(task))
    parts = {"data": asdict(data), "model": asdict(model), "training": asdict(training)}
    if folder.begin({"task": task, **parts}):
        tell(f"going on with the run in {folder.path}")
    prepared, told = KINDS[task].prepare(data, model, folder.data, seed=training.seed)
    tell(told)
    position = train(prepared, training, folder, report=report, stop=stop)
    return folder, position.done


def load(path: str | Path) -> Run:
    """A trained run, ready to be used."""
    folder = RunFolder(Path(path))
    config = folder.config()
    name = config["task"]
    if name not in KINDS:
        raise RegardError(f"{folder.path}: {unknown('task', name, KINDS)}")
    kind = KINDS[name]
    data: Any = make(kind.data, config.get("data", {}))
    model: Any = make(kind.model, config.get("model", {}))
    if not folder.model.exists():
        raise RegardError(f"{folder.path}: holds no weights yet: train it first")
    task = kind.load(data, model, folder.data)
    network = task.build()
    load_weights(network, read_tensors(folder.model)[0], folder.model)
    return Run(name, folder, task, network.eval(), data)


def _next_folder(task: str) -> Path:
    for number in count(1):
        path = Path("runs") / f"{task}-{date.today().isoformat()}-{number}"
        if not path.exists():
            return path
    raise AssertionError  # count never ends
