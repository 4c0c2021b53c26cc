"""Progress of training for callers in Python: in the output of a notebook's cell, or in lines."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from time import monotonic
from typing import Any

from regard.notebook_cards import progress_bar, table
from regard.number_format import format_bare_value, format_value
from regard.progress import Stage, reporting
from regard.training.loop import Progress

REFRESH = 0.3
"""Seconds between two changes of the output."""


@contextmanager
def training_progress(
    wanted: bool | Callable[[Progress], None] | None,
) -> Iterator[Callable[[Progress], None]]:
    """Show progress of what happens within; yields what is to be called after every update.

    Args:
        wanted: False for nothing, True for a notebook's cell or lines on standard error, None for
            a notebook's cell only, or a function to call instead.
    """
    if callable(wanted):
        yield wanted
        return
    shown = notebook_progress() if wanted is not False else None
    if shown is None:
        yield _print_validation if wanted else _ignore
        return
    with reporting(shown):
        yield shown.update
    shown.finish()


def _ignore(progress: Progress) -> None:
    pass


def _print_validation(progress: Progress) -> None:
    """A line on standard error for each validation."""
    if progress.evaluation is not None:
        main = progress.evaluation.metrics[progress.evaluation.main]
        line = f"{_position(progress)}, {main.name} {main.text()}"
        print(line, file=sys.stderr, flush=True)


def _position(progress: Progress) -> str:
    position = progress.position
    return f"epoch {position.epoch + 1}, step {position.step:,}, loss {progress.loss:.3f}"


class NotebookProgress:
    """Shows how far training is; a reporter for `regard.progress.reporting`, too."""

    def __init__(self, show: Callable[[str], None]) -> None:
        """Show nothing yet.

        Args:
            show: called with HTML that replaces what was shown before.
        """
        self._show = show
        self._shown = float("-inf")
        self._validations: list[list[str]] = []
        self._metric = self._position = ""

    def update(self, progress: Progress) -> None:
        """Show the progress after an update of the weights."""
        position, evaluation = progress.position, progress.evaluation
        if evaluation is not None:
            main = evaluation.metrics[evaluation.main]
            self._metric = main.name
            losses = (progress.loss, progress.validation_loss)
            self._validations.append(
                [
                    f"{position.epoch + 1}",
                    f"{position.step:,}",
                    *("" if loss is None else format_bare_value(loss) for loss in losses),
                    format_value(main.value, main.unit),
                ]
            )
        self._position = _position(progress)
        speed = f"{progress.tokens_per_second:,.0f} tokens/s"
        self._draw(progress.share, f"{self._position}, {speed}", now=evaluation is not None)

    def __call__(self, stage: Stage) -> None:
        """Show a stage of reading the data; those within a validation are short."""
        if not self._validations and stage.total and not stage.ended:
            count = f"{stage.done:,} of {stage.total:,} {stage.unit}"
            self._draw(stage.done / stage.total, f"{stage.label}: {count}")

    def finish(self) -> None:
        """Show that training is over."""
        self._draw(1.0, f"finished: {self._position or 'nothing was left to do'}", now=True)

    def _draw(self, share: float, caption: str, *, now: bool = False) -> None:
        if not now and monotonic() - self._shown < REFRESH:
            return
        self._shown = monotonic()
        head = ("epoch", "step", "loss", "validation loss", self._metric)
        rows = table(head, self._validations) if self._validations else ""
        self._show(progress_bar(min(1.0, share), caption) + rows)


def notebook_progress() -> NotebookProgress | None:
    """Progress in the output of the cell that runs; None outside of notebooks."""
    if not in_notebook():
        return None
    ipython: Any = import_module("IPython.display")
    handle: Any = None

    def show(html: str) -> None:
        nonlocal handle
        if handle is None:
            handle = ipython.display(ipython.HTML(html), display_id=True)
        else:
            handle.update(ipython.HTML(html))

    return NotebookProgress(show)


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")
