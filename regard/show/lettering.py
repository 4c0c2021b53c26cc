"""Words on their way to a picture: nothing that steers, and how wide they are."""

import unicodedata

ZERO_WIDTH = ("Mn", "Me", "Cf")
LONGEST = 28
"""Characters of a label; a longer word is cut, with an ellipsis."""


def printable(text: str) -> str:
    """The text without characters that would steer the terminal or turn the writing direction."""
    return "".join(c for c in text if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp"))


def columns(text: str) -> int:
    """How many columns of a terminal the text takes: wide characters take two, accents none.

    >>> columns("chat"), columns("猫"), columns("e\u0301")
    (4, 2, 1)
    """
    return sum(
        0
        if unicodedata.category(c) in ZERO_WIDTH
        else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )


def fit(text: str, width: int) -> str:
    """The printable text in at most so many columns; a cut one ends in an ellipsis.

    >>> fit("Donaudampfschifffahrt", 9)
    'Donaudam…'
    """
    clean = printable(text)
    if columns(clean) <= width:
        return clean
    kept = ""
    for character in clean:
        if columns(kept + character) > width - 1:
            break
        kept += character
    return kept + "…"


def left(text: str, width: int) -> str:
    """Filled with spaces at its end."""
    return text + " " * (width - columns(text))


def right(text: str, width: int) -> str:
    """Filled with spaces at its beginning."""
    return " " * (width - columns(text)) + text
