"""Sentence pairs and links from files, exactly one pair per line."""

from regard.data import Pair, Summary, read_pairs, resolve
from regard.data.readers.lines import lines
from regard.data.readers.sources import Data
from regard.errors import RegardError
from regard.metrics.gold import Gold, parse_links


def read_pairs_by_line(
    data: Data, source: str | None = None, target: str | None = None
) -> list[Pair]:
    """The pairs of some files; those of lines without a pair have empty sides.

    `source` and `target` name columns or endings.
    """
    summary = Summary()
    pairs: list[Pair] = []
    for pair in read_pairs(data, source, target, summary):
        pairs += [Pair("", "")] * (summary.total.read - 1 - len(pairs))  # lines without a pair
        pairs.append(pair)
    for name, counts in summary.files.items():
        if counts.long:
            raise RegardError(f"{name}: {counts.long} pairs of lines over 1 MiB: shorten them")
    return pairs + [Pair("", "")] * (summary.total.read - len(pairs))


def read_link_file(path: str) -> Gold:
    """The links of a file, one set per pair, as they stand there."""
    rows: list[str] = []
    for source in resolve(path):
        for number, text in lines(source):
            if text is None:
                raise RegardError(f"{source.name}:{number}: the line is too long for links")
            rows.append(text)
    return parse_links(rows, path)
