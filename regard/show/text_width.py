"""Text for pictures and terminals: without control characters, and how wide it is."""

import unicodedata

ZERO_WIDTH = ("Mn", "Me", "Cf")
MAX_LABEL = 28
"""Columns of a label; longer words are truncated with an ellipsis."""


def printable(text: str) -> str:
    """The text without control characters and changes of writing direction.

    Code points that are no characters (U+FFFE, U+FDD0, …), which XML forbids or discourages, become
    U+FFFD.
    """
    return "".join(
        "\ufffd" if _is_noncharacter(c) else c
        for c in text
        if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp")
    )


def _is_noncharacter(character: str) -> bool:
    """Whether Unicode reserves a code point for internal use: the last two of each plane, and 32
    in the first (https://www.unicode.org/faq/private_use.html#noncharacters)."""
    code = ord(character)
    return code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF


def display_width(text: str) -> int:
    """Terminal columns that the text takes: two for wide characters, none for combining accents.

    >>> display_width("chat"), display_width("猫"), display_width("e\u0301")
    (4, 2, 1)
    """
    return sum(
        0
        if unicodedata.category(c) in ZERO_WIDTH
        else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )


def truncate(text: str, width: int) -> str:
    """The printable text in at most `width` columns; ends in an ellipsis if truncated.

    >>> truncate("Donaudampfschifffahrt", 9)
    'Donaudam…'
    """
    clean = printable(text)
    if display_width(clean) <= width:
        return clean
    kept = ""
    for character in clean:
        if display_width(kept + character) > width - 1:
            break
        kept += character
    return kept + "…"


def align_left(text: str, width: int) -> str:
    """The text padded with spaces on the right."""
    return text + " " * (width - display_width(text))


def align_right(text: str, width: int) -> str:
    """The text padded with spaces on the left."""
    return " " * (width - display_width(text)) + text
