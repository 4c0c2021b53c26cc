"""Confusion matrices as SVG: rows are gold classes, columns predicted ones."""

from collections.abc import Sequence

import numpy as np

from regard.show.colours import QUIET, RULE, colour, text_colour
from regard.show.svg_frame import label_width, pixel_image, svg_document, svg_text

MAX_NUMBERED, MAX_LABELLED = 24, 80
"""Numbers of classes up to which cells have their count, and rows their label."""


def confusion_svg(
    labels: Sequence[str],
    counts: Sequence[Sequence[int]],
    *,
    unit: str = "examples",
    title: str = "Confusion",
) -> str:
    """The matrix as SVG: each row is shaded by its shares, cells show counts, zeros are blank."""
    table, n = np.array(counts, dtype=np.float64), len(labels)
    shares = table / np.maximum(table.sum(1, keepdims=True), 1.0)
    widest = len(f"{int(table.max(initial=0))}")
    cell = max(40.0, 8.0 * widest + 12) if n <= MAX_NUMBERED else max(2.0, min(16.0, 960 / n))
    size = min(14.0, cell * 0.92)
    every = 1 if n <= MAX_LABELLED else -(-n // MAX_LABELLED)
    size = max(size, min(11.0, cell * every * 0.92))
    shown = range(0, n, every)
    names = tuple(labels)
    left, above = 46 + label_width(names, size) + 10, 82 + 0.74 * label_width(names, size)
    side = cell * n
    parts = [
        svg_text(left + side / 2, 58, "predicted", anchor="middle", size=12, fill=QUIET),
        svg_text(28, above + side / 2, "gold", anchor="middle", size=12, fill=QUIET, turned=-90),
    ]
    for i in shown:
        middle = cell * (i + 0.5)
        parts.append(
            svg_text(left + middle + size * 0.3, above - 8, labels[i], size=size, turned=-45)
        )
        parts.append(
            svg_text(left - 10, above + middle + size * 0.36, labels[i], size=size, anchor="end")
        )
    if n <= MAX_NUMBERED:
        parts += _numbered_cells(table, shares, left, above, cell)
    else:
        parts.append(pixel_image(left, above, side, side, shares))
        parts.append(
            f'<rect x="{left:g}" y="{above:g}" width="{side:g}" height="{side:g}" '
            f'fill="none" stroke="{RULE}"/>'
        )
    foot = above + side + 22
    note = f"{int(table.sum()):,} {unit}; shading: share of the gold class"
    parts.append(svg_text(20, foot, note[:28], size=11.5, fill=QUIET).replace(note[:28], note))
    slant = 0.74 * label_width(names[-1:], size)
    width = max(left + side + slant + 24, 40 + 6.6 * len(note))
    correct = int(np.trace(table))
    about = f"{n} gold classes in rows, predicted ones in columns; {correct} {unit} are correct."
    return svg_document(width, foot + 20, title, parts, about)


def _numbered_cells(
    table: np.ndarray, shares: np.ndarray, left: float, above: float, cell: float
) -> list[str]:
    parts = []
    for (row, column), count in np.ndenumerate(table):
        x, y, share = left + cell * column, above + cell * row, float(shares[row, column])
        parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{cell - 2:g}" height="{cell - 2:g}" rx="2" '
            f'fill="{colour(share)}"/>'
        )
        if count:
            at = (x + (cell - 2) / 2, y + (cell - 2) / 2 + 4)
            fill = text_colour(share)
            parts.append(svg_text(*at, f"{count:.0f}", anchor="middle", size=12, fill=fill))
    return parts
