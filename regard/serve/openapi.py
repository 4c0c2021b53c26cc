"""`/openapi.json`, written from the table of routes for the models that are served."""

import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

from regard import __version__
from regard.serve.desk import FORM, JSON, Desk, Route
from regard.serve.problems import MEDIA
from regard.serve.routes import EVENTS, ROUTES
from regard.serve.schemas import Schema, array, record, text
from regard.serve.shelf import Served

PROBLEM: Schema = {
    "type": "object",
    "description": "What went wrong (RFC 9457).",
    "properties": {
        "type": text(),
        "title": text(),
        "status": {"type": "integer"},
        "detail": text(),
        "errors": array(record({"pointer": text(), "detail": text()})),
    },
    "required": ["type", "title", "status", "detail"],
}
EVENT: Schema = {"type": "object", "description": "An event.", "properties": {"data": text()}}
TOLD = {
    400: "The body is not JSON.",
    401: "The token is missing or wrong.",
    403: "Pages of other origins may not use this server.",
    404: "No such model, run or file.",
    408: "The body did not arrive in time.",
    409: "The model has no weights yet, or takes no texts.",
    413: "The body is longer than allowed.",
    415: "The body is of another type.",
    421: "The request calls this server by another name.",
    422: "The request is not as its schema says, or the model cannot do what it asks for.",
    429: "Too much at once: come again.",
    503: "The server is stopping.",
    504: "No answer in time.",
}


def document(desk: Desk) -> dict[str, Any]:
    """The whole description, true for this server with its models, limits and token."""
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        for path, served in _addresses(route, desk):
            paths.setdefault(path, {})[route.method.lower()] = _operation(route, desk, path, served)
    found: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "Regard",
            "version": __version__,
            "description": "Attention models, and where they look.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": {"Problem": PROBLEM},
            "responses": {str(status): _problem(told) for status, told in TOLD.items()},
        },
    }
    if desk.access.token is not None:
        found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return found


def _addresses(route: Route, desk: Desk) -> Iterator[tuple[str, Served | None]]:
    """The path, or one for each model where requests look different from model to model."""
    if not route.by_model:
        fits: dict[str, Callable[[Served], bool]] = {
            "openai": lambda one: one.writes,
            "libretranslate": lambda one: one.task == "translation",
        }
        if desk.shelf.where(fits.get(route.dialect, lambda one: True)):
            yield route.path, None
        return
    for one in desk.shelf.served.values():
        yield route.path.replace("{id}", quote(one.id, safe="")), one


def _operation(route: Route, desk: Desk, path: str, served: Served | None) -> dict[str, Any]:
    names = re.findall(r"{(\w+)}", path)
    ids = {"id": list(desk.shelf.served)}
    made: dict[str, Any] = {
        "summary": route.summary,
        "operationId": re.sub(r"\W+", "_", f"{route.method.lower()}{path}").strip("_"),
        "tags": [served.id if served else path.strip("/").split("/{")[0]],
        "responses": _responses(route, desk, served, bool(names)),
    }
    if names:
        made["parameters"] = [
            {
                "name": name,
                "in": "path",
                "required": True,
                "schema": text(enum=ids[name]) if name in ids else text(minLength=1),
            }
            for name in names
        ]
    if route.body is not None:
        content = {JSON: {"schema": route.body(desk, served)}}
        if route.form is not None:
            content[FORM] = {"schema": route.form(desk)}
        made["requestBody"] = {"required": True, "content": content}
    if desk.access.token is not None and not route.public:
        made["security"] = [{"token": []}]
    return made


def _responses(route: Route, desk: Desk, served: Served | None, named: bool) -> dict[str, Any]:
    plain = EVENT if route.media == EVENTS else text()
    schema = plain if route.answer is None else route.answer(desk, served)
    content: dict[str, Any] = {route.media.partition(";")[0]: {"schema": schema}}
    if route.streams:
        content[EVENTS] = {"schema": EVENT}
    wrong = {421, 429, *route.problems}
    if route.method == "POST":
        wrong |= {400, 403, 408, 413, 415, 422}
    if named or served is not None:
        wrong.add(404)
    if desk.access.token is not None and not route.public:
        wrong.add(401)
    answers: dict[str, Any] = {"200": {"description": "The answer.", "content": content}}
    for status in sorted(wrong):
        answers[str(status)] = {"$ref": f"#/components/responses/{status}"}
    return answers


def _problem(told: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": told, "content": {MEDIA: {"schema": schema}}}
