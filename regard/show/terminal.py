"""Looks and traces in the terminal: shaded blocks, with the numbers."""

import numpy as np

from regard.looks import Look
from regard.show.choosing import choose, label, sums
from regard.show.colours import ink, rgb
from regard.show.lettering import columns, fit, left, printable, right
from regard.trace import Trace

SHADES = " ░▒▓█"
WORD = 16
"""Columns that the name of a row may take."""


def shaded(look: Look, width: int = 100, colour: bool = False) -> str:
    """The matrix as shaded blocks, a row a query, as many keys as fit; what is cut is said.

    With `colour` the cells have a background of their weight's colour, for terminals that can.

    >>> from regard.looks import from_arrays
    >>> print(shaded(from_arrays([[0.8, 0.2]], ["chat"], ["cat", "the"])))
            cat   the
    chat  █ .80 ░ .20
    """
    names = [fit(word, WORD) for word in look.queries]
    margin = max([columns(name) for name in names] + [4])
    cell = max([5, *(min(columns(printable(key)), 10) for key in look.keys)])
    fitting = max(1, (width - margin - 1) // (cell + 1))
    cut = len(look.keys) - fitting
    head = " ".join(right(fit(key, cell), cell) for key in look.keys[:fitting])
    lines = [f"{' ' * margin} {head}".rstrip()]
    for name, row in zip(names, look.weights, strict=True):
        cells = (_cell(float(weight), cell, colour) for weight in row[:fitting])
        lines.append(f"{left(name, margin)} {' '.join(cells)}")
    if cut > 0:
        lines.append(fit(f"(+{cut} more keys to the right)", width))
    return "\n".join(lines)


def summary(look: Look, width: int = 100, top: int = 3, colour: bool = False) -> str:
    """One line a query: the words it looked at most, with their numbers; for any length."""
    names = [fit(word, WORD) for word in look.queries]
    margin = max([columns(name) for name in names] + [4])
    lines = []
    for name, row in zip(names, look.weights, strict=True):
        order = np.argsort(-row, kind="stable")[:top]
        line = left(name, margin) + "  "
        for column in order:
            word, weight = fit(look.keys[column], WORD), float(row[column])
            if weight <= 0 or columns(line) + columns(word) + 9 > width:
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
    """A whole trace: the texts, what the model made of them, and one look of each name."""
    lines = [f"{fit(side, 12)}: {fit(part.text, width - 14)}" for side, part in trace.sides.items()]
    if trace.output and all(trace.output != side.text for side in trace.sides.values()):
        lines.append(f"output: {fit(trace.output, width - 14)}")
    names = dict.fromkeys(look.name for look in trace.looks)
    for one in [name] if name is not None else names:
        look, said = choose(trace, one, layer, head)
        lines += ["", fit(f"{label(look, said)} ({sums(look)})", width), ""]
        wide = len(look.keys) * 6 + WORD > max(width, 60) or look.weights.size > 2000
        lines.append((summary if wide else shaded)(look, width=width, colour=colour))
    if trace.looks:
        lines += ["", fit("Weights show where it looked, not why it answered.", width)]
    else:
        lines += ["", fit("This model took no looks: it has no attention to draw.", width)]
    return "\n".join(lines)


def _level(weight: float) -> int:
    return max(0, min(len(SHADES) - 1, round(weight * len(SHADES))))


def _number(weight: float) -> str:
    number = f"{weight:.2f}"
    return number[1:] if number.startswith("0") else number[:3]


def _cell(weight: float, width: int, colour: bool) -> str:
    text = right(f"{SHADES[_level(weight)]} {_number(weight)}", width)
    if not colour:
        return text
    red, green, blue = rgb(weight)
    letters = "38;5;16" if ink(weight) != "#ffffff" else "38;5;231"
    number = right(_number(weight), width)
    return f"\x1b[48;2;{red};{green};{blue}m\x1b[{letters}m{number}\x1b[0m"
