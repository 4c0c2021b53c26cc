"""Regard: train attention models on your own text, use them, and see where they look."""

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from regard.attention import attend, explain_path, steps
from regard.check import check
from regard.errors import RegardError
from regard.looks import Look

if TYPE_CHECKING:
    from regard.inference import Run

__version__ = "0.1.0"
__all__ = ["Look", "RegardError", "attend", "check", "explain_path", "load", "steps", "train"]


def train(
    task: str,
    data: "str | PathLike[str] | Sequence[str | PathLike[str]] | None" = None,
    *,
    out: "str | PathLike[str] | None" = None,
    **options: Any,
) -> "Run":
    """Train a model, or go on training it, and return it ready for use.

    `task` is translation, language, classify, tag or algorithm; `data` names its files (the
    built-in corpus unless said), `out` the folder of the run; the options are those of
    `regard train --help`.
    """
    from regard.inference import load, train_run
    from regard.inference.drawing_curves import draw_curves
    from regard.training.processes import announced

    if data is not None:
        options["data"] = data
    folder, _ = train_run(task, options, out)
    if announced().first:
        draw_curves(folder.path)
    return load(folder.path)


def load(path: "str | PathLike[str]") -> "Run":
    """A trained run: call it with texts, or `evaluate` it on files."""
    from regard.inference import load

    return load(path)
