"""Accuracy and exact-match rate: how often the answer is the right one."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from regard.metrics.tally import Tally, ratio, rows, same_count, same_lengths


def accuracy(predicted: Sequence[Hashable], gold: Sequence[Hashable]) -> Tally:
    """The share of sentences whose label is right."""
    return _rate("accuracy", predicted, gold)


def exact_match(predicted: Sequence[Any], gold: Sequence[Any]) -> Tally:
    """The share of outputs (texts, or sequences of tokens) that equal the gold output entirely.

    >>> from regard.metrics import metric_value
    >>> metric_value(exact_match([[3, 1], [2]], [(3, 1), (2, 2)]))
    0.5
    """
    return _rate("exact match", [_plain(o) for o in predicted], [_plain(o) for o in gold])


def token_accuracy(
    predicted: Sequence[Sequence[Hashable]], gold: Sequence[Sequence[Hashable]]
) -> Tally:
    """The share of tokens whose tag is right; sentences count by their length."""
    same_lengths(predicted, gold)
    right = [sum(map(_equal, p, g)) for p, g in zip(predicted, gold, strict=True)]
    return Tally(
        "token accuracy", rows([right, [len(tags) for tags in gold]]), _share, unit="share"
    )


def symbol_accuracy(
    predicted: Sequence[Sequence[Hashable]], gold: Sequence[Sequence[Hashable]]
) -> Tally:
    """The share of gold symbols that stand at their place; predictions may have any length.

    >>> from regard.metrics import metric_value
    >>> metric_value(symbol_accuracy([["a", "b", "c"], ["a"]], [["a", "c"], ["a", "b"]]))
    0.5
    """
    same_count(predicted=predicted, gold=gold)
    aligned = [
        [*symbols[: len(right)], *[None] * (len(right) - len(symbols))]
        for symbols, right in zip(predicted, gold, strict=True)
    ]
    return token_accuracy(aligned, gold)


def _rate(name: str, predicted: Sequence[Any], gold: Sequence[Any]) -> Tally:
    n = same_count(predicted=predicted, gold=gold)
    right = [_equal(p, g) for p, g in zip(predicted, gold, strict=True)]
    return Tally(name, rows([right, np.ones(n)]), _share, unit="share")


def _share(sums: Float[np.ndarray, "r 2"]) -> Float[np.ndarray, " r"]:
    return ratio(sums[:, 0], sums[:, 1])


def _equal(left: Any, right: Any) -> bool:
    return bool(left == right)


def _plain(output: Any) -> Any:
    """Lists, tuples and arrays with the same tokens are the same output."""
    return output if isinstance(output, str) else tuple(output)
