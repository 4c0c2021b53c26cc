"""Small HTML tables for notebooks: the card of a run, the metrics of an evaluation."""

from collections.abc import Iterable, Sequence
from html import escape

MAX_CELL = 300
"""Characters of a cell; longer texts are shortened."""
MAX_ROWS = 20
"""Rows of a table; of more, the first and the last are shown."""
FRAME = '<div style="max-width:100%;overflow-x:auto">'
LEFT = 'style="text-align:left;vertical-align:top"'


def card(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """A title, and below it names with their values.

    >>> "<th" in card("run", [("task", "a < b")]), "a &lt; b" in card("run", [("task", "a < b")])
    (True, True)
    """
    lines = "".join(
        f'<tr><th scope="row" {LEFT}>{_text(name)}</th><td {LEFT}>{_text(value)}</td></tr>'
        for name, value in rows
    )
    return f"{FRAME}<b>{_text(title)}</b><table>{lines}</table></div>"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> str:
    """A table with names of columns; of a long one, the rows in the middle are left out."""
    top = "".join(f'<th scope="col" {LEFT}>{_text(name)}</th>' for name in head)
    shown = [*rows]
    if len(rows) > MAX_ROWS:
        gap = [f"… {len(rows) - MAX_ROWS:,} more"] + [""] * (len(head) - 1)
        shown = [*rows[: MAX_ROWS // 2], gap, *rows[-MAX_ROWS // 2 :]]
    body = "".join(
        "<tr>" + "".join(f"<td {LEFT}>{_text(cell)}</td>" for cell in row) + "</tr>"
        for row in shown
    )
    heading = f"<b>{_text(title)}</b>" if title else ""
    return f"{FRAME}{heading}<table><tr>{top}</tr>{body}</table></div>"


def progress_bar(share: float, caption: str) -> str:
    """A bar that is filled to a share from 0 to 1, with a line of text."""
    return f'{FRAME}<progress max="1" value="{share:.3f}"></progress> {_text(caption)}</div>'


def shorten(text: str, most: int = MAX_CELL) -> str:
    """The text on one line, its end left out where it is long.

    >>> shorten("one  two three", 8)
    'one two…'
    """
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def _text(value: str) -> str:
    return escape(shorten(value))
