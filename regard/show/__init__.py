"""Pictures of looks and traces: terminal, SVG, PNG, one HTML file, notebook."""

from regard.show.choosing import choose
from regard.show.onefile import page
from regard.show.surfaces import Drawn, draw, picture_of, show, trace_of
from regard.show.svg import head_grid, links, matrix, text_shading
from regard.show.terminal import report, shaded, summary

__all__ = [
    "Drawn",
    "choose",
    "draw",
    "head_grid",
    "links",
    "matrix",
    "page",
    "picture_of",
    "report",
    "shaded",
    "show",
    "summary",
    "text_shading",
    "trace_of",
]
