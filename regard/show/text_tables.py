"""Tables for the terminal: aligned columns, folded into blocks where they are too wide."""

import shutil
from collections.abc import Sequence

from regard.show.text_width import align_left, align_right, display_width, truncate

GAP = 2
"""Spaces between columns."""
MIN_FIRST = 16
"""Columns of the terminal to which the first column shrinks at most."""


def terminal_width(otherwise: int = 10_000) -> int:
    """The width of the terminal, in columns; `otherwise` if the output is a file or a pipe."""
    return shutil.get_terminal_size((otherwise, 24)).columns


def fit_table(rows: Sequence[Sequence[str]], width: int, *, right: bool = True) -> list[str]:
    """Rows as aligned columns, the first to the left and the others to the right (if `right`).

    What is wider than `width` is folded: each block of lines repeats the first column, which is
    shortened only if nothing else would fit beside it.

    >>> print("\\n".join(fit_table([("", "loss", "BLEU"), ("small", "1.5", "30.0")], 14)))
           loss
    small   1.5
    <BLANKLINE>
           BLEU
    small  30.0
    """
    widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    widest = max(widths[1:], default=0)
    first = min(widths[0], max(MIN_FIRST, width - GAP - widest))
    names = [align_left(truncate(row[0], first), first) for row in rows]
    align = align_right if right else align_left
    lines: list[str] = []
    for start, end in _blocks(widths[1:], width - first):
        lines += [""] if lines else []
        for name, row in zip(names, rows, strict=True):
            pairs = zip(row[1:][start:end], widths[1:][start:end], strict=True)
            cells = "".join(" " * GAP + align(cell, wide) for cell, wide in pairs)
            lines.append(f"{name}{cells}".rstrip())
    return lines


def _blocks(widths: Sequence[int], room: int) -> list[tuple[int, int]]:
    """The columns of each block, as start and end: as many as fit, and evenly filled."""
    count = max(1, -(-sum(wide + GAP for wide in widths) // max(1, room)))
    while True:
        share = -(-len(widths) // count)
        blocks = [(i, min(i + share, len(widths))) for i in range(0, len(widths), max(1, share))]
        fits = all(sum(wide + GAP for wide in widths[i:j]) <= room for i, j in blocks)
        if fits or share <= 1:
            return blocks or [(0, 0)]
        count += 1
