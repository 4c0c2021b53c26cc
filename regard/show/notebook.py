"""Traces in a notebook: a table that every reader keeps, with the viewer over it where it runs."""

import base64
from html import escape

from regard.looks import Look
from regard.show.choosing import choose, label, sums
from regard.show.colours import colour, ink, rgb
from regard.show.drawing import peak
from regard.show.lettering import fit
from regard.show.onefile import page
from regard.show.png import encode
from regard.trace import Trace

TABLED = 30
"""The longest side that is a table; a longer one is a picture."""
HEIGHT = 640
"""Of the viewer, in pixels."""


def html(trace: Trace) -> str:
    """A static picture first, then the viewer in a sandbox that covers it.

    Notebooks that are not trusted take scripts and frames away: the static picture stays.
    """
    if not trace.looks:
        return f"<p>{escape(fit(trace.output, 2000))}</p>"
    look, said = choose(trace)
    frame = (
        f'<iframe sandbox="allow-scripts allow-downloads" srcdoc="{escape(page(trace))}" '
        f'title="{escape(label(look))}" loading="lazy" '
        f'style="position:absolute;inset:0;width:100%;height:100%;border:0;background:Canvas">'
        "</iframe>"
    )
    return (
        f'<div style="position:relative;min-height:{HEIGHT}px;overflow:auto">'
        f"{static(look, said)}{frame}</div>"
    )


def static(look: Look, said: str = "") -> str:
    """A look as a plain HTML table, or as an image when it is long."""
    title = f"<caption>{escape(label(look, said))}: {escape(sums(look))}</caption>"
    largest = peak(look.weights)
    if max(look.weights.shape) > TABLED:
        data = base64.b64encode(encode(rgb(look.weights / largest))).decode("ascii")
        size = f"{len(look.queries)} × {len(look.keys)}"
        return (
            f'<figure><img alt="{escape(label(look))}: {size} weights, the largest {largest:.2f}" '
            f'width="480" src="data:image/png;base64,{data}"></figure>'
        )
    head = "".join(f'<th scope="col">{escape(fit(key, 20))}</th>' for key in look.keys)
    rows = []
    for query, row in zip(look.queries, look.weights, strict=True):
        cells = "".join(
            f'<td style="background:{colour(w / largest)};color:{ink(w / largest)}">{w:.2f}</td>'
            for w in map(float, row)
        )
        rows.append(f'<tr><th scope="row">{escape(fit(query, 20))}</th>{cells}</tr>')
    return f"<table>{title}<tr><td></td>{head}</tr>{''.join(rows)}</table>"
