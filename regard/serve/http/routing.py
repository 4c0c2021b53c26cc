"""Routes: the checks that every request passes before it reaches its handler."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from regard.errors import RegardError
from regard.serve.evidence_folders import EvidenceFolders
from regard.serve.faithfulness_jobs import FaithfulnessJobs
from regard.serve.http.access import Access
from regard.serve.http.problems import Problem, too_many_requests
from regard.serve.http.prometheus import ServerMetrics
from regard.serve.http.strict_json import dumps, loads, replace_surrogates
from regard.serve.limits import LARGE_BODY, Limits
from regard.serve.served_models import ServedModel, ServedModels
from regard.tasks.shared.json_schema import Schema, schema_errors

JSON, FORM = "application/json", "application/x-www-form-urlencoded"
NOT_FOUND_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Page not found · Regard</title>
<link rel="stylesheet" href="/page/page.css">
<link rel="stylesheet" href="/static/app.css">
</head>
<body>
<main class="rg-docs">
<p class="rg-docs-top"><a class="rg-brand" href="/">Regard</a></p>
<h1>Page not found</h1>
<p>This server has nothing at this address.</p>
<p><a href="/">Home</a> · <a href="/docs">HTTP interface</a></p>
</main>
</body>
</html>
"""
MAX_REPORTED_ERRORS = 10
"""Errors of a request that its problem lists."""


@dataclass
class AppState:
    """What the handlers of a server share."""

    models: ServedModels
    limits: Limits
    access: Access
    evidence: EvidenceFolders = field(default_factory=EvidenceFolders)
    metrics: ServerMetrics = field(init=False)
    measurements: FaithfulnessJobs = field(default_factory=FaithfulnessJobs)
    stopping: bool = False
    """Whether the server is shutting down: event streams end, `/readyz` says so."""

    def __post_init__(self) -> None:
        self.metrics = ServerMetrics(self.models)


@dataclass(frozen=True)
class Call:
    """One request that passed all checks."""

    request: Request
    state: AppState
    body: Any = None

    @property
    def model(self) -> ServedModel:
        """The model that the path names."""
        return self.state.models[self.request.path_params["id"]]


