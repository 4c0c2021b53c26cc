"""The page's own files: HTML, scripts and styles from the package, nothing else."""

import hashlib
from importlib import resources
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from regard.serve.problems import Problem
from regard.show.onefile import page
from regard.trace import Trace

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".mjs": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
SCREENS = (
    "translation",
    "language",
    "self-attention",
    "sentiment",
    "entities",
    "gradient",
    "steps",
    "training",
    "compare",
    "trust",
    "length",
)
"""Addresses that lead to the page, which shows what they name."""


def _files(folder: str, package: str) -> dict[str, Path]:
    """The files of a folder by their path in it; a request's path is looked up here, not opened."""
    root = Path(str(resources.files(package))) / folder
    return {
        path.relative_to(root).as_posix(): path
        for path in (root.rglob("*") if root.is_dir() else ())
        if path.suffix in TYPES and path.is_file()
    }


def static(name: str) -> tuple[bytes, str]:
    """A file of `serve/static`, and its type."""
    return _read(_files("static", "regard.serve"), name)


def element(name: str) -> tuple[bytes, str]:
    """A file of `show/page`: the custom elements that one-file pages use too."""
    return _read(_files("page", "regard.show"), name)


def onefile(name: str) -> tuple[bytes, str]:
    """A page that stands alone, with no trace in it yet: the app puts in the one it shows."""
    return page(Trace("none", {}, (), ""), title="Regard").encode(), TYPES[Path(name).suffix]


def _read(files: dict[str, Path], name: str) -> tuple[bytes, str]:
    if name not in files:
        raise Problem(404, "no such file")
    return files[name].read_bytes(), TYPES[files[name].suffix]


def answer(request: Request, found: tuple[bytes, str]) -> Response:
    """A file, or the word that the browser's copy is still right."""
    content, kind = found
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {"etag": tag, "cache-control": "no-cache"}
    known = [one.strip() for one in request.headers.get("if-none-match", "").split(",")]
    if tag in known or f"W/{tag}" in known:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=kind)
