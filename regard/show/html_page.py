"""One HTML file with the trace, the viewer and its style, which needs no network."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html import escape
from importlib.resources import files
from typing import Any

from regard.errors import RegardError
from regard.show.text_width import truncate
from regard.trace import Trace, to_document

MODULES = (
    *("colours", "token-text", "units", "weights", "colour-scale", "elements", "matrix", "links"),
    *("text-shading", "head-grid", "legend", "table", "status-line", "svg-export", "row-detail"),
    *("trace-summary", "viewer"),
)
"""In the order in which they need each other; the app imports the same files."""
MAX_PAGE_BYTES = 10 * 10**6
"""Size of a page (default)."""
FULL_PRECISION_WEIGHTS = 1_000_000
"""Pages with at most this many weights keep all 16 bits of each; larger ones keep 14."""


def render_page(trace: Trace, max_bytes: int | None = MAX_PAGE_BYTES, title: str = "") -> str:
    """The trace as one HTML document that opens from disk, without a network.

    When the looks do not fit into `max_bytes`, whole layers are left out, the first layers first,
    and the page says which. None means no limit.
    """
    kept, left_out = trace, list[str]()
    text = _page(kept, left_out, title)
    while max_bytes is not None and len(text) > max_bytes:
        layers = sorted({look.layer for look in kept.looks if look.layer is not None})
        if len(layers) < 2:
            raise RegardError(
                f"a page of this trace takes {len(text) / 1e6:.1f} MB, and its last layer alone is "
                f"more than the {max_bytes / 1e6:.1f} MB allowed: show fewer looks, or allow more"
            )
        dropped = set(layers[: _layers_to_drop(len(layers), len(text) / max_bytes)])
        left_out += [f"layer {layer}" for layer in sorted(dropped)]
        kept = replace(kept, looks=tuple(look for look in kept.looks if look.layer not in dropped))
        text = _page(kept, left_out, title)
    return text


def _layers_to_drop(layers: int, excess: float) -> int:
    """How many of the layers to leave out of a page that is `excess` times as large as allowed.

    Layers compress differently, so this is an estimate: at least one, so that the caller's loop
    ends, and rounded down, so that no layer is lost that would have fitted.

    >>> _layers_to_drop(12, 2.0), _layers_to_drop(12, 1.01), _layers_to_drop(2, 100.0)
    (6, 1, 1)
    """
    return max(1, min(layers - 1, int(layers * (1 - 1 / excess))))


def _page(trace: Trace, left_out: list[str], title: str) -> str:
    numbers = sum(look.weights.size for look in trace.looks)
    bits = 16 if numbers <= FULL_PRECISION_WEIGHTS else 14
    data = {"trace": to_document(trace, bits=bits), "left_out": left_out}
    script, style = bundle(), asset("page.css")
    # nothing runs or loads but this very script and style, whatever the texts of the trace hold
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    heading = escape(truncate(title or f"Regard · {trace.task}", 120))
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
