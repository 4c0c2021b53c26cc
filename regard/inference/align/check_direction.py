"""Whether two runs translate in opposite directions, as far as that can be detected."""

from collections.abc import Sequence
from math import log
from typing import Any

from regard.data import Pair
from regard.data.tokenizers.tokenizer import UNK, Tokenizer
from regard.errors import RegardError
from regard.inference.align.choose_head import sample_pairs
from regard.inference.run import Run

CLEAR_DIFFERENCE = 0.05
"""The difference in length, as a logarithm, from which on a direction is taken as known."""


def check_opposite(run: Run, other: Run, pairs: Sequence[Pair]) -> None:
    """Raise RegardError if a second run translates in the same direction as the first.

    This is detected by the data that both were trained on, or by the words that they know: a
    tokenizer needs fewer tokens for its own language, and fewer of them are unknown. Nothing can be
    detected for runs on other data that read bytes, or whose two sides are of one language.
    """
    data, other_data = (
        (each.data.data, each.data.source, each.data.target) for each in (run, other)
    )
    if data == other_data:
        reason = "both were trained on the same data, in the same order"
    else:
        sample = sample_pairs(pairs)
        directions = [direction(each, sample) for each in (run, other)]
        if min(directions) <= CLEAR_DIFFERENCE and max(directions) >= -CLEAR_DIFFERENCE:
            return
        reason = "both know the words of these pairs on the same side"
    raise RegardError(
        f"{other.folder.path}: translates the same way as {run.folder.path} ({reason}): expected a "
        "run of the opposite direction"
    )


def direction(run: Run, pairs: Sequence[Pair]) -> float:
    """Positive for a run that reads these sources and writes these targets, otherwise negative.

    log (tokens of the reversed pairs / tokens of the pairs), by the run's own tokenizers.
    """
    task: Any = run.task
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    forward = _tokens(task.source, sources) + _tokens(task.target, targets)
    backward = _tokens(task.source, targets) + _tokens(task.target, sources)
    return log(max(backward, 1) / max(forward, 1))


def _tokens(tokenizer: Tokenizer, texts: Sequence[str]) -> int:
    """The number of tokens of the texts; an unknown token also counts its characters."""
    return sum(
        1 + (end - start if token == UNK else 0)
        for encoded in tokenizer.encode_batch(texts)
        for token, (start, end) in zip(encoded.ids, encoded.offsets, strict=True)
    )
