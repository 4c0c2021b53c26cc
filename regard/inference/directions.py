"""Which way a run translates, as far as that can be told beside another run."""

from collections.abc import Sequence
from math import log

from regard.data import Pair
from regard.data.tokenizer import UNK, Tokenizer
from regard.errors import RegardError
from regard.inference.agreement import some_of
from regard.inference.forcing import translator
from regard.inference.runs import Run

CLEAR = 0.05
"""How much longer, as a logarithm, texts must be on the wrong side for a direction to be told."""


def check_opposite(run: Run, other: Run, pairs: Sequence[Pair]) -> None:
    """Refuse a second run that translates the same way as the first, where that can be told.

    It is told by what both were trained on, or by the words that they know: a side reads its own
    language in fewer tokens, and knows them. Runs that read bytes on other data tell nothing, nor
    do two sides of one language.
    """
    trained = [(one.data.data, one.data.source, one.data.target) for one in (run, other)]
    if trained[0] == trained[1]:
        reason = "both were trained on the same data, in the same order"
    else:
        some = some_of(pairs)
        ways = [direction(one, some) for one in (run, other)]
        if min(ways) <= CLEAR and max(ways) >= -CLEAR:
            return
        reason = "both know the words of these pairs on the same side"
    raise RegardError(
        f"{other.folder.path}: translates the same way as {run.folder.path} ({reason}): expected a "
        "run of the opposite direction"
    )


def direction(run: Run, pairs: Sequence[Pair]) -> float:
    """Above 0 for a run that reads these sources and writes these targets, else below.

    log of how many tokens its two sides make of the pairs turned around, over how many of the
    pairs as they are.
    """
    task, _ = translator(run)
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    ahead = _tokens(task.source, sources) + _tokens(task.target, targets)
    back = _tokens(task.source, targets) + _tokens(task.target, sources)
    return log(max(back, 1) / max(ahead, 1))


def _tokens(tokenizer: Tokenizer, texts: Sequence[str]) -> int:
    """Tokens of the texts; an unknown one costs its characters, too."""
    return sum(
        1 + (end - start if token == UNK else 0)
        for one in tokenizer.encode_batch(texts)
        for token, (start, end) in zip(one.ids, one.offsets, strict=True)
    )
