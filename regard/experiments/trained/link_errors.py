"""Word links that are read from weights, compared with known ones."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.inference.align.extract_links import argmax
from regard.metrics import metric_value
from regard.metrics.alignment import GoldLinks, alignment_error_rate


def gold_links(pairs: Sequence[Any]) -> list[GoldLinks]:
    """The known links of built-in pairs; all are sure."""
    return [GoldLinks(frozenset(pair.links), frozenset(pair.links)) for pair in pairs]


def error_and_entropy(weights: Sequence[np.ndarray], gold: list[GoldLinks]) -> tuple[float, float]:
    """AER of the largest weight per target word, and the mean entropy of the rows in bits."""
    error = metric_value(alignment_error_rate([argmax(one) for one in weights], gold))
    rows = np.concatenate([one.ravel() * np.log2(one.ravel() + 1e-12) for one in weights])
    return error, -float(rows.sum()) / sum(len(one) for one in weights)


def diagonal(pairs: Sequence[Any]) -> list[np.ndarray]:
    """Weights that link each target word to the source word at the same relative place."""
    maps = []
    for pair in pairs:
        source, target = len(pair.source.split()), len(pair.target.split())
        nearest = np.round(np.linspace(0, source - 1, target)).astype(int)
        maps.append(np.eye(source)[nearest])
    return maps
