"""One HTML file with the trace, the viewer and its style, which needs no network."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any, NamedTuple

from regard.errors import RegardError
from regard.show.select import PREFERRED_LOOKS
from regard.show.text_width import truncate
from regard.trace import Trace, to_document

MODULES = (
    *("colours", "token-text", "look-names", "units", "weights", "colour-scale", "elements"),
    *("matrix", "links", "text-shading", "head-grid", "legend", "table", "status-line"),
    *("svg-export", "row-detail", "trace-summary", "viewer"),
)
"""In the order in which they need each other; the app imports the same files."""
MAX_PAGE_BYTES = 10 * 10**6
"""Size of a page (default)."""
FULL_PRECISION_WEIGHTS = 1_000_000
"""Pages with at most this many weights keep all 16 bits of each; larger ones keep 14."""
FEWER_BITS = (12, 10)
"""Bits of each weight where a page does not fit otherwise: the third digit stays right with 12, the
second with 10. Weights below half a step become 0, so that rows of many small ones get short."""


class Page(NamedTuple):
    """An HTML page, and what it does not hold of its trace."""

    text: str
    left_out: tuple[str, ...] = ()
    """Kinds of attention and their layers that did not fit."""
    bits: int = 16
    """How many bits each packed weight has kept."""

    def notes(self) -> list[str]:
        """What is not as in the trace, in words; empty where all is.

        >>> Page("", ("encoder.self layer 0",), 10).notes()
        ['left out to keep the page small: encoder.self layer 0', 'weights rounded to 1/1,024']
        """
        left_out = f"left out to keep the page small: {', '.join(self.left_out)}"
        rounded = f"weights rounded to 1/{2**self.bits:,}"
        return [left_out] * bool(self.left_out) + [rounded] * (self.bits in FEWER_BITS)


def render_page(trace: Trace, max_bytes: int | None = MAX_PAGE_BYTES, title: str = "") -> str:
    """The trace as one HTML document that opens from disk, without a network; see `fit_page`."""
    return fit_page(trace, max_bytes, title).text


def fit_page(trace: Trace, max_bytes: int | None = MAX_PAGE_BYTES, title: str = "") -> Page:
    """A page of at most `max_bytes`; None means no limit.

    When the looks do not fit, their weights are rounded to fewer bits. When that is not enough,
    layers are left out, the first ones first, and those of the looks that `PREFERRED_LOOKS` names
    last of all. The page says both.
    """
    numbers = sum(look.weights.size for look in trace.looks)
    for bits in (16 if numbers <= FULL_PRECISION_WEIGHTS else 14, *FEWER_BITS):
        page = Page(_page(to_document(trace, bits=bits), (), bits, title), (), bits)
        if max_bytes is None or len(page.text) <= max_bytes:
            return page
    assert max_bytes is not None  # otherwise the first page is returned
    document = to_document(trace, bits=bits)
    excess, left_out = len(page.text) - max_bytes, list[str]()
    for name, layer in _groups(trace):
        if excess <= 0:
            break
        own = [look for look in document["looks"] if _group(look) == (name, layer)]
        document["looks"] = [look for look in document["looks"] if look not in own]
        left_out.append(name if layer is None else f"{name} layer {layer}")
        # the names of what was left out are a part of the page, too
        excess -= sum(len(_json_without_markup(look)) + 1 for look in own) - len(left_out[-1]) - 4
    if not document["looks"]:
        raise RegardError(
            f"a page of this trace takes {len(page.text) / 1e6:.1f} MB, and one layer alone is "
            f"more than the {max_bytes / 1e6:.1f} MB allowed: show a shorter text, or allow more"
        )
    return Page(_page(document, left_out, bits, title), tuple(left_out), bits)


def _group(look: Mapping[str, Any]) -> tuple[str, int | None]:
    return look["name"], look.get("layer")


def _groups(trace: Trace) -> list[tuple[str, int | None]]:
    """The layers of all kinds of looks, in the order in which they are left out."""
    groups = dict.fromkeys((look.name, look.layer) for look in trace.looks)
    return sorted(groups, key=lambda group: (group[0] in PREFERRED_LOOKS, group[1] or 0, group[0]))


def _page(document: dict[str, Any], left_out: Sequence[str], bits: int, title: str) -> str:
    rounded = 2**bits if bits in FEWER_BITS else None
    data = {"trace": document, "left_out": list(left_out), "rounded": rounded}
    script, style = bundle(), asset("page.css")
    # nothing runs or loads but this very script and style, whatever the texts of the trace hold
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    heading = escape(truncate(title or f"Regard · {document['task']}", 120))
    return (
        "<!doctype html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{heading}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        "<regard-viewer></regard-viewer>\n"
        "<noscript><p>This page needs JavaScript, which is turned off.</p></noscript>\n"
        f'<script type="application/json" id="trace">{_json_without_markup(data)}</script>\n'
        f'<script type="module">{script}</script>\n</body>\n</html>\n'
    )


def bundle() -> str:
    """All modules of the viewer as one script, and the lines that start it."""
    return "\n".join(_without_imports(asset(f"{name}.js")) for name in (*MODULES, "start"))


def asset(name: str) -> str:
    """The text of a file of the viewer."""
    return (files("regard.show") / "page" / name).read_text("utf-8")


def _without_imports(source: str) -> str:
    """A module without its imports and exports, to be joined with the others in one script."""
    without = re.sub(r"^import\b[^;]*;\n", "", source, flags=re.MULTILINE)
    return re.sub(r"^export (?=(?:async )?(?:function|class|const|let)\b)", "", without, flags=re.M)


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _json_without_markup(data: dict[str, Any]) -> str:
    """JSON in which an HTML parser finds no markup."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
