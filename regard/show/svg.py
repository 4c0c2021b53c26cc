"""Looks as vector pictures, fit for a paper: matrix, links, shaded text, grid of heads."""

import numpy as np

from regard.looks import Look
from regard.show.choosing import label, sums
from regard.show.colours import ACCENT, QUIET, RULE, colour, ink
from regard.show.drawing import STEP, frame, length, peak, pixels, safe, scale, text
from regard.show.lettering import columns, fit
from regard.trace import Trace

TOP = 50
"""Pixels above everything but the title."""
NUMBERED = 26
"""A cell at least this wide shows its number."""
DRAWN = 10_000
"""A matrix of more cells than this is embedded as pixels."""


def matrix(look: Look, title: str = "", said: str = "") -> str:
    """The matrix as SVG: rows are queries, columns keys; darker is more, with a scale."""
    rows, wide = look.weights.shape
    cell = _cell_size(max(rows, wide, 1))
    size = min(14.0, cell * 0.92)
    named = size >= 5
    margin = 20 + (length(look.queries, size) + 10 if named else 0)
    above = TOP + (0.74 * length(look.keys, size) + 14 if named else 4)
    largest = peak(look.weights)
    parts = []
    if named:
        for column, key in enumerate(look.keys):
            x = margin + cell * (column + 0.5)
            parts.append(text(x + size * 0.3, above - 8, key, size=size, turned=-45))
        for row, query in enumerate(look.queries):
            y = above + cell * (row + 0.5) + size * 0.36
            parts.append(text(margin - 10, y, query, size=size, anchor="end"))
    if rows * wide > DRAWN:
        parts.append(pixels(margin, above, cell * wide, cell * rows, look.weights / largest))
    else:
        gap = 2 if cell >= 16 else 0
        for (row, column), weight in np.ndenumerate(look.weights):
            x, y, share = margin + cell * column, above + cell * row, float(weight) / largest
            parts.append(
                f'<rect x="{x:g}" y="{y:g}" width="{cell - gap:g}" height="{cell - gap:g}" '
                f'rx="{gap:g}" fill="{colour(share)}"/>'
            )
            if cell >= NUMBERED:
                at = (x + (cell - gap) / 2, y + (cell - gap) / 2 + 4)
                number = text(*at, f"{weight:.2f}", anchor="middle", size=11.5, fill=ink(share))
                parts.append(number)
    if not named:
        parts.append(
            f'<rect x="{margin:g}" y="{above:g}" width="{cell * wide:g}" '
            f'height="{cell * rows:g}" fill="none" stroke="{RULE}"/>'
        )
    foot = above + cell * rows + 18
    parts += scale(margin, foot, largest, said or sums(look))
    slant = 0.74 * length(look.keys[-1:], size) if named and look.keys else 0
    width = margin + max(cell * wide + slant, 160 + 6.6 * len(said or sums(look))) + 24
    about = f"{rows} queries in rows, {wide} keys in columns; the largest weight is {largest:.3f}."
    return frame(width, foot + 42, title or label(look), parts, about)


def links(look: Look, title: str = "", said: str = "", threshold: float = 0.02) -> str:
    """Curves from each query, at the left, to the keys it looked at; thicker is more."""
    rows, keys = look.weights.shape
    step = 28 if max(rows, keys) <= 60 else 16
    size = 14 if step == 28 else 11
    tall = step * max(rows, keys, 1)
    begin = 20 + length(look.queries, size) + 12
    end = begin + 220
    offsets = [TOP + 14 + (tall - step * n) / 2 for n in (rows, keys)]
    largest = peak(look.weights)
    parts, drawn = [], np.argwhere(look.weights >= threshold * largest)
    strengths = look.weights[drawn[:, 0], drawn[:, 1]] / largest
    for index in np.argsort(strengths, kind="stable"):
        row, column = drawn[index]
        share = float(strengths[index])
        y, z = offsets[0] + step * (row + 0.5), offsets[1] + step * (column + 0.5)
        middle = (begin + end) / 2
        parts.append(
            f'<path d="M{begin:g} {y:g}C{middle:g} {y:g} {middle:g} {z:g} {end:g} {z:g}" '
            f'fill="none" stroke="{colour(0.25 + 0.75 * share)}" '
            f'stroke-width="{0.6 + 4.4 * share:.2f}" stroke-opacity="{0.25 + 0.7 * share:.2f}" '
            f'stroke-linecap="round"/>'
        )
    for row, word in enumerate(look.queries):
        y = offsets[0] + step * (row + 0.5) + size * 0.36
        parts.append(text(begin - 10, y, word, size=size, anchor="end"))
    for column, word in enumerate(look.keys):
        y = offsets[1] + step * (column + 0.5) + size * 0.36
        parts.append(text(end + 10, y, word, size=size))
    foot = TOP + 14 + tall + 18
    cut = f"{said or sums(look)}; links below {threshold:.0%} of the largest are left out"
    parts += scale(20, foot, largest, cut)
    width = max(end + 10 + length(look.keys, size) + 24, 200 + 6.6 * len(cut))
    return frame(width, foot + 42, title or label(look), parts)


