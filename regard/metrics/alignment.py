"""Alignment error rate, precision and recall of word alignments against sure and possible links.

With A the predicted links, S the sure and P ⊇ S the possible gold links,

    precision = |A ∩ P| / |A|     recall = |A ∩ S| / |S|
    AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|)

Och & Ney (2003), A Systematic Comparison of Various Statistical Alignment Models,
https://aclanthology.org/J03-1002.
"""

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from regard.metrics.tally import Tally, ratio, same_count

Link = tuple[int, int]
"""A source position and a target position, from 0."""

_PHARAOH = re.compile(r"(\d+)([-p?])(\d+)", re.ASCII)
_WEIGHTED = re.compile(r"(\d+)-(\d+)(?::(\d*\.?\d+(?:e-?\d+)?))?", re.ASCII)


class GoldLinks(NamedTuple):
    """Sure links, and possible ones (which contain the sure ones); (source, target) from zero."""

    sure: frozenset[Link]
    possible: frozenset[Link]


def parse_pharaoh(line: str, first: int = 0) -> GoldLinks:
    """One line of the Pharaoh format: `i-j` is a sure link, `ipj` or `i?j` a possible one.

    `first` is the index of the first word in the file, 0 or 1; the result counts from zero.

    >>> gold = parse_pharaoh("0-0 2p1")
    >>> sorted(gold.sure), sorted(gold.possible)
    ([(0, 0)], [(0, 0), (2, 1)])
    """
    sure: set[Link] = set()
    possible: set[Link] = set()
    for column, link in enumerate(line.split(), 1):
        parts = _PHARAOH.fullmatch(link)
        if parts is None:
            raise ValueError(f"link {column} is {link!r}: expected i-j, or ipj or i?j if possible")
        source, kind, target = int(parts[1]) - first, parts[2], int(parts[3]) - first
        if source < 0 or target < 0:
            raise ValueError(f"link {column} is {link!r}: words are counted from {first}")
        (sure if kind == "-" else possible).add((source, target))
    return GoldLinks(frozenset(sure), frozenset(sure | possible))


def parse_weighted_pharaoh(line: str) -> dict[Link, float]:
    """One line of links with their weights, `i-j:0.93`; a link without a weight has 1.

    >>> parse_weighted_pharaoh("0-0 2-1:0.25")
    {(0, 0): 1.0, (2, 1): 0.25}
    """
    links: dict[Link, float] = {}
    for column, link in enumerate(line.split(), 1):
        parts = _WEIGHTED.fullmatch(link)
        weight = 1.0 if parts is None or parts[3] is None else float(parts[3])
        if parts is None or weight > 1:
            raise ValueError(f"link {column} is {link!r}: expected i-j, or i-j:w with w up to 1")
        links[int(parts[1]), int(parts[2])] = weight
    return links


def alignment_metrics(
    predicted: Sequence[Collection[Link]], gold: Sequence[GoldLinks]
) -> dict[str, Tally]:
    """Tallies of `aer`, `precision` and `recall` of predicted links."""
    same_count(predicted=predicted, gold=gold)
    counts = np.asarray(
        [_counts(set(links), *sentence) for links, sentence in zip(predicted, gold, strict=True)],
        dtype=np.float64,
    ).reshape(len(predicted), 4)
    return {
        "aer": Tally("AER", counts, _error_rate, unit="share"),
        "precision": Tally("alignment precision", counts, _precision, unit="share"),
        "recall": Tally("alignment recall", counts, _recall, unit="share"),
    }


def alignment_error_rate(predicted: Sequence[Collection[Link]], gold: Sequence[GoldLinks]) -> Tally:
    """AER of predicted links; lower is better."""
    return alignment_metrics(predicted, gold)["aer"]


def _counts(
    predicted: set[Link], sure: frozenset[Link], possible: frozenset[Link]
) -> tuple[int, int, int, int]:
    return len(predicted & sure), len(predicted & (possible | sure)), len(predicted), len(sure)


def _precision(sums: Float[np.ndarray, "r 4"]) -> Float[np.ndarray, " r"]:
    return ratio(sums[:, 1], sums[:, 2], empty=0.0)


def _recall(sums: Float[np.ndarray, "r 4"]) -> Float[np.ndarray, " r"]:
    return ratio(sums[:, 0], sums[:, 3], empty=0.0)


def _error_rate(sums: Float[np.ndarray, "r 4"]) -> Float[np.ndarray, " r"]:
    return 1 - ratio(sums[:, 0] + sums[:, 1], sums[:, 2] + sums[:, 3])
