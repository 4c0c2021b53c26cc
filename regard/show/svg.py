"""Looks as SVG pictures for papers: matrix, links, shaded text, grid of heads."""

import numpy as np

from regard.show.colours import ACCENT, QUIET, RULE, colour, text_colour
from regard.show.select import row_sums
from regard.show.svg_frame import (
    COLUMN_WIDTH,
    colour_scale,
    escape_text,
    label_width,
    largest_weight,
    pixel_image,
    svg_document,
    svg_text,
)
from regard.show.text_width import display_width, truncate
from regard.trace import Trace
from regard.trace.look import Look

TOP = 50
"""Room for the title, in pixels."""
NUMBERED_CELL = 26
"""Cells at least this wide show their weight."""
MAX_VECTOR_CELLS = 10_000
"""Matrices with more cells are embedded as an image."""


def matrix(look: Look, title: str = "", note: str = "") -> str:
    """The matrix as SVG: rows are queries, columns keys; darker is more, with a scale."""
    rows, wide = look.weights.shape
    cell = _cell_size(max(rows, wide, 1))
    size = min(14.0, cell * 0.92)
    named = size >= 5  # below that, labels could not be read
    margin = 20 + (label_width(look.queries, size) + 10 if named else 0)
    # column labels are turned by 45°, so they take sin 45° ≈ 0.71 of their width in height
    above = TOP + (0.74 * label_width(look.keys, size) + 14 if named else 4)
    largest = largest_weight(look.weights)
    parts = []
    if named:
        for column, key in enumerate(look.keys):
            x = margin + cell * (column + 0.5)
            parts.append(svg_text(x + size * 0.3, above - 8, key, size=size, turned=-45))
        for row, query in enumerate(look.queries):
            y = above + cell * (row + 0.5) + size * 0.36
            parts.append(svg_text(margin - 10, y, query, size=size, anchor="end"))
    if rows * wide > MAX_VECTOR_CELLS:
        parts.append(pixel_image(margin, above, cell * wide, cell * rows, look.weights / largest))
    else:
        gap = 2 if cell >= 16 else 0
        for (row, column), weight in np.ndenumerate(look.weights):
            x, y, share = margin + cell * column, above + cell * row, float(weight) / largest
            parts.append(
                f'<rect x="{x:g}" y="{y:g}" width="{cell - gap:g}" height="{cell - gap:g}" '
                f'rx="{gap:g}" fill="{colour(share)}"/>'
            )
            if cell >= NUMBERED_CELL:
                at = (x + (cell - gap) / 2, y + (cell - gap) / 2 + 4)
                number = svg_text(
                    *at, f"{weight:.2f}", anchor="middle", size=11.5, fill=text_colour(share)
                )
                parts.append(number)
    if not named:
        parts.append(
            f'<rect x="{margin:g}" y="{above:g}" width="{cell * wide:g}" '
            f'height="{cell * rows:g}" fill="none" stroke="{RULE}"/>'
        )
    foot = above + cell * rows + 18
    parts += colour_scale(margin, foot, largest, note or row_sums(look))
    # the last column label leans out to the right of the matrix
    slant = 0.74 * label_width(look.keys[-1:], size) if named and look.keys else 0
    width = margin + max(cell * wide + slant, 160 + 6.6 * len(note or row_sums(look))) + 24
    about = f"{rows} queries in rows, {wide} keys in columns; the largest weight is {largest:.3f}."
    return svg_document(width, foot + 42, title or look.title(), parts, about)


