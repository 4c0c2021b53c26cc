"""Sentence pairs and links from files, exactly one pair per line."""

from collections.abc import Sequence

from regard.data import Pair, Summary, read_pairs, resolve
from regard.data.readers.lines import lines
from regard.data.readers.sources import Data
from regard.errors import RegardError
from regard.inference.run import Run
from regard.metrics import GoldLinks
from regard.metrics.gold import Gold, parse_links


def read_every_pair(
    run: Run | None, data: Data, source: str | None = None, target: str | None = None
) -> list[Pair]:
    """The pairs of some files, read as those of the run's training; empty ones have empty sides.

    `source` and `target` name columns or endings in place of those of the run.
    """
    if run is not None and source is None and target is None:
        source, target = run.data.source, run.data.target
    summary = Summary()
    pairs: list[Pair] = []
    for pair in read_pairs(data, source, target, summary):
        pairs += [Pair("", "")] * (summary.total.read - 1 - len(pairs))  # lines without a pair
        pairs.append(pair)
    for name, counts in summary.files.items():
        if counts.long:
            raise RegardError(f"{name}: {counts.long} pairs of lines over 1 MiB: shorten them")
    return pairs + [Pair("", "")] * (summary.total.read - len(pairs))


def read_links(path: str) -> Gold:
    """The links of a file, one set per pair, as they stand there."""
    rows: list[str] = []
    for source in resolve(path):
        for number, text in lines(source):
            if text is None:
                raise RegardError(f"{source.name}:{number}: the line is too long for links")
            rows.append(text)
    return parse_links(rows, path)


def reverse_pairs(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs of the opposite direction."""
    return [Pair(pair.target, pair.source, pair.where) for pair in pairs]


def reverse_gold(gold: Sequence[GoldLinks]) -> list[GoldLinks]:
    """The links of the opposite direction."""
    return [
        GoldLinks(*(frozenset((t, s) for s, t in links) for links in sentence)) for sentence in gold
    ]
