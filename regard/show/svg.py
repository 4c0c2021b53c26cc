"""Looks as SVG pictures for papers: matrix, links, shaded text, grid of heads."""

import math

import numpy as np

from regard.show.colours import ACCENT, QUIET, RULE, colour, text_colour
from regard.show.look_names import LOOK_NAMES, look_title
from regard.show.select import row_sums
from regard.show.svg_frame import (
    COLUMN_WIDTH,
    PictureStyle,
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
BLANK = 0.005
"""Weights below it would be written 0.00: their cells have no number."""
MIN_WIDTH = 260
"""Least width of a picture beside its row labels, for the scale and its note."""
SLANT, LINE = 0.71, 1.1
"""sin 45°, by which turned labels come closer, and the height of a line in font sizes."""
DEFAULT_STYLE = PictureStyle()


def matrix(
    look: Look, title: str = "", note: str = "", *, style: PictureStyle = DEFAULT_STYLE
) -> str:
    """The matrix as SVG: rows are queries, columns keys; darker is more, with a scale.

    Both axes have names; labels that would overlap are thinned out, and cells whose weight rounds
    to 0.00 have no number.
    """
    rows, wide = look.weights.shape
    cell = _cell_size(max(rows, wide, 1))
    # column labels are turned by 45°: their distance is cell · sin 45°
    size = min(14.0, max(10.0, cell * SLANT / LINE))
    columns = range(0, wide, max(1, math.ceil(size * LINE / (cell * SLANT))))
    lines = range(0, rows, max(1, math.ceil(size * LINE / cell)))
    margin = 40 + label_width(tuple(look.queries[row] for row in lines), size) + 10
    # turned labels take sin 45° ≈ 0.71 of their width in height
    above = TOP + 18 + 0.74 * label_width(tuple(look.keys[i] for i in columns), size) + 14
    largest = largest_weight(look.weights)
    axes = (
        (margin + cell * wide / 2, TOP + 8, _axis_name(look.key_side, "keys"), 0.0),
        (28, above + cell * rows / 2, _axis_name(look.query_side, "queries"), -90.0),
    )
    parts = [
        svg_text(x, y, name, anchor="middle", size=12, fill=QUIET, turned=turned)
        for x, y, name, turned in axes
    ]
    for column in columns:
        x = margin + cell * (column + 0.5)
        key = look.keys[column]
        parts.append(svg_text(x + size * 0.3, above - 8, key, size=size, turned=-45))
    for row in lines:
        y = above + cell * (row + 0.5) + size * 0.36
        parts.append(svg_text(margin - 10, y, look.queries[row], size=size, anchor="end"))
    if rows * wide > MAX_VECTOR_CELLS:
        parts.append(pixel_image(margin, above, cell * wide, cell * rows, look.weights / largest))
        parts.append(_frame(margin, above, cell * wide, cell * rows))
    else:
        parts += _cells(look, margin, above, cell, largest)
    note = note or row_sums(look)
    if cell >= NUMBERED_CELL and (look.weights < BLANK).any():
        note += f"; cells without a number: below {BLANK:g}"
    foot = above + cell * rows + 18
    # the last column label leans out to the right of the matrix
    slant = 0.74 * label_width(tuple(look.keys[i] for i in columns[-1:]), size)
    width = margin + max(cell * wide + slant, MIN_WIDTH) + 24
    scale, tall = colour_scale(margin, foot, largest, note, width - margin - 20)
    about = f"{rows} queries in rows, {wide} keys in columns; the largest weight is {largest:.3f}."
    return svg_document(width, foot + tall, title or look_title(look), parts + scale, about, style)


def _cells(look: Look, margin: float, above: float, cell: float, largest: float) -> list[str]:
    """The cells of a matrix, with their numbers where they are large enough."""
    parts, gap = [], 2 if cell >= 16 else 0
    for (row, column), weight in np.ndenumerate(look.weights):
        x, y, share = margin + cell * column, above + cell * row, float(weight) / largest
        parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{cell - gap:g}" height="{cell - gap:g}" '
            f'rx="{gap:g}" fill="{colour(share)}"/>'
        )
        if cell >= NUMBERED_CELL and weight >= BLANK:
            at = (x + (cell - gap) / 2, y + (cell - gap) / 2 + 4)
            fill = text_colour(share)
            parts.append(svg_text(*at, f"{weight:.2f}", anchor="middle", size=11.5, fill=fill))
    return parts


def _axis_name(side: str, role: str) -> str:
    return role if side == role else f"{side} ({role})"


def _frame(x: float, y: float, width: float, height: float) -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" '
        f'fill="none" stroke="{RULE}"/>'
    )


def links(
    look: Look,
    title: str = "",
    note: str = "",
    threshold: float = 0.02,
    *,
    style: PictureStyle = DEFAULT_STYLE,
) -> str:
    """Curves from each query, on the left, to the keys it looked at; thicker means more."""
    rows, keys = look.weights.shape
    step = 28 if max(rows, keys) <= 60 else 16
    size = 14 if step == 28 else 11
    tall = step * max(rows, keys, 1)
    begin = 20 + max(label_width(look.queries, size), label_width((look.query_side,), 12)) + 12
    end = begin + 220
    # the shorter column is centred beside the longer one
    offsets = [TOP + 24 + (tall - step * n) / 2 for n in (rows, keys)]
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
    for x, name, anchor in (
        (begin - 10, look.query_side, "end"),
        (end + 10, look.key_side, "start"),
    ):
        parts.append(svg_text(x, TOP + 8, name, size=12, fill=QUIET, anchor=anchor))
    foot = TOP + 24 + tall + 18
    cut = f"{note or row_sums(look)}; links below {threshold:.0%} of the largest are not drawn"
    names = (label_width(look.keys, size), label_width((look.key_side,), 12))
    width = end + 10 + max(names) + 24
    scale, high = colour_scale(20, foot, largest, cut, width - 40)
    return svg_document(width, foot + high, title or look_title(look), parts + scale, style=style)


def text_shading(
    look: Look,
    row: int = 0,
    title: str = "",
    note: str = "",
    *,
    style: PictureStyle = DEFAULT_STYLE,
) -> str:
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
    scale, high = colour_scale(20, foot, largest, note or row_sums(look), wide - 20)
    return svg_document(
        wide + 20, foot + high, title or look_title(look), parts + scale, style=style
    )


def head_grid(
    trace: Trace,
    name: str | None = None,
    title: str = "",
    *,
    style: PictureStyle = DEFAULT_STYLE,
) -> str:
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
            f"<title>{escape_text(look_title(look), 120)}: largest {largest:.2f}</title></rect>"
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
    sides = f"{chosen[0].query_side} in rows, {chosen[0].key_side} in columns"
    width = max(74 + (size + gap) * len(heads) + 14, 74 + MIN_WIDTH)
    # one number would be true of one head only
    scale, high = colour_scale(
        74, foot, "its largest weight", f"each head has its own scale; {sides}", width - 88
    )
    heading = title or f"{LOOK_NAMES.get(chosen[0].name, chosen[0].name)}: every head"
    return svg_document(width, foot + high, heading, parts + scale, style=style)


def _cell_size(longest: int) -> float:
    """Side of a cell in pixels: large enough for numbers in short texts, down to 1 in long ones."""
    if longest <= 24:
        return 40.0
    return 24.0 if longest <= 40 else max(1.0, min(16.0, 960 / longest))
