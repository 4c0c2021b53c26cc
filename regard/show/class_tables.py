"""Classes in the terminal: precision, recall and F1 of each, and the confusion matrix."""

from collections.abc import Sequence

import numpy as np

from regard.number_format import format_bare_value, format_count, format_value
from regard.show.text_width import align_left, align_right, display_width, truncate

LABEL_WIDTH = 16
"""Largest width of a row label of the confusion matrix, in columns."""
COLUMN_WIDTH = 10
"""Largest width of a column of the confusion matrix."""
MOST_FREQUENT = 10
"""Confusions that are listed where the matrix does not fit."""

Counts = Sequence[Sequence[int]]


def class_table(kind: str, rows: Sequence[tuple[str, float, float, float, int]]) -> str:
    """One line per class: its name, precision, recall, F1 and support.

    >>> print(class_table("label", [("good", 0.5, 1.0, 0.667, 1200)]))
    label  precision %  recall %     F1  support
    good          50.0     100.0   66.7    1,200
    """
    names = [truncate(row[0], 30) for row in rows]
    margin = max(display_width(name) for name in [*names, kind])
    lines = [f"{kind:{margin}}  precision %  recall %     F1  support"]
    for name, (_, precision, recall, f1, support) in zip(names, rows, strict=True):
        shares = [format_bare_value(value, "share") for value in (precision, recall)]
        lines.append(
            f"{align_left(name, margin)}  {shares[0]:>11}  {shares[1]:>8}"
            f"  {format_value(f1, 'f1'):>5}  {format_count(support):>7}"
        )
    return "\n".join(lines)


def confusion_text(labels: Sequence[str], counts: Counts, width: int = 100) -> str:
    """The matrix with one row per gold class; where it does not fit, the most frequent confusions.

    >>> print(confusion_text(["no", "yes"], [[7, 1], [0, 12]]))
    gold ↓  predicted →
               no  yes
    no          7    1
    yes         ·   12
    """
    margin = max(7, *(min(display_width(label), LABEL_WIDTH) for label in labels))
    cells = [
        max(4, min(display_width(label), COLUMN_WIDTH), *(len(str(row[i])) for row in counts))
        for i, label in enumerate(labels)
    ]
    if margin + sum(cells) + len(cells) > width:
        return frequent_confusions(labels, counts, width)
    heads = zip(labels, cells, strict=True)
    lines = [
        align_left("gold ↓", margin) + " predicted →",
        " " * margin
        + "".join(" " + align_right(truncate(label, cell), cell) for label, cell in heads),
    ]
    for label, row in zip(labels, counts, strict=True):
        numbers = zip(row, cells, strict=True)
        line = "".join(f" {count or '·':>{cell}}" for count, cell in numbers)
        lines.append(align_left(truncate(label, margin), margin) + line)
    return "\n".join(lines)


def frequent_confusions(labels: Sequence[str], counts: Counts, width: int = 100) -> str:
    """The most frequent wrong predictions, one per line.

    >>> print(frequent_confusions(["no", "yes"], [[7, 1], [0, 12]]))
    most frequent confusions (gold → predicted):
         1  no → yes
    """
    wrong = np.array(counts, dtype=np.int64)
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:MOST_FREQUENT]
    pairs = [divmod(int(place), len(labels)) for place in order]
    lines = [
        truncate(f"{wrong[gold, guess]:>6}  {labels[gold]} → {labels[guess]}", width)
        for gold, guess in pairs
        if wrong[gold, guess]
    ]
    return "\n".join(["most frequent confusions (gold → predicted):", *(lines or ["  none"])])
