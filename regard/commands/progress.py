"""Progress as people see it: one line that changes, and lines that stay."""

from typing import Any


class Live:
    """Progress on a terminal: one line that changes; elsewhere, only what was measured."""

    def __init__(self, stream: Any) -> None:
        self.stream, self.live = stream, stream.isatty()
        self.begun = False
        """Whether an update was made."""

    def line(self, text: str) -> None:
        """A line that stays."""
        if text:
            self.close()
            print(text, file=self.stream, flush=True)

    def progress(self, progress: Any) -> None:
        """One update."""
        self.begun = True
        position, evaluation = progress.position, progress.evaluation
        self.line(progress.note)
        if evaluation is not None:
            main = evaluation.metrics[evaluation.main]
            self.line(
                f"epoch {position.epoch + 1}, step {position.step}: loss {progress.loss:.3f}, "
                f"{main.name} {main.value:.4g} [{main.low:.4g}, {main.high:.4g}]"
            )
            for sample in evaluation.samples[:1]:
                self.line(f"  {sample.given[:70]} → {sample.predicted[:70]}")
        elif self.live:
            left = position.seconds * (1 / progress.share - 1) if progress.share > 0 else 0
            text = (
                f"epoch {position.epoch + 1}, step {position.step}, loss {progress.loss:.3f}, "
                f"{progress.tokens_per_second:,.0f} tokens/s, {left / 60:.1f} min left at most"
            )
            self.stream.write(f"\r\x1b[K{text}")
            self.stream.flush()

    def close(self) -> None:
        """Clear the changing line."""
        if self.live:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
