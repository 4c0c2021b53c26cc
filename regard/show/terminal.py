"""Looks in the terminal: shaded blocks, with the numbers."""

import unicodedata

from regard.looks import Look

SHADES = " ░▒▓█"


def shaded(look: Look, width: int = 100) -> str:
    """The matrix as shaded blocks, a row a query, as many keys as fit.

    >>> from regard.looks import from_arrays
    >>> print(shaded(from_arrays([[0.8, 0.2]], ["chat"], ["cat", "the"])))
            cat   the
    chat  █ .80 ░ .20
    """
    names = [printable(word) for word in look.queries]
    left = max([len(name) for name in names] + [4])
    cell = max(5, *(min(len(printable(key)), 10) for key in look.keys)) if look.keys else 5
    fitting = max(1, (width - left - 1) // (cell + 1))
    keys, cut = look.keys[:fitting], len(look.keys) - fitting
    head = " ".join(printable(key)[:cell].rjust(cell) for key in keys)
    lines = [f"{' ' * left} {head}".rstrip()]
    for name, row in zip(names, look.weights, strict=True):
        cells = " ".join(_cell(weight).rjust(cell) for weight in row[:fitting])
        lines.append(f"{name.ljust(left)} {cells}")
    if cut > 0:
        lines.append(f"(+{cut} more keys to the right)")
    return "\n".join(lines)


def printable(text: str) -> str:
    """The text without characters that would steer the terminal or turn the writing direction."""
    return "".join(c for c in text if unicodedata.category(c) not in ("Cc", "Cf", "Cs"))


def _cell(weight: float) -> str:
    shade = SHADES[min(len(SHADES) - 1, round(weight * len(SHADES)))]
    number = f"{weight:.2f}"
    return f"{shade} {number[1:] if number.startswith('0') else number[:3]}"
