"""`/openapi.json`, generated from the table of routes for the models that are served."""

import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

from regard import __version__
from regard.serve.api.routes import EVENT_STREAM, ROUTES
from regard.serve.http.problems import PROBLEM_JSON
from regard.serve.http.routing import FORM, JSON, AppState, Route
from regard.serve.served_models import ServedModel
from regard.tasks.shared.json_schema import Schema, array, record, text

PROBLEM: Schema = {
    "type": "object",
    "description": "What is wrong (RFC 9457).",
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
PROBLEM_DESCRIPTIONS = {
    400: "The body is not JSON.",
    401: "The token is missing or wrong.",
    403: "Requests from pages of other origins are not allowed.",
    404: "No such model, run or file.",
    408: "The body did not arrive in time.",
    409: "The model has no weights yet, or does not accept texts.",
    413: "The body is too long.",
    415: "The body has another media type.",
    421: "The host name is not allowed.",
    422: "The request does not match its schema, or the model does not support it.",
    429: "Too many requests: try again later.",
    503: "The server is stopping.",
    504: "No response in time.",
}
DIALECT_MODELS: dict[str, Callable[[ServedModel], bool]] = {
    "openai": lambda model: model.continues_prompts,
    "libretranslate": lambda model: model.languages is not None,
}
"""Models that the routes for clients of another service use."""


def openapi_document(state: AppState) -> dict[str, Any]:
    """The description of this server, with its models, limits and token."""
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        for path, model in _paths(route, state):
            operation = _operation(route, state, path, model)
            paths.setdefault(path, {})[route.method.lower()] = operation
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "Regard",
            "version": __version__,
            "description": "Attention models and their attention maps.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": {"Problem": PROBLEM},
            "responses": {
                str(status): _problem_response(description)
                for status, description in PROBLEM_DESCRIPTIONS.items()
            },
        },
    }
    if state.access.token is not None:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return document


def _paths(route: Route, state: AppState) -> Iterator[tuple[str, ServedModel | None]]:
    """The path, or one per model if the schemas depend on it; none if no model can use it."""
    if route.per_model:
        for model in state.models:
            yield route.path.replace("{id}", quote(model.id, safe="")), model
    elif route.dialect not in DIALECT_MODELS or state.models.select(DIALECT_MODELS[route.dialect]):
        yield route.path, None


def _operation(
    route: Route, state: AppState, path: str, model: ServedModel | None
) -> dict[str, Any]:
    names = re.findall(r"{(\w+)}", path)
    ids = {"id": list(state.models.by_id)}
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": re.sub(r"\W+", "_", f"{route.method.lower()}{path}").strip("_"),
        "tags": [model.id if model else path.strip("/").split("/{")[0]],
        "responses": _responses(route, state, model, bool(names)),
    }
    if names:
        operation["parameters"] = [
            {
                "name": name,
                "in": "path",
                "required": True,
                "schema": text(enum=ids[name]) if name in ids else text(minLength=1, maxLength=255),
            }
            for name in names
        ]
    if route.body is not None:
        content = {JSON: {"schema": route.body(state, model)}}
        if route.form is not None:
            content[FORM] = {"schema": route.form(state)}
        operation["requestBody"] = {"required": True, "content": content}
    if state.access.token is not None and not route.public:
        operation["security"] = [{"token": []}]
    return operation


def _responses(
    route: Route, state: AppState, model: ServedModel | None, has_parameters: bool
) -> dict[str, Any]:
    other_schema = EVENT if route.media_type == EVENT_STREAM else text()
    schema = other_schema if route.response is None else route.response(state, model)
    content: dict[str, Any] = {route.media_type.partition(";")[0]: {"schema": schema}}
    if route.may_stream:
        content[EVENT_STREAM] = {"schema": EVENT}
    problems = {421, 429, *route.problems}
    if route.method == "POST":
        problems |= {400, 403, 408, 413, 415, 422}
    if has_parameters or model is not None:
        problems.add(404)
    if state.access.token is not None and not route.public:
        problems.add(401)
    responses: dict[str, Any] = {"200": {"description": "Success.", "content": content}}
    for status in sorted(problems):
        responses[str(status)] = {"$ref": f"#/components/responses/{status}"}
    return responses


def _problem_response(description: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": description, "content": {PROBLEM_JSON: {"schema": schema}}}
