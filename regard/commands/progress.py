"""Progress of training on the terminal: one line that changes, and lines that stay."""

from typing import Any

SMOOTHING = 0.95
"""Weight of the earlier speed in the moving average that is shown."""


class Live:
    """Shows progress: on a terminal in one line that changes, elsewhere only the validations.

    In distributed training all processes but the first are quiet.
    """

    def __init__(self, stream: Any, quiet: bool = False) -> None:
        self.stream, self.live, self.quiet = stream, stream.isatty() and not quiet, quiet
        self.started = False
        """Whether an update has been made."""
        self.speed = 0.0
        self.metric = ""
        """The main metric of the last validation, as it is shown."""

    def line(self, text: str) -> None:
        """Print a line that stays."""
        if text and not self.quiet:
            self.close()
            print(text, file=self.stream, flush=True)

    def progress(self, progress: Any) -> None:
        """Show the progress after an update."""
        self.speed = (
            SMOOTHING * self.speed + (1 - SMOOTHING) * progress.tokens_per_second
            if self.started
            else progress.tokens_per_second
        )
        self.started = True
        position, evaluation = progress.position, progress.evaluation
        self.line(progress.note)
        if evaluation is not None:
            main = evaluation.metrics[evaluation.main]
            self.metric = f"{main.name} {main.value:.4g}, "
            self.line(
                f"epoch {position.epoch + 1}, step {position.step}: loss {progress.loss:.3f}, "
                f"{main.name} {main.value:.4g} [{main.low:.4g}, {main.high:.4g}]"
            )
            for sample in evaluation.samples[:1]:
                self.line(f"  {sample.given[:70]} → {sample.predicted[:70]}")
        elif self.live:
            left = position.seconds * (1 / progress.share - 1) if progress.share > 0 else None
            self.stream.write(
                f"\r\x1b[K\x1b[?7l"  # no wrapping: a narrow terminal truncates the line
                f"epoch {position.epoch + 1}, step {position.step}, loss {progress.loss:.3f}, "
                f"{self.metric}{self.speed:,.0f} tokens/s{duration(left)}\x1b[?7h"
            )
            self.stream.flush()

    def close(self) -> None:
        """Clear the line that changes."""
        if self.live:
            self.stream.write("\r\x1b[K")
            self.stream.flush()


def duration(seconds: float | None) -> str:
    """The maximum time left in words; empty if it is unknown.

    >>> duration(42.0), duration(600.0), duration(9000.0)
    (', 42 s left at most', ', 10 min left at most', ', 2 h 30 min left at most')
    """
    if seconds is None:
        return ""
    if seconds < 60:
        return f", {seconds:.0f} s left at most"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f", {f'{hours} h ' if hours else ''}{minutes} min left at most"
