"""Weights of classes in the loss, so that rare labels count as much as frequent ones."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

SKEWED = 5
"""Labels are skewed if the most frequent one has this many times the examples of the rarest."""


def balanced_weights(counts: Sequence[int]) -> Float[Tensor, "l"]:
    """w_c = n / (labels · n_c): each label weighs the same in all, and examples 1 on average.

    King & Zeng, 2001, https://doi.org/10.1093/oxfordjournals.pan.a004868

    >>> balanced_weights([30, 10])
    tensor([0.6667, 2.0000])
    """
    known = torch.tensor(counts, dtype=torch.float64).clamp(min=1)
    return (sum(counts) / (len(counts) * known)).float()


def positive_weights(counts: Sequence[int], examples: int) -> Float[Tensor, "l"]:
    """Weights of texts that have a label, beside 1 for those without it: (n - n_c) / n_c.

    >>> positive_weights([30, 10], 40)
    tensor([0.3333, 3.0000])
    """
    known = torch.tensor(counts, dtype=torch.float64).clamp(min=1)
    return ((examples - known).clamp(min=1) / known).float()


def count_labels(rows: Sequence[np.ndarray], labels: int) -> list[int]:
    """How many examples have each label, by its number.

    >>> count_labels([np.array([0]), np.array([0, 2])], 3)
    [2, 0, 1]
    """
    numbers = np.concatenate([np.zeros(0, np.int64), *rows])
    counts: list[int] = np.bincount(numbers, minlength=labels).tolist()
    return counts


def skew_note(counts: Mapping[str, int], class_weights: str) -> str:
    """What to know about labels of which some are far rarer than others; empty if none is.

    >>> skew_note({"spam": 10, "ham": 90}, "none").partition(";")[0]
    "the labels are unbalanced: 'ham' is 9.0 times as frequent as 'spam'"
    """
    least, most = min(counts, key=lambda n: counts[n]), max(counts, key=lambda n: counts[n])
    times = counts[most] / max(1, counts[least])
    if times < SKEWED:
        return ""
    text = f"the labels are unbalanced: {most!r} is {times:.1f} times as frequent as {least!r}"
    if class_weights == "balanced":
        return f"{text}; the loss gives all labels the same weight"
    return f"{text}; --class-weights balanced gives all labels the same weight in the loss"


def missing_note(counts: Mapping[str, int], valid: Mapping[str, int]) -> str:
    """Which labels the validation data lacks, so that its metrics say nothing about them.

    >>> missing_note({"spam": 2, "ham": 90}, {"ham": 5}).partition(":")[0]
    "the validation data (5 examples) has no text with the label 'spam'"
    """
    missing = [repr(name) for name in counts if name not in valid]
    if not missing:
        return ""
    more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
    which = f"label{'s' * (len(missing) > 1)} {', '.join(missing[:3])}{more}"
    examples = sum(valid.values())
    size = f"{examples} example{'s' * (examples != 1)}"
    return (
        f"the validation data ({size}) has no text with the {which}: its metrics do not show how "
        "well such texts are classified; add data, or choose validation data with --valid"
    )
