"""Progress on the terminal: bars that change, lines that stay, plain lines elsewhere."""

import os
import re
import shutil
import textwrap
from threading import RLock, Timer
from time import monotonic
from typing import Any

from regard.errors import printable
from regard.number_format import format_interval, format_value
from regard.progress import Stage

SMOOTHING = 0.95
"""Weight of the earlier speed in the moving average that is shown."""
DELAY = 0.7
"""Seconds before a stage gets a bar: shorter ones would only flicker."""
PLAIN_INTERVAL = 30.0
"""Seconds between lines about the progress of one stage, where there is no terminal."""
BAR_WIDTH = 14
"""Columns of the narrowest bar with its percentage and the gaps around it."""
REFRESH = 0.1
"""Seconds between two changes of a bar."""


class Display:
    """Shows progress: bars on a terminal; elsewhere lines, now and then.

    It is a reporter for `regard.progress.reporting`. A quiet one prints nothing but knows whether
    training has started; so are all processes of distributed training but the first.
    """

    def __init__(self, stream: Any, quiet: bool = False) -> None:
        self.stream, self.quiet = stream, quiet
        self.live = bool(stream.isatty()) and os.environ.get("TERM") != "dumb"
        self.started = False
        """Whether an update has been made."""
        self.speed = 0.0
        """Tokens per second, smoothed."""
        self.metric = ""
        """The main metric of the last validation in words."""
        self._bars: Any = None
        self._times: dict[Stage, tuple[float, float]] = {}
        """When each stage began, and when it was last shown."""
        self._tasks: dict[Stage, Any] = {}
        self._training = Stage("training", 1000)
        self._lock = RLock()

    def line(self, text: str) -> None:
        """Print a line that stays; bars are drawn again below it."""
        if text and not self.quiet:
            self.close()
            text = printable(text)
            print(_fold(text) if self.live else text, file=self.stream, flush=True)

    def __call__(self, stage: Stage) -> None:
        """Show a stage, if it takes long."""
        if self.quiet:
            return
        now = monotonic()
        began, shown = self._times.get(stage, (now, now))
        if stage.ended:
            self._times.pop(stage, None)
            self._remove(stage)
        elif stage not in self._times:
            self._times[stage] = (now, now)
            if self.live:
                self._draw_later(stage)
        elif self.live:
            if now - began >= DELAY and now - shown >= REFRESH:
                self._times[stage] = (began, now)
                self._draw(stage, stage.label, _figures(stage, now - began))
        elif now - shown >= PLAIN_INTERVAL and stage.done:
            self._times[stage] = (began, now)
            self.line(f"{stage.label}: {_figures(stage, now - began)}")

    def progress(self, progress: Any) -> None:
        """Show the progress of training after an update."""
        self._smooth(progress.tokens_per_second)
        self.line(progress.note)
        if progress.evaluation is not None:
            self._show_validation(progress)
        if self.quiet:
            return
        now, stage = monotonic(), self._training
        _, shown = self._times.setdefault(stage, (now, now if not self.live else 0.0))
        if now - shown < (REFRESH if self.live else PLAIN_INTERVAL):
            return
        self._times[stage] = (now, now)
        position, loss = progress.position, f"loss {progress.loss:.3f}"
        where = f"epoch {position.epoch + 1}, step {position.step:,}"
        left = position.seconds * (1 / progress.share - 1) if progress.share > 0 else None
        if self.live:
            stage.total = 1000 if left is not None else None
            stage.done = round(1000 * progress.share)
            room = shutil.get_terminal_size().columns - len(where) - BAR_WIDTH
            figures = (loss, duration(left), self.metric, f"{self.speed:,.0f} tokens/s")
            self._draw(stage, where, _join_as_fits(figures, room))
        else:
            parts = (where, loss, self.metric, f"{self.speed:,.0f} tokens/s", duration(left))
            self.line(", ".join(part for part in parts if part))

    def _smooth(self, speed: float) -> None:
        self.speed = SMOOTHING * self.speed + (1 - SMOOTHING) * speed if self.started else speed
        self.started = True

    def _show_validation(self, progress: Any) -> None:
        position, evaluation = progress.position, progress.evaluation
        main = evaluation.metrics[evaluation.main]
        value = f"{main.name} {format_value(main.value, main.unit)}"
        self.metric = value
        loss = progress.validation_loss
        validation = "" if loss is None else f" (validation {loss:.3f})"
        interval = format_interval(main.low, main.high, main.unit)
        self.line(
            f"epoch {position.epoch + 1}, step {position.step:,}: loss {progress.loss:.3f}"
            f"{validation}, {value} {interval}".rstrip()
        )
        for sample in evaluation.samples[:1]:
            self.line(f"  {sample.given[:70]} → {sample.predicted[:70]}")

    def _draw_later(self, stage: Stage) -> None:
        """Show a stage after the delay even if nothing of it is done by then."""

        def draw() -> None:
            with self._lock:
                if stage in self._times and stage not in self._tasks:
                    self._draw(stage, stage.label, _figures(stage, DELAY))

        timer = Timer(DELAY, draw)
        timer.daemon = True
        timer.start()

    def _draw(self, stage: Stage, label: str, figures: str) -> None:
        """Show the bar of a stage; `rich` is imported when the first one is needed."""
        with self._lock:
            self._draw_locked(stage, label, figures)

    def _draw_locked(self, stage: Stage, label: str, figures: str) -> None:
        if self._bars is None:
            self._bars = _make_bars(self.stream)
            self._bars.start()
        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task(label, total=stage.total, figures=figures)
        self._bars.update(
            self._tasks[stage],
            total=stage.total,
            completed=stage.done,
            description=label,
            figures=figures,
        )

    def _remove(self, stage: Stage) -> None:
        with self._lock:
            task = self._tasks.pop(stage, None)
            if task is not None and self._bars is not None:
                self._bars.remove_task(task)
                if not self._tasks:
                    self.close()

    def close(self) -> None:
        """Remove the bars; the next update of a stage shows them again."""
        with self._lock:
            if self._bars is not None:
                self._bars.stop()
                self._bars = None
            self._tasks.clear()


