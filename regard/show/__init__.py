"""Pictures of looks and traces: terminal, SVG, PNG, one HTML file, notebook."""

from regard.show.draw import Drawing, draw, draw_svg, show, trace_from_looks
from regard.show.html_page import fit_page, render_page
from regard.show.select import select_look
from regard.show.svg import head_grid, links, matrix, text_shading
from regard.show.terminal import report, shaded_matrix, top_keys

__all__ = [
    "Drawing",
    "draw",
    "draw_svg",
    "fit_page",
    "head_grid",
    "links",
    "matrix",
    "render_page",
    "report",
    "select_look",
    "shaded_matrix",
    "show",
    "text_shading",
    "top_keys",
    "trace_from_looks",
]
