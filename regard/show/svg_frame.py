"""The frame of an SVG picture: background, title, colour scale with its range."""

import base64
import textwrap
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from regard.show.colours import INK, PAPER, QUIET, colour, rgb
from regard.show.png import FAMILY, encode_png
from regard.show.text_width import MAX_LABEL, display_width, printable, truncate

Number = float | int
FONT_SIZE = 14
"""Size of labels in pixels (default)."""
TITLE_HEIGHT = 34
"""Height that a picture without a title saves."""
NOTE_WIDTH = 6.2
"""Estimated width of one text column of a note, at 11.5 px."""

COLUMN_WIDTH = 7.7
"""Estimated width of one text column at 14 px: fonts are only known where the SVG is viewed."""
SCALE_WIDTH = 150
"""Width of the colour scale."""


@dataclass(frozen=True)
class PictureStyle:
    """How a picture is presented."""

    show_title: bool = True
    """Whether the title stands above the picture; without it, a paper's caption says it."""
    font_size: float | int = FONT_SIZE
    """Size of labels in pixels where the picture is shown at its own size; all else scales."""


def svg_document(
    width: Number,
    height: Number,
    title: str,
    parts: list[str],
    described: str = "",
    style: PictureStyle = PictureStyle(),
) -> str:
    """A whole SVG document, as wide as its parts or its title, with the title above the parts."""
    titled = 24 + COLUMN_WIDTH * 1.15 * min(display_width(printable(title)), 80)
    wide = round(max(width, titled if style.show_title else 0))
    top = 0 if style.show_title else TITLE_HEIGHT
    tall, scale = round(height) - top, style.font_size / FONT_SIZE
    heading = (
        f'<text x="20" y="30" font-size="16" font-weight="600">{escape_text(title, 80)}</text>'
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {top} {wide} {tall}" '
            f'width="{wide * scale:g}" height="{tall * scale:g}" role="img" '
            f'font-family="{FAMILY}" font-size="{FONT_SIZE}" fill="{INK}">',
            f"<title>{escape_text(title, 200)}</title>",
            *([f"<desc>{escape_text(described, 500)}</desc>"] if described else []),
            f'<rect y="{top}" width="{wide}" height="{tall}" fill="{PAPER}"/>',
            *([heading] if style.show_title else []),
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
    longest: int = MAX_LABEL,
) -> str:
    """A word at a position, truncated with an ellipsis if it is long."""
    options = f' text-anchor="{anchor}"' if anchor != "start" else ""
    options += f' font-size="{size:g}"' if size != 14 else ""
    options += f' fill="{fill}"' if fill != INK else ""
    options += f' font-weight="{weight}"' if weight != 400 else ""
    options += f' transform="rotate({turned:g} {x:g} {y:g})"' if turned else ""
    return f'<text x="{x:g}" y="{y:g}"{options}>{escape_text(word, longest)}</text>'


def escape_text(word: str, longest: int = MAX_LABEL) -> str:
    """A word with all markup escaped, truncated if it is long."""
    return escape(truncate(word, longest))


def label_width(words: tuple[str, ...], size: Number = 14, longest: int = MAX_LABEL) -> float:
    """Estimated width of the widest label, in pixels."""
    widest = max((display_width(truncate(word, longest)) for word in words), default=1)
    return float(COLUMN_WIDTH * size / 14 * widest)


def colour_scale(
    x: Number, y: Number, largest: Number | str, note: str, room: Number = 1000
) -> tuple[list[str], float]:
    """The colour scale from 0 to the largest weight with a note, and how high both are.

    The note stands beside the scale where `room` allows it, otherwise below, in several lines.
    """
    steps = 30
    step = SCALE_WIDTH / steps
    # each bar overlaps the next a little, or thin white lines would show between them
    bars = [
        f'<rect x="{x + step * i:g}" y="{y:g}" width="{step + 0.4:g}" '
        f'height="9" fill="{colour((i + 0.5) / steps)}"/>'
        for i in range(steps)
    ]
    end = largest if isinstance(largest, str) else f"{largest:.2f}"
    beside = SCALE_WIDTH + 14 + NOTE_WIDTH * display_width(note) <= room
    lines = [note] if beside else textwrap.wrap(note, max(20, int(room / NOTE_WIDTH)))
    at = (x + SCALE_WIDTH + 14, y + 9) if beside else (x, y + 44)
    notes = [
        f'<text x="{at[0]:g}" y="{at[1] + 16 * i:g}" font-size="11.5" fill="{QUIET}">'
        f"{escape_text(line, 120)}</text>"
        for i, line in enumerate(lines)
    ]
    parts = [
        "<g>",
        *bars,
        svg_text(x, y + 24, "0", size=11.5, fill=QUIET),
        svg_text(x + SCALE_WIDTH, y + 24, end, size=11.5, fill=QUIET, anchor="end"),
        *notes,
        "</g>",
    ]
    return parts, 42.0 if beside else 46.0 + 16 * len(lines)


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
