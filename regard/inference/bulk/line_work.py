"""What is done with the lines of a shard: predict, score or align, with an error per line."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from regard.data import Pair
from regard.data.corpus import in_chunks
from regard.errors import OptionError, RegardError
from regard.inference.bulk.shards import SHARD_LINES
from regard.inference.line_records import (
    BLOCK_LINES,
    alignment_record,
    prediction_lines,
    prediction_record,
    score_records,
    score_text,
)
from regard.inference.load_run import load
from regard.inference.run import Run
from regard.tasks.shared.word_attention import AttentionPlace


@dataclass(frozen=True)
class LineResult:
    """What a line, or row, gets."""

    lines: tuple[str, ...] = ("",)
    """Lines of a text file."""
    value: Any = None
    """The value of the new column of a table."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """All details, if they are wanted."""
    truncated: bool = False
    error: str | None = None


Row = tuple[int, tuple[str, ...]]
"""The number of a line, and its texts."""
Process = Callable[[Sequence[Row]], list[LineResult]]


@dataclass(frozen=True)
class LineWork:
    """A command on each line: plain values that a worker can be sent."""

    kind: str
    """predictions, scores or alignments."""
    run: str
    """The run folder."""
    texts: tuple[str, ...]
    """What the texts of a line are called: one, or source and target."""
    options: Mapping[str, Any] = field(default_factory=dict)
    details: bool = False
    """Whether all details are wanted."""
    device: str = "auto"
    """Where workers compute."""

    @property
    def column(self) -> str:
        """The column that tables get."""
        return {"predictions": "output", "scores": "log_probability", "alignments": "links"}[
            self.kind
        ]

    def load(self) -> Process:
        """What processes the rows of a shard, with the model in memory."""
        run = load(Path(self.run), self.device)
        process = {"predictions": _predict, "scores": _score, "alignments": _align}[self.kind]
        # alignments are computed in larger chunks, of which a shard is a multiple
        size = SHARD_LINES if self.kind == "alignments" else BLOCK_LINES
        return partial(_by_blocks, partial(process, run, self), size)


def _by_blocks(process: Process, size: int, rows: Sequence[Row]) -> list[LineResult]:
    return [result for block in in_chunks(rows, size) for result in _located(process, block)]


def _located(process: Process, rows: Sequence[Row]) -> list[LineResult]:
    """The results of some rows; rows that fail are halved until the ones are found that do."""
    try:
        return process(rows)
    except OptionError:
        raise
    except (RegardError, ValueError) as error:
        if len(rows) == 1:
            return [LineResult(error=str(error))]
        half = len(rows) // 2
        return _located(process, rows[:half]) + _located(process, rows[half:])


def _predict(run: Run, work: LineWork, rows: Sequence[Row]) -> list[LineResult]:
    texts = [texts[0] for _, texts in rows]
    nbest = work.options.get("nbest", 1)
    return [
        LineResult(
            tuple(prediction_lines(number, prediction, nbest)),
            prediction.output,
            prediction_record(text, prediction) if work.details else {},
            prediction.truncated,
        )
        for (number, _), text, prediction in zip(
            rows, texts, run.predict(texts, **work.options), strict=True
        )
    ]


def _score(run: Run, work: LineWork, rows: Sequence[Row]) -> list[LineResult]:
    pairs = [(texts[0], texts[1] if len(texts) > 1 else None) for _, texts in rows]
    return [
        LineResult(
            (score_text(record["log_probability"]),),
            record["log_probability"],
            record if work.details else {},
            record["truncated"],
        )
        for record in score_records(run, pairs, work.options)
    ]


def _align(run: Run, work: LineWork, rows: Sequence[Row]) -> list[LineResult]:
    filled = (texts if all(text.strip() for text in texts) else ("", "") for _, texts in rows)
    pairs = [Pair(source.strip(), target.strip()) for source, target in filled]
    options = dict(work.options)
    if run.spec.aligner is not None:
        from regard.inference.align.trained_aligner import align_directly

        alignments = align_directly(run, pairs, **options)
    else:
        from regard.inference.align.alignments import align

        alignments = align(run, pairs, AttentionPlace(*options.pop("place")), **options)
    return [
        LineResult(
            (str(alignment),),
            str(alignment),
            alignment_record(alignment) if work.details else {},
            alignment.truncated,
        )
        for alignment in alignments
    ]