@dataclass(frozen=True)
class Route:
    """One method of one path: its handler, and the schemas that check and document it."""

    method: str
    path: str
    summary: str
    handle: Callable[[Call], Coroutine[Any, Any, Response]]
    response: Callable[[AppState, ServedModel | None], Schema] | None = None
    """The schema of a JSON response."""
    media_type: str = JSON
    may_stream: bool = False
    """Whether the response may be an event stream as well."""
    body: Callable[[AppState, ServedModel | None], Schema] | None = None
    """The schema of the request's body."""
    form: Callable[[AppState], Schema] | None = None
    """The schema of the same request as a form, if clients of other services send one."""
    dialect: str = ""
    """The service whose clients this route is for: `libretranslate` or `openai`."""
    per_model: bool = False
    """Whether the schemas depend on the model."""
    public: bool = False
    """Whether no token is needed."""
    problems: tuple[int, ...] = ()
    """Statuses that only some routes have."""

    async def respond(self, state: AppState, request: Request) -> Response:
        """The response to a request, or the problem with it."""
        request.scope["regard.route"] = self.path
        limits, metrics = state.limits, state.metrics
        try:
            call = await self._check(state, request)
            if metrics.running >= limits.concurrent_requests:
                raise too_many_requests(
                    f"{limits.concurrent_requests} requests are being handled, which is the maximum"
                )
            metrics.running += 1
            try:
                return await _while_connected(request, self.handle(call), limits.request_seconds)
            finally:
                metrics.running -= 1
        except Problem as problem:
            return problem.response(self.dialect)
        except TimeoutError:
            detail = f"no response within {limits.request_seconds:g} seconds"
            return Problem(504, detail).response(self.dialect)
        except RegardError:
            # its message may name files of the server
            return Problem(409, "files of this run cannot be read now").response(self.dialect)
        except ClientDisconnect:
            return Response(status_code=400)

    async def _check(self, state: AppState, request: Request) -> Call:
        """Check the origin, the token and the body, in this order.

        LibreTranslate's clients send the token in the body, as `api_key`: there the body is parsed
        before the token is checked, and validated after it.
        """
        access, token_in_body = state.access, self.dialect == "libretranslate"
        if self.method == "POST":
            access.check_origin(request.headers)
        if not (self.public or token_in_body):
            access.check_token(request.headers)
        if self.body is None:
            if token_in_body and access.token is not None:
                raw = await _read_body(request, state)
                access.check_token(request.headers, _parse_form(raw).get("api_key"))
            return Call(request, state)
        body = await self._parse_body(state, request)
        if token_in_body:
            key = body.get("api_key") if isinstance(body, dict) else None
            access.check_token(request.headers, key if isinstance(key, str) else None)
        errors = list(schema_errors(self._body_schema(state, request), body))
        if errors:
            listed = [error._asdict() for error in errors[:MAX_REPORTED_ERRORS]]
            raise Problem(422, errors[0].detail, listed)
        return Call(request, state, body)

    def _body_schema(self, state: AppState, request: Request) -> Schema:
        if self.form is not None and _media_type(request) == FORM:
            return self.form(state)
        assert self.body is not None
        model_id = request.path_params.get("id")
        return self.body(state, None if model_id is None else state.models[model_id])

    async def _parse_body(self, state: AppState, request: Request) -> Any:
        media_type = _media_type(request)
        if media_type != JSON and not (self.form is not None and media_type == FORM):
            raise Problem(415, f"expected a body of type {JSON}")
        if request.headers.get("content-encoding", "identity") != "identity":
            raise Problem(415, "expected a body without content encoding")
        raw = await _read_body(request, state)
        if media_type == FORM:
            return _parse_form(raw)
        try:
            return loads(raw)
        except ValueError as error:
            raise Problem(400, f"the body is not JSON: {error}") from error


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _while_connected(
    request: Request, handling: Coroutine[Any, Any, Response], seconds: float
) -> Response:
    """The response of a handler, which is cancelled when the client disconnects or time is up."""
    handler = asyncio.create_task(handling)
    disconnect = asyncio.create_task(_wait_for_disconnect(request))
    try:
        await asyncio.wait(
            {handler, disconnect}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        if handler.done():
            return handler.result()
        raise ClientDisconnect if disconnect.done() else TimeoutError
    finally:
        handler.cancel()
        disconnect.cancel()
        # both end before the response is sent, which reads from the connection as well
        await asyncio.wait({handler, disconnect})
        _ = handler.cancelled() or handler.exception()  # which would be logged if nobody asked


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _read_body(request: Request, state: AppState) -> bytes:
    """The body, refused as soon as it is too long, whatever length its header claims."""
    limits, metrics = state.limits, state.metrics
    too_long = Problem(413, f"the body is longer than {limits.body_bytes} bytes")
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > limits.body_bytes:
        raise too_long
    parts, size, large = [], 0, False
    try:
        with anyio.fail_after(limits.body_seconds):
            async for part in request.stream():
                size += len(part)
                if size > limits.body_bytes:
                    raise too_long
                if size > LARGE_BODY and not large:
                    if metrics.large_bodies >= limits.large_bodies:
                        raise too_many_requests(
                            f"{limits.large_bodies} large requests are arriving, the maximum"
                        )
                    metrics.large_bodies, large = metrics.large_bodies + 1, True
                parts.append(part)
    except TimeoutError:
        raise Problem(408, f"the body did not arrive in {limits.body_seconds:g} seconds") from None
    finally:
        metrics.large_bodies -= large
    return b"".join(parts)


def _parse_form(raw: bytes) -> dict[str, str]:
    try:
        text = raw.decode("utf-8")
        pairs = parse_qsl(text, keep_blank_values=True, errors="replace", max_num_fields=20)
    except ValueError as error:
        raise Problem(400, f"the body is not a form: {error}") from error
    if len(dict(pairs)) < len(pairs):
        raise Problem(422, "a field occurs twice")
    return {name: replace_surrogates(value) for name, value in pairs}


def json_response(value: Any) -> Response:
    """A JSON response."""
    return Response(dumps(value), media_type=JSON)


async def unknown_route(request: Request, error: Exception) -> Response:
    """The problem for a path or method that no route has."""
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 405:
        detail = f"expected {headers.get('Allow', 'another method')}"
        return Problem(error.status_code, detail, headers=headers).response()
    return not_found(request, "no such path")


def not_found(request: Request, detail: str) -> Response:
    """Status 404: a page for browsers, a problem for programs."""
    accepted = [
        part.partition(";")[0].strip() for part in request.headers.get("accept", "").split(",")
    ]
    if "text/html" in accepted:
        return Response(NOT_FOUND_PAGE, 404, media_type="text/html")
    return Problem(404, detail).response()
