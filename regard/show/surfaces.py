"""One way in to all surfaces: what to draw, and where to."""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from regard.errors import RegardError, unknown
from regard.files import write_whole
from regard.looks import Look
from regard.show import svg
from regard.show.choosing import choose, label, sums
from regard.show.notebook import html
from regard.show.onefile import BUDGET, page
from regard.show.png import from_svg
from regard.show.terminal import report
from regard.trace import Side, Token, Trace

KINDS = ("html", "svg", "png", "json")
PICTURES = ("matrix", "links", "text", "heads")


@dataclass(frozen=True)
class Drawn:
    """A drawing that shows itself: in a terminal as text, in a notebook as the viewer."""

    trace: Trace
    file: Path | None = None

    def __repr__(self) -> str:
        return report(self.trace) if self.file is None else f"The picture is in {self.file}"

    def _repr_html_(self) -> str:
        return html(self.trace)


def show(thing: Look | Trace, to: str | PathLike[str] | None = None, **options: Any) -> Drawn:
    """Draw a look or a trace: as a value that shows itself, or into a file.

    The file's name says what it becomes: html, svg, png or json; the options are those of `draw`.
    """
    trace = thing if isinstance(thing, Trace) else trace_of(thing)
    if to is None:
        return Drawn(trace)
    path = Path(to)
    data = draw(trace, path.suffix.lstrip(".").lower(), **options)
    write_whole(path, lambda part: part.write_bytes(data))
    return Drawn(trace, path)


def draw(
    trace: Trace,
    kind: str,
    *,
    picture: str = "matrix",
    name: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    aggregate: str = "mean",
    word: int = 0,
    title: str = "",
    budget: int | None = BUDGET,
) -> bytes:
    """The bytes of a file of this kind: html, svg, png or json.

    A picture is a matrix, links, text (shaded for the query number `word`) or heads, of the look
    of this name, layer and head (the last layer, and the mean of its heads, unless said).
    """
    if kind not in KINDS:
        raise RegardError(unknown("kind of picture", kind, KINDS))
    if kind == "json":
        return trace.to_json().encode("ascii")
    if kind == "html":
        return page(trace, budget, title).encode("utf-8", "replace")
    drawing = picture_of(trace, picture, name, layer, head, aggregate, word, title)
    return from_svg(drawing) if kind == "png" else drawing.encode("utf-8", "replace")


def picture_of(
    trace: Trace,
    picture: str = "matrix",
    name: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    aggregate: str = "mean",
    word: int = 0,
    title: str = "",
) -> str:
    """One picture of a trace as SVG."""
    if picture not in PICTURES:
        raise RegardError(unknown("picture", picture, PICTURES))
    look, said = choose(trace, name, layer, head, aggregate)
    if picture == "heads":
        return svg.head_grid(trace, look.name, title)
    title = title or label(look, said)
    if picture == "text":
        if not 0 <= word < len(look.queries):
            raise RegardError(f"word {word}: expected a number from 0 to {len(look.queries) - 1}")
        return svg.text_shading(look, word, title, sums(look))
    return (svg.links if picture == "links" else svg.matrix)(look, title, sums(look))


def trace_of(*looks: Look, task: str = "attention") -> Trace:
    """A trace around looks that came from anywhere, with their words as sides."""
    sides: dict[str, Side] = {}
    for look in looks:
        for name, words in ((look.asking, look.queries), (look.asked, look.keys)):
            if name not in sides:
                sides[name] = _side(words)
    return Trace(task, sides, looks, "")


def _side(words: tuple[str, ...]) -> Side:
    """Words as a text with spaces between them."""
    tokens, place = [], 0
    for number, word in enumerate(words):
        tokens.append(Token(word, place, place + len(word), word=number))
        place += len(word) + 1
    return Side(" ".join(words), tuple(tokens))