def text_shading(look: Look, row: int = 0, title: str = "", said: str = "") -> str:
    """The keys as running text, each shaded by how much one query looked at it."""
    if not 0 <= row < len(look.queries):
        raise ValueError(f"row {row} is not one of the {len(look.queries)} queries")
    weights = look.weights[row]
    largest = peak(weights)
    line, wide = 30, 640.0
    x, y, parts = 20.0, TOP + 26.0, []
    same = look.asking == look.asked
    parts.append(text(20, TOP + 8, "where it looks from:", size=11.5, fill=QUIET))
    parts.append(text(146, TOP + 8, look.queries[row], size=12, weight=600, fill=ACCENT))
    for place, (word, weight) in enumerate(zip(look.keys, weights, strict=True)):
        span = STEP * columns(fit(word, 28)) + 8
        if x + span > wide and x > 20:
            x, y = 20.0, y + line
        share = float(weight) / largest
        outline = f' stroke="{ACCENT}" stroke-width="2"' if same and place == row else ""
        parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{span:g}" height="24" rx="4" '
            f'fill="{colour(share)}"{outline}/>'
        )
        at = (x + span / 2, y + 16.5)
        parts.append(text(*at, word, anchor="middle", fill=ink(share)))
        x += span + 3
    foot = y + line + 18
    parts += scale(20, foot, largest, said or sums(look))
    return frame(wide + 20, foot + 42, title or label(look), parts)


def head_grid(trace: Trace, name: str | None = None, title: str = "") -> str:
    """A thumbnail of every head: layers are rows, heads columns; each has its own darkest."""
    chosen = [look for look in trace.looks if name is None or look.name == name]
    chosen = [look for look in chosen if look.name == chosen[0].name]
    layers = sorted({-1 if look.layer is None else look.layer for look in chosen})
    heads = sorted({-1 if look.head is None else look.head for look in chosen})
    size, gap = max(36, min(110, 900 // max(1, len(heads)))), 10
    parts = []
    for look in chosen:
        row = layers.index(-1 if look.layer is None else look.layer)
        column = heads.index(-1 if look.head is None else look.head)
        at_x, at_y = 74 + (size + gap) * column, TOP + 24 + (size + gap) * row
        largest = peak(look.weights)
        parts.append(pixels(at_x, at_y, size, size, look.weights / largest))
        parts.append(
            f'<rect x="{at_x}" y="{at_y}" width="{size}" height="{size}" '
            f'fill="none" stroke="{RULE}">'
            f"<title>{safe(label(look), 120)}: largest {largest:.2f}</title></rect>"
        )
    for row, layer in enumerate(layers):
        said = f"layer {layer}" if layer >= 0 else "all"
        y = TOP + 24 + (size + gap) * row + size / 2 + 4
        parts.append(text(64, y, said, size=12, anchor="end", fill=QUIET))
    for column, head in enumerate(heads):
        said = f"head {head}" if head >= 0 else "all"
        x = 74 + (size + gap) * column + size / 2
        parts.append(
            text(x, TOP + 14, said if size > 50 else said[5:], size=12, anchor="middle", fill=QUIET)
        )
    foot = TOP + 24 + (size + gap) * len(layers) + 12
    most = max((peak(look.weights) for look in chosen), default=1.0)
    parts += scale(74, foot, most, "each head is shaded up to its own largest weight")
    width = max(74 + (size + gap) * len(heads) + 14, 540)
    return frame(width, foot + 42, title or f"{chosen[0].name}: every head", parts)


def _cell_size(longest: int) -> float:
    """Square cells: large with numbers for short texts, down to a pixel for long ones."""
    if longest <= 24:
        return 40.0
    return 24.0 if longest <= 40 else max(1.0, min(16.0, 960 / longest))
