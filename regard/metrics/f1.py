"""F1 of labels, one or several per sentence: micro over all decisions, macro over labels.

F1 = 2PR / (P + R) = 2 · correct / (predicted + gold), and 0 where nothing is predicted or gold.
"""

from collections.abc import Collection, Hashable, Sequence

import numpy as np
from jaxtyping import Float

from regard.metrics.tally import Statistics, Tally, ratio, same_count

Labels = Sequence[Collection[Hashable]]
MIN_OF_LABEL = 5
"""Examples of every label that an interval of macro F1 needs."""


def macro_f1(
    predicted: Sequence[Hashable],
    gold: Sequence[Hashable],
    labels: Sequence[Hashable] | None = None,
) -> Tally:
    """F1 of each label, averaged over the labels that occur among the predicted or gold ones.

    Name all `labels` where tallies of several batches are to be joined.

    >>> from regard.metrics import metric_value
    >>> metric_value(macro_f1(["a", "a", "b"], ["a", "b", "b"]))
    0.666...
    """
    return multilabel_macro_f1([{one} for one in predicted], [{one} for one in gold], labels)


def multilabel_macro_f1(
    predicted: Labels, gold: Labels, labels: Sequence[Hashable] | None = None
) -> Tally:
    """Macro-F1 where a sentence has any number of labels."""
    statistics, names = _counts_by_label(predicted, gold, labels)

    def obstacle(counts: Statistics) -> str:
        occurring = counts.sum(0).reshape(-1, 3)
        for name, (_, guesses, examples) in zip(names, occurring, strict=True):
            if guesses + examples > 0 and examples < MIN_OF_LABEL:
                return (
                    f"label {name!r} has {examples:.0f} examples: an interval needs {MIN_OF_LABEL}"
                )
        return ""

    return Tally("macro F1", statistics, _macro, unit="f1", obstacle=obstacle)


def multilabel_micro_f1(predicted: Labels, gold: Labels) -> Tally:
    """Micro-F1 where a sentence has any number of labels: all decisions in one count."""
    return Tally("micro F1", overlaps(predicted, gold), f1, unit="f1")


def overlaps(predicted: Labels, gold: Labels) -> Statistics:
    """For each sentence how many things are predicted and gold, predicted, gold."""
    same_count(predicted=predicted, gold=gold)
    pairs = [(set(ours), set(theirs)) for ours, theirs in zip(predicted, gold, strict=True)]
    counts = [(len(ours & theirs), len(ours), len(theirs)) for ours, theirs in pairs]
    return np.asarray(counts, dtype=np.float64).reshape(len(pairs), 3)


def precision(sums: Float[np.ndarray, "*r 3"]) -> Float[np.ndarray, "*r"]:
    """correct / predicted, from [correct, predicted, gold]."""
    return ratio(sums[..., 0], sums[..., 1], empty=0.0)


def recall(sums: Float[np.ndarray, "*r 3"]) -> Float[np.ndarray, "*r"]:
    """correct / gold, from [correct, predicted, gold]."""
    return ratio(sums[..., 0], sums[..., 2], empty=0.0)


def f1(sums: Float[np.ndarray, "*r 3"]) -> Float[np.ndarray, "*r"]:
    """2 · correct / (predicted + gold), from [correct, predicted, gold]."""
    return ratio(2 * sums[..., 0], sums[..., 1] + sums[..., 2], empty=0.0)


def _counts_by_label(
    predicted: Labels, gold: Labels, labels: Sequence[Hashable] | None
) -> tuple[Statistics, list[Hashable]]:
    """[correct, predicted, gold] of each label in turn, one row per sentence; the labels."""
    n = same_count(predicted=predicted, gold=gold)
    occurring = [label for group in [*gold, *predicted] for label in group]
    column = {label: i for i, label in enumerate(dict.fromkeys(labels or occurring))}
    unlisted = [label for label in occurring if label not in column]
    if unlisted:
        raise ValueError(f"label {unlisted[0]!r} is not among the labels {list(column)}")
    counts = np.zeros((n, len(column), 3))
    for row, ours, theirs in zip(counts, map(set, predicted), map(set, gold), strict=True):
        row[[column[label] for label in ours & theirs], 0] = 1
        row[[column[label] for label in ours], 1] = 1
        row[[column[label] for label in theirs], 2] = 1
    return counts.reshape(n, 3 * len(column)), list(column)


def _macro(sums: Float[np.ndarray, "r s"]) -> Float[np.ndarray, " r"]:
    by_label = sums.reshape(len(sums), sums.shape[1] // 3, 3)
    occurring = (by_label[..., 1:].sum(-1) > 0).sum(-1).astype(np.float64)
    return ratio(f1(by_label).sum(-1), occurring, empty=0.0)
