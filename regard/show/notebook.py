"""Traces in a notebook: a static table, covered by the viewer where scripts may run."""

import base64
from html import escape

from regard.show.colours import colour, rgb, text_colour
from regard.show.html_page import render_page
from regard.show.look_names import look_title
from regard.show.png import encode_png
from regard.show.select import row_sums, select_look
from regard.show.svg_frame import largest_weight
from regard.show.text_width import truncate
from regard.trace import Trace
from regard.trace.look import Look

MAX_TABLE_SIDE = 30
"""Longer looks are images instead of tables."""
VIEWER_HEIGHT = 640
"""In pixels, until the viewer has reported the height of its content."""
FOLLOW_HEIGHT = (
    "const frame=this,box=this.parentElement;window.addEventListener('message',event=>{"
    "if(event.source!==frame.contentWindow||!(event.data?.regardHeight>0))return;"
    "for(const node of box.children)if(node!==frame)node.hidden=true;"
    "box.style.minHeight=0;box.style.height=Math.min(event.data.regardHeight,4000)+'px'});"
    "frame.contentWindow.postMessage('regard-height','*')"
)
"""Gives the frame the height that the viewer in it reports, and hides the static picture."""


def notebook_html(trace: Trace) -> str:
    """A static picture, covered by the viewer in a sandboxed frame.

    Notebooks that are not trusted remove scripts and frames; the static picture remains.
    """
    if not trace.looks:
        return f"<p>{escape(truncate(trace.output, 2000))}</p>"
    look, note = select_look(trace)
    frame = (
        f'<iframe sandbox="allow-scripts allow-downloads" srcdoc="{escape(render_page(trace))}" '
        f'title="{escape(look_title(look))}" loading="lazy" onload="{escape(FOLLOW_HEIGHT)}" '
        f'style="position:absolute;inset:0;width:100%;height:100%;border:0;background:Canvas">'
        "</iframe>"
    )
    return (
        f'<div style="position:relative;min-height:{VIEWER_HEIGHT}px;overflow:auto">'
        f"{static_html(look, note)}{frame}</div>"
    )


def static_html(look: Look, note: str = "") -> str:
    """A look as a plain HTML table, or as an image if it is long."""
    title = f"<caption>{escape(look_title(look, note))}: {escape(row_sums(look))}</caption>"
    largest = largest_weight(look.weights)
    if max(look.weights.shape) > MAX_TABLE_SIDE:
        data = base64.b64encode(encode_png(rgb(look.weights / largest))).decode("ascii")
        size = f"{len(look.queries)} × {len(look.keys)}"
        return (
            f'<figure><img alt="{escape(look_title(look))}: {size} weights, '
            f'the largest {largest:.2f}" width="480" src="data:image/png;base64,{data}"></figure>'
        )
    head = "".join(f'<th scope="col">{escape(truncate(key, 20))}</th>' for key in look.keys)
    rows = []
    for query, row in zip(look.queries, look.weights, strict=True):
        cells = "".join(_cell(float(weight), largest) for weight in row)
        rows.append(f'<tr><th scope="row">{escape(truncate(query, 20))}</th>{cells}</tr>')
    return f"<table>{title}<tr><td></td>{head}</tr>{''.join(rows)}</table>"


def _cell(weight: float, largest: float) -> str:
    share = weight / largest
    style = f"background:{colour(share)};color:{text_colour(share)}"
    return f'<td style="{style}">{weight:.2f}</td>'
