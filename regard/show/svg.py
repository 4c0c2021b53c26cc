"""Looks as vector pictures."""

from html import escape

from regard.looks import Look
from regard.show.terminal import printable

CELL = 44
STEP = 8.2
"""Width of a character of the labels, in pixels."""


def matrix(look: Look, title: str = "") -> str:
    """The matrix as SVG: rows are queries, columns keys; darker is more, with a scale."""
    left = int(24 + STEP * max((len(printable(word)) for word in look.queries), default=1))
    slanted = max((len(printable(word)) for word in look.keys), default=1)
    top = int(56 + 0.72 * STEP * slanted)
    wide, tall = CELL * len(look.keys), CELL * len(look.queries)
    width, height = max(left + wide + 90, 320), top + tall + 24
    largest = float(look.weights.max(initial=0.0)) or 1.0
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="14">',
        f"<title>{_text(title or look.name)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="16" y="26" font-size="16" font-weight="600" fill="#1b1b1f">'
        f"{_text(title or look.name)}</text>",
    ]
    for column, key in enumerate(look.keys):
        x, y = left + CELL * column + CELL / 2, top - 8
        parts.append(
            f'<text x="{x}" y="{y}" transform="rotate(-45 {x} {y})" fill="#1b1b1f">'
            f"{_text(key)}</text>"
        )
    for row, query in enumerate(look.queries):
        y = top + CELL * row
        parts.append(
            f'<text x="{left - 10}" y="{y + CELL / 2 + 5}" text-anchor="end" fill="#1b1b1f">'
            f"{_text(query)}</text>"
        )
        for column, weight in enumerate(look.weights[row]):
            share = float(weight) / largest
            x = left + CELL * column
            parts.append(
                f'<rect x="{x}" y="{y}" width="{CELL - 2}" height="{CELL - 2}" rx="3" '
                f'fill="{colour(share)}"/><text x="{x + CELL / 2 - 1}" y="{y + CELL / 2 + 4}" '
                f'text-anchor="middle" font-size="12" '
                f'fill="{"#ffffff" if share > 0.55 else "#1b1b1f"}">{float(weight):.2f}</text>'
            )
    parts.append(_scale(left + wide + 18, top, largest))
    return "\n".join([*parts, "</svg>\n"])


def colour(share: float) -> str:
    """From near white to deep blue, darker all the way."""
    light, dark = (246, 248, 252), (18, 52, 118)
    mix = (round(a + (b - a) * min(1.0, max(0.0, share))) for a, b in zip(light, dark, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mix)


def _scale(x: int, y: int, largest: float) -> str:
    steps = 11
    bars = [
        f'<rect x="{x}" y="{y + 8 * i}" width="12" height="8" '
        f'fill="{colour(1 - i / (steps - 1))}"/>'
        for i in range(steps)
    ]
    labels = [
        f'<text x="{x + 18}" y="{y + 10}" font-size="12" fill="#1b1b1f">{largest:.2f}</text>',
        f'<text x="{x + 18}" y="{y + 8 * steps}" font-size="12" fill="#1b1b1f">0</text>',
    ]
    return "\n".join(bars + labels)


def _text(text: str) -> str:
    return escape(printable(text))
