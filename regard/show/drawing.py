"""The frame of a vector picture: paper, title, colour scale with its range."""

import base64
from html import escape

import numpy as np
from numpy.typing import NDArray

from regard.show.colours import INK, PAPER, QUIET, colour, rgb
from regard.show.lettering import LONGEST, columns, fit, printable
from regard.show.png import FAMILY, encode

Number = float | int

STEP = 7.7
"""Width of a column of letters at 14 px, in pixels."""
SCALE = 150
"""Width of the colour scale."""


def frame(width: Number, height: Number, title: str, parts: list[str], described: str = "") -> str:
    """A whole SVG document with its title set above the parts."""
    wide, tall = (
        round(max(width, 24 + STEP * 1.15 * min(columns(printable(title)), 80))),
        round(height),
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {tall}" '
            f'width="{wide}" height="{tall}" role="img" '
            f'font-family="{FAMILY}" font-size="14" fill="{INK}">',
            f"<title>{safe(title, 200)}</title>",
            *([f"<desc>{safe(described, 500)}</desc>"] if described else []),
            f'<rect width="{wide}" height="{tall}" fill="{PAPER}"/>',
            f'<text x="20" y="30" font-size="16" font-weight="600">{safe(title, 80)}</text>',
            *parts,
            "</svg>\n",
        ]
    )


def text(
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
    """A word at a place; long ones are cut, with an ellipsis."""
    options = f' text-anchor="{anchor}"' if anchor != "start" else ""
    options += f' font-size="{size:g}"' if size != 14 else ""
    options += f' fill="{fill}"' if fill != INK else ""
    options += f' font-weight="{weight}"' if weight != 400 else ""
    options += f' transform="rotate({turned:g} {x:g} {y:g})"' if turned else ""
    return f'<text x="{x:g}" y="{y:g}"{options}>{safe(word)}</text>'


def safe(word: str, longest: int = LONGEST) -> str:
    """A word that can be nothing but text."""
    return escape(fit(word, longest))


def length(words: tuple[str, ...], size: Number = 14) -> float:
    """Pixels that the longest of the words takes as a label."""
    widest = max((columns(fit(word, LONGEST)) for word in words), default=1)
    return float(STEP * size / 14 * widest)


def scale(x: Number, y: Number, largest: Number, said: str) -> list[str]:
    """The colour scale from 0 to the largest weight, with a phrase beside it."""
    steps = 30
    bars = [
        f'<rect x="{x + SCALE / steps * i:g}" y="{y:g}" width="{SCALE / steps + 0.4:g}" '
        f'height="9" fill="{colour((i + 0.5) / steps)}"/>'
        for i in range(steps)
    ]
    return [
        "<g>",
        *bars,
        text(x, y + 24, "0", size=11.5, fill=QUIET),
        text(x + SCALE, y + 24, f"{largest:.2f}", size=11.5, fill=QUIET, anchor="end"),
        text(x + SCALE + 14, y + 9, said, size=11.5, fill=QUIET).replace(
            safe(said), safe(said, 120)
        ),
        "</g>",
    ]


def pixels(x: Number, y: Number, width: Number, height: Number, shares: NDArray[np.float64]) -> str:
    """A large matrix as one embedded picture, a pixel a cell, with hard edges."""
    data = base64.b64encode(encode(rgb(shares))).decode("ascii")
    return (
        f'<image x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" '
        f'preserveAspectRatio="none" image-rendering="optimizeSpeed" '
        f'style="image-rendering:pixelated" href="data:image/png;base64,{data}"/>'
    )


def peak(weights: NDArray[np.float64]) -> float:
    """The largest weight, which gets the darkest colour."""
    return float(weights.max(initial=0.0)) or 1.0
