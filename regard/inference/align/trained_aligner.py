"""Word alignments of a run whose model is an aligner itself."""

from collections.abc import Iterator, Sequence

import numpy as np

from regard.data import Pair
from regard.data.corpus import in_chunks
from regard.inference.align.alignments import Alignment
from regard.inference.run import Run
from regard.metrics import GoldLinks
from regard.tasks.registry import WordAligner

CHUNK_PAIRS = 5000
"""Pairs whose weights are held in memory at once."""
LEAST_SOFT = 0.01
"""Soft links of a smaller weight are left out."""


def word_aligner(run: Run) -> WordAligner:
    """How the models of the run's task align words."""
    aligner: WordAligner = run.spec.require("aligner", run.folder.path, "aligning")
    return aligner


def align_directly(
    run: Run, pairs: Sequence[Pair], threshold: float | None = None
) -> Iterator[Alignment]:
    """The alignment of each pair, in order; of a pair with an empty side, one without links.

    Args:
        run: a trained aligner.
        pairs: sentences and their translations.
        threshold: minimum weight of a link (default: the one that was chosen in training).
    """
    aligner = word_aligner(run)
    least = aligner.threshold(run.model) if threshold is None else threshold
    for chunk in in_chunks(pairs, CHUNK_PAIRS):
        for one in aligner.posteriors(run.task, run.model, chunk):
            links = tuple(sorted(one.links(least)))
            yield Alignment(one.source, one.target, links, one.weights)


def soft_links(run: Run, pairs: Sequence[Pair]) -> Iterator[str]:
    """A line of weighted links per pair, `s-t:weight`: how likely each is for its target word."""
    aligner = word_aligner(run)
    for chunk in in_chunks(pairs, CHUNK_PAIRS):
        for one in aligner.posteriors(run.task, run.model, chunk):
            joint = one.joint.clip(max=1)
            found = sorted((int(s), int(t)) for t, s in np.argwhere(joint >= LEAST_SOFT))
            yield " ".join(f"{s}-{t}:{joint[t, s]:.3g}" for s, t in found)


def choose_threshold(run: Run, pairs: Sequence[Pair], gold: Sequence[GoldLinks]) -> float:
    """The threshold with the lowest error rate on these pairs."""
    aligner = word_aligner(run)
    return aligner.choose_threshold(aligner.posteriors(run.task, run.model, pairs), gold)
