"""Text for pictures and terminals: without control characters, how wide it is, and in tables."""

import shutil
import unicodedata
from collections.abc import Sequence

ZERO_WIDTH = ("Mn", "Me", "Cf")
MAX_LABEL = 28
"""Columns of a label; longer words are truncated with an ellipsis."""
COLUMN_GAP = 2
"""Spaces between columns."""
MIN_FIRST = 16
"""Columns of the terminal to which the first column shrinks at most."""


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


def terminal_width(otherwise: int = 10_000) -> int:
    """The width of the terminal, in columns; `otherwise` if the output is a file or a pipe."""
    return shutil.get_terminal_size((otherwise, 24)).columns


def fit_table(rows: Sequence[Sequence[str]], width: int, *, right: bool = True) -> list[str]:
    """Rows as aligned columns, the first to the left and the others to the right (if `right`).

    What is wider than `width` is folded: each block of lines repeats the first column, which is
    shortened only if nothing else would fit beside it.

    >>> print("\\n".join(fit_table([("", "loss", "BLEU"), ("small", "1.5", "30.0")], 14)))
           loss
    small   1.5
    <BLANKLINE>
           BLEU
    small  30.0
    """
    widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    widest = max(widths[1:], default=0)
    first = min(widths[0], max(MIN_FIRST, width - COLUMN_GAP - widest))
    names = [align_left(truncate(row[0], first), first) for row in rows]
    align = align_right if right else align_left
    lines: list[str] = []
    for start, end in _blocks(widths[1:], width - first):
        lines += [""] if lines else []
        for name, row in zip(names, rows, strict=True):
            pairs = zip(row[1:][start:end], widths[1:][start:end], strict=True)
            cells = "".join(" " * COLUMN_GAP + align(cell, wide) for cell, wide in pairs)
            lines.append(f"{name}{cells}".rstrip())
    return lines


def _blocks(widths: Sequence[int], room: int) -> list[tuple[int, int]]:
    """The columns of each block, as start and end: as few blocks as fit, and evenly filled."""
    fewest = _filled(widths, room)
    if len(fewest) == 1:
        return fewest
    narrower = (_filled(widths, share) for share in range(1, room))
    return next((blocks for blocks in narrower if len(blocks) == len(fewest)), fewest)


def _filled(widths: Sequence[int], room: int) -> list[tuple[int, int]]:
    """Blocks of as many columns as fit into `room`, but of at least one."""
    blocks, start, used = [], 0, 0
    for end, wide in enumerate(widths):
        if end > start and used + wide + COLUMN_GAP > room:
            blocks.append((start, end))
            start, used = end, 0
        used += wide + COLUMN_GAP
    return [*blocks, (start, len(widths))]


def wrap(text: str, width: int) -> list[str]:
    """The printable text in lines of at most `width` columns, broken at blanks where it can be.

    >>> wrap("the little cat", 10)
    ['the little', 'cat']
    """
    lines = [""]
    for word in printable(text).split(" "):
        joined = f"{lines[-1]} {word}".lstrip()
        if display_width(joined) <= width:
            lines[-1] = joined
            continue
        lines.append("")
        for character in word:  # usually in one line
            if display_width(lines[-1] + character) > width:
                lines.append("")
            lines[-1] += character
    return [line for line in lines if line] or [""]


def wrap_beside(name: str, text: str, indent: int, width: int) -> list[str]:
    """A name and, from column `indent` on, a text that is folded to `width`.

    >>> wrap_beside("by values", "gradient with the weights held constant", 11, 32)
    ['by values  gradient with the', '           weights held constant']
    """
    lines = wrap(text, max(width - indent, 20))
    return [align_left(name if i == 0 else "", indent) + line for i, line in enumerate(lines)]
