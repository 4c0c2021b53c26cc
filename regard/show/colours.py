"""Colours of weights: monotonically darker, readable in greyscale and by colour-blind readers."""

import numpy as np
from numpy.typing import NDArray

STOPS = ("#f6f8fc", "#dbe6f6", "#aecbec", "#78a6dc", "#427bc1", "#1f5299", "#0e2f66")
"""From zero to the largest weight, equally spaced; `page/colours.js` has the same."""
INK, QUIET, RULE, PAPER, ACCENT = "#15181e", "#565d6b", "#d5d9e2", "#ffffff", "#b8430b"
BLACK = "#000000"

_TABLE = np.array([[int(stop[i : i + 2], 16) for i in (1, 3, 5)] for stop in STOPS], dtype=float)


def rgb(shares: NDArray[np.float64] | float | int) -> NDArray[np.uint8]:
    """Colours [..., 3] of shares between 0 and 1."""
    places = np.clip(np.asarray(shares, dtype=float), 0.0, 1.0) * (len(STOPS) - 1)
    ends = np.arange(len(STOPS))
    channels = [np.interp(places, ends, _TABLE[:, channel]) for channel in range(3)]
    colours: NDArray[np.uint8] = np.rint(np.stack(channels, axis=-1)).astype(np.uint8)
    return colours


def colour(share: float | int) -> str:
    """The colour of one share as #rrggbb."""
    return "#" + "".join(f"{part:02x}" for part in rgb(share))


def text_colour(share: float | int) -> str:
    """Black or white, whichever has more contrast with the colour of a share: at least 4.5 : 1."""
    # black wins if its contrast, (L + 0.05) / 0.05, is larger than that of white, 1.05 / (L + 0.05)
    return BLACK if (luminance(rgb(share)) + 0.05) ** 2 > 0.05 * 1.05 else PAPER


def luminance(colour: NDArray[np.uint8]) -> float:
    """Relative luminance of an sRGB colour (WCAG 2.2)."""
    parts = colour.astype(float) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ np.array([0.2126, 0.7152, 0.0722]))
