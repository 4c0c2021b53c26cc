"""Regard: train attention models on your own text, use them, and see where they look."""

from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError, python_wording
from regard.lazy_imports import export_lazily

if TYPE_CHECKING:
    from regard.attention import attend, explain_path, steps
    from regard.check import check
    from regard.compare import compare
    from regard.inference import Run
    from regard.tasks.prediction import Prediction
    from regard.tasks.task import Evaluation
    from regard.trace import Look
    from regard.training.loop import Progress

__version__ = "0.1.0"
__all__ = [
    "Evaluation",
    "Look",
    "Prediction",
    "RegardError",
    "Run",
    "attend",
    "check",
    "compare",
    "explain_path",
    "load",
    "steps",
    "train",
]

export_lazily(
    __name__,
    {
        "Evaluation": "regard.tasks.task:Evaluation",
        "Look": "regard.trace:Look",
        "Prediction": "regard.tasks.prediction:Prediction",
        "Run": "regard.inference:Run",
        "attend": "regard.attention:attend",
        "attention": "regard.attention",
        "check": "regard.check:check",
        "compare": "regard.compare:compare",
        "explain_path": "regard.attention:explain_path",
        "steps": "regard.attention:steps",
        "trace": "regard.trace",
    },
)


def train(
    task: str,
    data: Any = None,
    *,
    out: "str | PathLike[str] | None" = None,
    device: str = "auto",
    progress: "bool | Callable[[Progress], None] | None" = None,
    **options: Any,
) -> "Run":
    """Train a model, or resume its training, and return it ready for use.

    Args:
        task: translation, language, classify, tag or algorithm.
        data: the examples (default: the built-in corpus). File names; a list of pairs such as
            [(text, label), …]; columns such as (texts, labels); words with their tags; records by
            column name; a pandas data frame; a `datasets.Dataset`; any iterable of these.
        out: the run folder (default: runs/TASK-DATE-NUMBER).
        device: where to compute, such as cpu, cuda, cuda:1 or mps (default: the accelerator if
            there is one, else the CPU).
        progress: whether to show progress (default: in notebooks), or a function that is called
            after every update of the weights.
        options: those of `regard train TASK --help`; `valid` takes what `data` takes.
    """
    from regard.inference import load
    from regard.inference.learning_curves import draw_curves
    from regard.inference.training_progress import training_progress
    from regard.training.distributed import local_device, torchrun_processes
    from regard.training.run import train_run

    if data is not None:
        options["data"] = data
    with python_wording(), training_progress(progress) as report:
        folder, _ = train_run(task, options, out, device=device, report=report)
    if torchrun_processes().first:
        draw_curves(folder.path)
    return load(folder.path, local_device(device))


def load(path: "str | PathLike[str]", device: str = "auto") -> "Run":
    """A trained run: call it with texts, or `evaluate` it on files.

    Args:
        path: its folder, or that of a pretrained model.
        device: where to compute, as in `train`; a run may be used on another device than that of
            its training.
    """
    from regard.inference import load

    return load(path, device)
