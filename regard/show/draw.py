"""The entry to all drawings: what to draw, and in which format."""

from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from regard.atomic_files import write_output
from regard.errors import RegardError, unknown
from regard.show import svg
from regard.show.html_page import MAX_PAGE_BYTES, render_page
from regard.show.look_names import look_title
from regard.show.notebook import notebook_html
from regard.show.picture_files import picture_bytes
from regard.show.select import row_sums, select_look
from regard.show.svg import DEFAULT_STYLE
from regard.show.svg_frame import FONT_SIZE, PictureStyle
from regard.show.terminal import report
from regard.trace import Look, Side, Token, Trace

FILE_FORMATS = ("html", "svg", "png", "pdf", "json")
PICTURES = ("matrix", "links", "text", "heads")


@dataclass(frozen=True)
class Drawing:
    """A drawing that displays itself: as text in a terminal, as the viewer in a notebook."""

    trace: Trace
    file: Path | None = None

    def __repr__(self) -> str:
        return report(self.trace) if self.file is None else f"Drawing in {self.file}"

    def _repr_html_(self) -> str:
        return notebook_html(self.trace)


def show(subject: Look | Trace, to: str | PathLike[str] | None = None, **options: Any) -> Drawing:
    """Draw a look or a trace: as a value that displays itself, or into a file.

    The ending of the file's name is its format: html, svg, png, pdf or json. The options are those
    of `draw`.
    """
    trace = subject if isinstance(subject, Trace) else trace_from_looks(subject)
    if to is None:
        return Drawing(trace)
    path = Path(to)
    data = draw(trace, path.suffix.lstrip(".").lower(), **options)
    with suppress(OSError):  # the error of writing says more
        path.parent.mkdir(parents=True, exist_ok=True)
    write_output(path, lambda stream: stream.write(data))
    return Drawing(trace, path)


def draw(
    trace: Trace,
    file_format: str,
    *,
    picture: str = "matrix",
    name: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    aggregate: str = "mean",
    word: int = 0,
    title: str = "",
    show_title: bool = True,
    font_size: float | int = FONT_SIZE,
    max_bytes: int | None = MAX_PAGE_BYTES,
) -> bytes:
    """The bytes of a file of this format: html, svg, png, pdf or json.

    Args:
        trace: what to draw.
        file_format: one of `FILE_FORMATS`; html and json hold the whole trace, svg, png and pdf
            one
            picture of it.
        picture: matrix, links, text (shaded for one query) or heads (a thumbnail of each).
        name: which look, such as decoder.source; default: the most telling one.
        layer: default: the last.
        head: default: all heads of the layer, by `aggregate`.
        aggregate: mean or max over the heads.
        word: the query whose weights shade the text, from 0.
        title: of the picture or page; default: the name of the look.
        show_title: whether a picture has its title above it.
        font_size: of the labels of a picture in pixels, at its own size; all else scales with it.
        max_bytes: of an HTML page, see `render_page`.
    """
    if file_format not in FILE_FORMATS:
        raise RegardError(unknown("file format", file_format, FILE_FORMATS))
    if file_format == "json":
        return trace.to_json().encode("ascii")
    if file_format == "html":
        return render_page(trace, max_bytes, title).encode("utf-8", "replace")
    picture_svg = draw_svg(
        trace,
        picture=picture,
        name=name,
        layer=layer,
        head=head,
        aggregate=aggregate,
        word=word,
        title=title,
        style=PictureStyle(show_title, font_size),
    )
    return picture_bytes(picture_svg, file_format)


def draw_svg(
    trace: Trace,
    picture: str = "matrix",
    *,
    name: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    aggregate: str = "mean",
    word: int = 0,
    title: str = "",
    style: PictureStyle = DEFAULT_STYLE,
) -> str:
    """One picture of a trace as SVG; the arguments are those of `draw`."""
    if picture not in PICTURES:
        raise RegardError(unknown("picture", picture, PICTURES))
    look, note = select_look(trace, name, layer, head, aggregate)
    if picture == "heads":
        return svg.head_grid(trace, look.name, title, style=style)
    title = title or look_title(look, note)
    if picture == "text":
        if not 0 <= word < len(look.queries):
            raise RegardError(f"word {word}: expected a number from 0 to {len(look.queries) - 1}")
        return svg.text_shading(look, word, title, row_sums(look), style=style)
    drawn = svg.links if picture == "links" else svg.matrix
    return drawn(look, title, row_sums(look), style=style)


def trace_from_looks(*looks: Look, task: str = "attention") -> Trace:
    """A trace of looks from any source, with their words as sides."""
    sides: dict[str, Side] = {}
    for look in looks:
        for name, words in ((look.query_side, look.queries), (look.key_side, look.keys)):
            if name not in sides:
                sides[name] = _side(words)
    return Trace(task, sides, looks, "")


def _side(words: tuple[str, ...]) -> Side:
    """Words as a text with spaces between them."""
    tokens, start = [], 0
    for number, word in enumerate(words):
        tokens.append(Token(word, start, start + len(word), word=number))
        start += len(word) + 1
    return Side(" ".join(words), tuple(tokens))