def links(look: Look, title: str = "", note: str = "", threshold: float = 0.02) -> str:
    """Curves from each query, on the left, to the keys it looked at; thicker means more."""
    rows, keys = look.weights.shape
    step = 28 if max(rows, keys) <= 60 else 16
    size = 14 if step == 28 else 11
    tall = step * max(rows, keys, 1)
    begin = 20 + label_width(look.queries, size) + 12
    end = begin + 220
    # the shorter column is centred beside the longer one
    offsets = [TOP + 14 + (tall - step * n) / 2 for n in (rows, keys)]
    largest = largest_weight(look.weights)
    parts, drawn = [], np.argwhere(look.weights >= threshold * largest)
    strengths = look.weights[drawn[:, 0], drawn[:, 1]] / largest
    # strong links last, on top of weak ones
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
        parts.append(svg_text(begin - 10, y, word, size=size, anchor="end"))
    for column, word in enumerate(look.keys):
        y = offsets[1] + step * (column + 0.5) + size * 0.36
        parts.append(svg_text(end + 10, y, word, size=size))
    foot = TOP + 14 + tall + 18
    cut = f"{note or row_sums(look)}; links below {threshold:.0%} of the largest are not drawn"
    parts += colour_scale(20, foot, largest, cut)
    width = max(end + 10 + label_width(look.keys, size) + 24, 200 + 6.6 * len(cut))
    return svg_document(width, foot + 42, title or look.title(), parts)


def text_shading(look: Look, row: int = 0, title: str = "", note: str = "") -> str:
    """The keys as running text, each shaded by the weight that one query gives it."""
    if not 0 <= row < len(look.queries):
        raise ValueError(f"row {row} is not one of the {len(look.queries)} queries")
    weights = look.weights[row]
    largest = largest_weight(weights)
    line, wide = 30, 640.0
    x, y, parts = 20.0, TOP + 26.0, []
    same = look.query_side == look.key_side
    parts.append(svg_text(20, TOP + 8, "query:", size=11.5, fill=QUIET))
    parts.append(svg_text(62, TOP + 8, look.queries[row], size=12, weight=600, fill=ACCENT))
    for place, (word, weight) in enumerate(zip(look.keys, weights, strict=True)):
        span = COLUMN_WIDTH * display_width(truncate(word, 28)) + 8
        if x + span > wide and x > 20:
            x, y = 20.0, y + line
        share = float(weight) / largest
        outline = f' stroke="{ACCENT}" stroke-width="2"' if same and place == row else ""
        parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{span:g}" height="24" rx="4" '
            f'fill="{colour(share)}"{outline}/>'
        )
        at = (x + span / 2, y + 16.5)
        parts.append(svg_text(*at, word, anchor="middle", fill=text_colour(share)))
        x += span + 3
    foot = y + line + 18
    parts += colour_scale(20, foot, largest, note or row_sums(look))
    return svg_document(wide + 20, foot + 42, title or look.title(), parts)


def head_grid(trace: Trace, name: str | None = None, title: str = "") -> str:
    """A thumbnail of every head, each with its own scale: layers in rows, heads in columns."""
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
        largest = largest_weight(look.weights)
        parts.append(pixel_image(at_x, at_y, size, size, look.weights / largest))
        parts.append(
            f'<rect x="{at_x}" y="{at_y}" width="{size}" height="{size}" '
            f'fill="none" stroke="{RULE}">'
            f"<title>{escape_text(look.title(), 120)}: largest {largest:.2f}</title></rect>"
        )
    for row, layer in enumerate(layers):
        label = f"layer {layer}" if layer >= 0 else "all"
        y = TOP + 24 + (size + gap) * row + size / 2 + 4
        parts.append(svg_text(64, y, label, size=12, anchor="end", fill=QUIET))
    for column, head in enumerate(heads):
        label = f"head {head}" if head >= 0 else "all"
        x = 74 + (size + gap) * column + size / 2
        parts.append(
            svg_text(
                x, TOP + 14, label if size > 50 else label[5:], size=12, anchor="middle", fill=QUIET
            )
        )
    foot = TOP + 24 + (size + gap) * len(layers) + 12
    most = max((largest_weight(look.weights) for look in chosen), default=1.0)
    parts += colour_scale(74, foot, most, "each head is shaded up to its own largest weight")
    width = max(74 + (size + gap) * len(heads) + 14, 540)
    return svg_document(width, foot + 42, title or f"{chosen[0].name}: every head", parts)


def _cell_size(longest: int) -> float:
    """Side of a cell in pixels: large enough for numbers in short texts, down to 1 in long ones."""
    if longest <= 24:
        return 40.0
    return 24.0 if longest <= 40 else max(1.0, min(16.0, 960 / longest))
