"""One HTML file that holds everything: the trace, the viewer, its style; it asks nobody."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html import escape
from importlib.resources import files
from typing import Any

from regard.errors import RegardError
from regard.show.lettering import fit
from regard.trace import PACKED_FROM, Trace, document

MODULES = (
    *("colours", "words", "weights", "scales", "elements", "matrix", "links", "shading", "heads"),
    *("legend", "table", "status", "pictures", "detail", "account", "viewer"),
)
"""In the order in which they need each other; a served page imports the same files."""
BUDGET = 10 * 10**6
"""Bytes of a page, unless said otherwise."""
FINE_UP_TO = 1_000_000
"""Numbers in a page that keep all 16 bits; with more of them 14 are kept."""


def page(trace: Trace, budget: int | None = BUDGET, title: str = "") -> str:
    """The trace as one HTML document that opens from a disk, without a network.

    Within `budget` bytes: when the looks do not fit, whole layers are left out from the first one
    on (the last is kept longest), and the page says which. None means no limit.
    """
    kept, left_out = trace, list[str]()
    text = _page(kept, left_out, title)
    while budget is not None and len(text) > budget:
        layers = sorted({look.layer for look in kept.looks if look.layer is not None})
        if len(layers) < 2:
            raise RegardError(
                f"a page of this trace takes {len(text) / 1e6:.1f} MB, and its last layer alone is "
                f"more than the {budget / 1e6:.1f} MB allowed: show fewer looks, or allow more"
            )
        share = budget / len(text)
        drop = set(layers[: max(1, min(len(layers) - 1, int(len(layers) * (1 - share))))])
        left_out += [f"layer {layer}" for layer in sorted(drop)]
        kept = replace(kept, looks=tuple(look for look in kept.looks if look.layer not in drop))
        text = _page(kept, left_out, title)
    return text


def _page(trace: Trace, left_out: list[str], title: str) -> str:
    numbers = sum(look.weights.size for look in trace.looks)
    bits = 16 if numbers <= FINE_UP_TO else 14
    data = {"trace": document(trace, PACKED_FROM, bits), "left_out": left_out}
    script, style = bundle(), asset("page.css")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    heading = escape(fit(title or f"Regard · {trace.task}", 120))
    return (
        "<!doctype html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{heading}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        "<regard-viewer></regard-viewer>\n"
        "<noscript><p>This page draws with JavaScript, which is switched off.</p></noscript>\n"
        f'<script type="application/json" id="trace">{_inert(data)}</script>\n'
        f'<script type="module">{script}</script>\n</body>\n</html>\n'
    )


def bundle() -> str:
    """All modules of the viewer as one script, with the line that starts it."""
    return "\n".join(_unwrapped(asset(f"{name}.js")) for name in (*MODULES, "start"))


def asset(name: str) -> str:
    """A file of the viewer."""
    return (files("regard.show") / "page" / name).read_text("utf-8")


def _unwrapped(source: str) -> str:
    """A module without its imports and exports, for a script that holds all of them."""
    without = re.sub(r"^import\b[^;]*;\n", "", source, flags=re.MULTILINE)
    return re.sub(r"^export (?=(?:async )?(?:function|class|const|let)\b)", "", without, flags=re.M)


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _inert(data: dict[str, Any]) -> str:
    """JSON that no HTML reader can take for markup."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
