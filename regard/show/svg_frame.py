"""The frame of an SVG picture: background, title, colour scale with its range."""

import base64
from html import escape

import numpy as np
from numpy.typing import NDArray

from regard.show.colours import INK, PAPER, QUIET, colour, rgb
from regard.show.png import FAMILY, encode_png
from regard.show.text_width import MAX_LABEL, display_width, printable, truncate

Number = float | int

COLUMN_WIDTH = 7.7
"""Estimated width of one text column at 14 px: fonts are only known where the SVG is viewed."""
SCALE_WIDTH = 150
"""Width of the colour scale."""


def svg_document(
    width: Number, height: Number, title: str, parts: list[str], described: str = ""
) -> str:
    """A whole SVG document, as wide as its parts or its title, with the title above the parts."""
    wide, tall = (
        round(max(width, 24 + COLUMN_WIDTH * 1.15 * min(display_width(printable(title)), 80))),
        round(height),
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {tall}" '
            f'width="{wide}" height="{tall}" role="img" '
            f'font-family="{FAMILY}" font-size="14" fill="{INK}">',
            f"<title>{escape_text(title, 200)}</title>",
            *([f"<desc>{escape_text(described, 500)}</desc>"] if described else []),
            f'<rect width="{wide}" height="{tall}" fill="{PAPER}"/>',
            f'<text x="20" y="30" font-size="16" font-weight="600">{escape_text(title, 80)}</text>',
            *parts,
            "</svg>\n",
        ]
    )


def svg_text(
    x: Number,
    y: Number,
    word: str,
    *,
    anchor: str = "start",
    size: Number = 14,
    fill: str = INK,
    turned: Number = 0.0,
    weight: int = 400,
) -> str:
    """A word at a position, truncated with an ellipsis if it is long."""
    options = f' text-anchor="{anchor}"' if anchor != "start" else ""
    options += f' font-size="{size:g}"' if size != 14 else ""
    options += f' fill="{fill}"' if fill != INK else ""
    options += f' font-weight="{weight}"' if weight != 400 else ""
    options += f' transform="rotate({turned:g} {x:g} {y:g})"' if turned else ""
    return f'<text x="{x:g}" y="{y:g}"{options}>{escape_text(word)}</text>'


def escape_text(word: str, longest: int = MAX_LABEL) -> str:
    """A word with all markup escaped, truncated if it is long."""
    return escape(truncate(word, longest))


def label_width(words: tuple[str, ...], size: Number = 14) -> float:
    """Estimated width of the widest label, in pixels."""
    widest = max((display_width(truncate(word, MAX_LABEL)) for word in words), default=1)
    return float(COLUMN_WIDTH * size / 14 * widest)


def colour_scale(x: Number, y: Number, largest: Number, note: str) -> list[str]:
    """The colour scale from 0 to the largest weight, with a note beside it."""
    steps = 30
    step = SCALE_WIDTH / steps
    # each bar overlaps the next a little, or thin white lines would show between them
    bars = [
        f'<rect x="{x + step * i:g}" y="{y:g}" width="{step + 0.4:g}" '
        f'height="9" fill="{colour((i + 0.5) / steps)}"/>'
        for i in range(steps)
    ]
    return [
        "<g>",
        *bars,
        svg_text(x, y + 24, "0", size=11.5, fill=QUIET),
        svg_text(x + SCALE_WIDTH, y + 24, f"{largest:.2f}", size=11.5, fill=QUIET, anchor="end"),
        svg_text(x + SCALE_WIDTH + 14, y + 9, note, size=11.5, fill=QUIET).replace(
            escape_text(note), escape_text(note, 120)
        ),
        "</g>",
    ]


def pixel_image(
    x: Number, y: Number, width: Number, height: Number, shares: NDArray[np.float64]
) -> str:
    """A large matrix as one embedded image, one pixel per cell, without smoothing."""
    data = base64.b64encode(encode_png(rgb(shares))).decode("ascii")
    return (
        f'<image x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" '
        f'preserveAspectRatio="none" image-rendering="optimizeSpeed" '
        f'style="image-rendering:pixelated" href="data:image/png;base64,{data}"/>'
    )


def largest_weight(weights: NDArray[np.float64]) -> float:
    """The largest weight, which gets the darkest colour."""
    return float(weights.max(initial=0.0)) or 1.0
