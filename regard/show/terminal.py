"""Looks and traces in the terminal: shaded blocks, with the numbers."""

from collections.abc import Sequence

import numpy as np

from regard.show.colours import rgb, text_colour
from regard.show.select import no_attention, row_sums, select_look
from regard.show.text_width import (
    align_left,
    align_right,
    display_width,
    printable,
    truncate,
    wrap,
)
from regard.trace import Trace
from regard.trace.look import Look

SHADES = " ░▒▓█"
LABEL_WIDTH = 16
"""Width of row labels, in columns."""
CELL_WIDTH, KEY_WIDTH = 5, 10
"""Width of a cell: that of its number and shade, and the largest."""
MAX_BLOCKS, MAX_TEXT_LINES = 4, 6
"""Blocks of rows into which the keys of a matrix are folded; lines of a text above it."""


def shaded_matrix(look: Look, width: int = 100, colour: bool = False) -> str:
    """The matrix as shaded blocks, one row per query.

    A column is as wide as its key, up to ten characters; keys are abbreviated if all of them fit
    beside each other then. Otherwise they are folded into further blocks of rows below; a last line
    says how many do not fit there either. With `colour`, cells have the colour of their weight as
    background, in 24-bit ANSI codes.

    >>> from regard.trace.look import from_arrays
    >>> print(shaded_matrix(from_arrays([[0.8, 0.2]], ["chat"], ["cat", "the"])))
            cat   the
    chat  █ .80 ░ .20
    """
    names = [truncate(word, LABEL_WIDTH) for word in look.queries]
    margin = max([display_width(name) for name in names] + [4])
    cells = _cell_widths(look.keys, width - margin)
    blocks = _fold(cells, width - margin)
    lines: list[str] = []
    for start, end in blocks[:MAX_BLOCKS]:
        heads = (
            align_right(truncate(key, cell), cell)
            for key, cell in zip(look.keys[start:end], cells[start:end], strict=True)
        )
        lines += ["", f"{' ' * margin} {' '.join(heads)}".rstrip()]
        for name, row in zip(names, look.weights, strict=True):
            parts = zip(row[start:end], cells[start:end], strict=True)
            row_cells = (_cell(float(weight), cell, colour) for weight, cell in parts)
            lines.append(f"{align_left(name, margin)} {' '.join(row_cells)}")
    left_out = len(look.keys) - (blocks[:MAX_BLOCKS][-1][1] if blocks else 0)
    if left_out > 0:
        lines.append(truncate(f"(+{left_out} more keys to the right)", width))
    return "\n".join(lines[1:])


def _cell_widths(keys: Sequence[str], width: int) -> list[int]:
    """The width of each column."""
    for longest in (KEY_WIDTH, 8, 6, CELL_WIDTH):
        cells = [max(CELL_WIDTH, min(display_width(printable(key)), longest)) for key in keys]
        if sum(cells) + len(cells) <= width:
            return cells
    return [max(CELL_WIDTH, min(display_width(printable(key)), KEY_WIDTH)) for key in keys]


def _fold(cells: Sequence[int], width: int) -> list[tuple[int, int]]:
    """The columns of each block, as start and end: as many as fit, and evenly filled."""
    if not cells:
        return [(0, 0)]
    total = sum(cells) + len(cells)
    count = max(1, -(-total // max(1, width)))
    while True:
        blocks, start, used = [], 0, 0
        room = min(width, -(-total // count) + KEY_WIDTH // 2) if count > 1 else width
        for end, cell in enumerate(cells):
            if end > start and used + cell + 1 > room:
                blocks.append((start, end))
                start, used = end, 0
            used += cell + 1
        blocks.append((start, len(cells)))
        if len(blocks) <= count or room >= width:
            return blocks
        count += 1


def top_keys(look: Look, width: int = 100, top: int = 3, colour: bool = False) -> str:
    """One line per query: the keys with the largest weights; for texts of any length."""
    names = [truncate(word, LABEL_WIDTH) for word in look.queries]
    margin = max([display_width(name) for name in names] + [4])
    lines = []
    for name, row in zip(names, look.weights, strict=True):
        order = np.argsort(-row, kind="stable")[:top]
        line = align_left(name, margin) + "  "
        for column in order:
            word, weight = truncate(look.keys[column], LABEL_WIDTH), float(row[column])
            if weight <= 0 or display_width(line) + display_width(word) + 9 > width:
                break
            line += f"{SHADES[_level(weight)]} {word} {_number(weight)}   "
        lines.append(line.rstrip())
    return "\n".join(lines)


def report(
    trace: Trace,
    width: int = 100,
    colour: bool = False,
    *,
    name: str | None = None,
    layer: int | None = None,
    head: int | None = None,
) -> str:
    """A whole trace: the texts, the output, and one look of each name."""
    lines = []
    for side, part in trace.sides.items():
        if part.text.strip():  # queries of pooling, steps and slots of a memory have no text
            lines += _named_text(truncate(side, 12), part.text, width)
    if trace.output and all(trace.output != side.text for side in trace.sides.values()):
        lines += _named_text("output", trace.output, width)
    names = dict.fromkeys(look.name for look in trace.looks)
    for look_name in [name] if name is not None else names:
        look, note = select_look(trace, look_name, layer, head)
        lines += ["", truncate(f"{look.title(note)} ({row_sums(look)})", width), ""]
        room = 2 * (max(width, 60) - LABEL_WIDTH)  # two blocks of columns
        wide = len(look.keys) * (CELL_WIDTH + 1) > room or look.weights.size > 2000
        lines.append((top_keys if wide else shaded_matrix)(look, width=width, colour=colour))
    if trace.looks:
        lines += ["", truncate("Weights show where the model looked, not why it answered.", width)]
        if isinstance(share := trace.prediction.get("network_weight"), float):
            voting = f"N-grams vote beside the network, whose logits are multiplied by {share:.2g}."
            lines += wrap(voting, width)
    else:
        message = no_attention(trace)
        lines += ["", f"{message[0].upper()}{message[1:]}."]
    return "\n".join(lines)


def _named_text(name: str, text: str, width: int) -> list[str]:
    """A text after its name, in lines of the terminal; a long one ends in an ellipsis."""
    room = max(width - len(name) - 2, 20)
    first, *others = wrap(truncate(text, MAX_TEXT_LINES * room), room)
    return [f"{name}: {first}", *(" " * (len(name) + 2) + line for line in others)]


def _level(weight: float) -> int:
    return max(0, min(len(SHADES) - 1, round(weight * len(SHADES))))


def _number(weight: float) -> str:
    number = f"{weight:.2f}"
    return number[1:] if number.startswith("0") else number[:3]


def _cell(weight: float, width: int, colour: bool) -> str:
    text = align_right(f"{SHADES[_level(weight)]} {_number(weight)}", width)
    if not colour:
        return text
    red, green, blue = rgb(weight)
    letters = "38;5;16" if text_colour(weight) != "#ffffff" else "38;5;231"
    number = align_right(_number(weight), width)
    return f"\x1b[48;2;{red};{green};{blue}m\x1b[{letters}m{number}\x1b[0m"
