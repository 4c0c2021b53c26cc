"""Sentence pairs and links from files, exactly one pair per line."""

from collections.abc import Sequence

from regard.data import Pair
from regard.data.readers.sources import Data
from regard.inference.run import Run
from regard.metrics import GoldLinks
from regard.metrics.gold import Gold
from regard.tasks.shared.pairs_by_line import read_link_file, read_pairs_by_line


def read_every_pair(
    run: Run | None, data: Data, source: str | None = None, target: str | None = None
) -> list[Pair]:
    """The pairs of some files, read as those of the run's training; empty ones have empty sides.

    `source` and `target` name columns or endings in place of those of the run.
    """
    if run is not None and source is None and target is None:
        source, target = run.data.source, run.data.target
    return read_pairs_by_line(data, source, target)


def read_links(path: str) -> Gold:
    """The links of a file, one set per pair, as they stand there."""
    return read_link_file(path)


def reverse_pairs(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs of the opposite direction."""
    return [Pair(pair.target, pair.source, pair.where) for pair in pairs]


def reverse_gold(gold: Sequence[GoldLinks]) -> list[GoldLinks]:
    """The links of the opposite direction."""
    return [
        GoldLinks(*(frozenset((t, s) for s, t in links) for links in sentence)) for sentence in gold
    ]