def _make_bars(stream: Any) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
    from rich.table import Column

    def text(template: str, ratio: int | None = None) -> TextColumn:
        column = Column(no_wrap=True, overflow="ellipsis", ratio=ratio)
        return TextColumn(template, table_column=column, markup=False)

    return Progress(
        text("{task.description}"),
        BarColumn(bar_width=None, table_column=Column(ratio=1, min_width=6)),
        TaskProgressColumn(),
        text("{task.fields[figures]}"),
        console=Console(file=stream, force_terminal=True, highlight=False),
        transient=True,
        expand=True,
        redirect_stdout=False,
        redirect_stderr=False,
        refresh_per_second=5,
    )


def _join_as_fits(parts: tuple[str, ...], room: int) -> str:
    """Parts in the order of their importance, without the last ones where there is no room.

    >>> _join_as_fits(("loss 0.671", "4 s left", "BLEU 76.2"), 24)
    'loss 0.671 · 4 s left'
    """
    joined = ""
    for part in filter(None, parts):
        longer = f"{joined} · {part}" if joined else part
        if joined and len(longer) > room:
            break
        joined = longer
    return joined


def _fold(text: str) -> str:
    """A fact beside its name, folded to the width of the terminal; other lines as they are.

    Commands stay whole, so that they can be copied.
    """
    width = shutil.get_terminal_size().columns
    if not re.match(r"[a-z]+ {2,}\S", text) or text.startswith("next") or len(text) <= width:
        return text
    return textwrap.fill(
        text, width, subsequent_indent=" " * 12, break_long_words=False, break_on_hyphens=False
    )


def _figures(stage: Stage, seconds: float) -> str:
    """How much of a stage is done, and how long the rest will take."""
    total = "" if stage.total is None else f" of {stage.total:,}"
    count = f"{stage.done:,}{total} {stage.unit}".rstrip() if stage.done or total else ""
    if not stage.total or not 0 < stage.done < stage.total:
        return count
    return f"{count}, {duration(seconds * (stage.total / stage.done - 1))}"


def duration(seconds: float | None) -> str:
    """The maximum time left in words; empty if it is unknown.

    >>> duration(42.0), duration(600.0), duration(9000.0)
    ('42 s left', '10 min left', '2 h 30 min left')
    """
    if seconds is None:
        return ""
    if seconds < 60:
        return f"{seconds:.0f} s left"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{f'{hours} h ' if hours else ''}{minutes} min left"
