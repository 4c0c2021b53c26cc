"""The files of the app: HTML, scripts and styles from the package, nothing else."""

import hashlib
import json
from importlib import resources
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from regard.serve.http.problems import Problem
from regard.show.html_page import render_page
from regard.trace import Trace

FileContent = tuple[bytes, str]
"""The bytes of a file, and its media type."""

MEDIA_TYPES = {
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


def _screen_names() -> tuple[str, ...]:
    text = resources.files("regard.serve").joinpath("static/screens.json").read_text("utf-8")
    return tuple(screen["name"] for screen in json.loads(text))


SCREENS = _screen_names()
"""Paths that lead to the app, which reads the same list and opens the screen of that name."""


def _files(folder: str, package: str) -> dict[str, Path]:
    """The files of a folder by relative path; a requested name is looked up here, never opened."""
    root = Path(str(resources.files(package))) / folder
    return {
        path.relative_to(root).as_posix(): path
        for path in (root.rglob("*") if root.is_dir() else ())
        if path.suffix in MEDIA_TYPES and path.is_file()
    }


def app_file(name: str) -> FileContent:
    """A file of `serve/static`."""
    return _read(_files("static", "regard.serve"), name)


def element_file(name: str) -> FileContent:
    """A file of `show/page`: the custom elements that one-file pages use too."""
    return _read(_files("page", "regard.show"), name)


def empty_one_file_page(name: str) -> FileContent:
    """A one-file page without a trace; the app inserts the one that it shows."""
    page = render_page(Trace("none", {}, (), ""), title="Regard")
    return page.encode(), MEDIA_TYPES[Path(name).suffix]


def _read(files: dict[str, Path], name: str) -> FileContent:
    if name not in files:
        raise Problem(404, "no such file")
    return files[name].read_bytes(), MEDIA_TYPES[files[name].suffix]


def file_response(request: Request, file: FileContent) -> Response:
    """A file, or 304 if the browser's copy is still current."""
    content, media_type = file
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {"etag": tag, "cache-control": "no-cache"}
    known = [known.strip() for known in request.headers.get("if-none-match", "").split(",")]
    if tag in known or f"W/{tag}" in known:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=media_type)
