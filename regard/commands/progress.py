"""Progress as people see it: one line that changes, and lines that stay."""

from typing import Any

SMOOTH = 0.95
"""How much of the speed shown so far goes on into the next."""


class Live:
    """Progress on a terminal: one line that changes; elsewhere, only what was measured.

    Of several processes one speaks, and the others are quiet.
    """

    def __init__(self, stream: Any, quiet: bool = False) -> None:
        self.stream, self.live, self.quiet = stream, stream.isatty() and not quiet, quiet
        self.begun = False
        """Whether an update was made."""
        self.speed = 0.0
        self.measured = ""

    def line(self, text: str) -> None:
        """A line that stays."""
        if text and not self.quiet:
            self.close()
            print(text, file=self.stream, flush=True)

    def progress(self, progress: Any) -> None:
        """One update."""
        self.speed = (
            SMOOTH * self.speed + (1 - SMOOTH) * progress.tokens_per_second
            if self.begun
            else progress.tokens_per_second
        )
        self.begun = True
        position, evaluation = progress.position, progress.evaluation
        self.line(progress.note)
        if evaluation is not None:
            main = evaluation.metrics[evaluation.main]
            self.measured = f"{main.name} {main.value:.4g}, "
            self.line(
                f"epoch {position.epoch + 1}, step {position.step}: loss {progress.loss:.3f}, "
                f"{main.name} {main.value:.4g} [{main.low:.4g}, {main.high:.4g}]"
            )
            for sample in evaluation.samples[:1]:
                self.line(f"  {sample.given[:70]} → {sample.predicted[:70]}")
        elif self.live:
            left = position.seconds * (1 / progress.share - 1) if progress.share > 0 else None
            self.stream.write(
                f"\r\x1b[K\x1b[?7l"  # no wrapping: a narrow terminal cuts the line
                f"epoch {position.epoch + 1}, step {position.step}, loss {progress.loss:.3f}, "
                f"{self.measured}{self.speed:,.0f} tokens/s{duration(left)}\x1b[?7h"
            )
            self.stream.flush()

    def close(self) -> None:
        """Clear the changing line."""
        if self.live:
            self.stream.write("\r\x1b[K")
            self.stream.flush()


def duration(seconds: float | None) -> str:
    """How long it takes at most, in words; nothing where it is not known.

    >>> duration(42.0), duration(600.0), duration(9000.0)
    (', 42 s left at most', ', 10 min left at most', ', 2 h 30 min left at most')
    """
    if seconds is None:
        return ""
    if seconds < 60:
        return f", {seconds:.0f} s left at most"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f", {f'{hours} h ' if hours else ''}{minutes} min left at most"
