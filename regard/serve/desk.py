"""The desk where requests are taken: one table row a route, one way in for all of them."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from regard.errors import RegardError
from regard.serve.counting import Counts
from regard.serve.gates import Access
from regard.serve.limits import Limits
from regard.serve.plain import dumps, loads, whole_characters
from regard.serve.problems import Problem, busy
from regard.serve.schemas import Schema, faults
from regard.serve.shelf import Served, Shelf

JSON, FORM = "application/json", "application/x-www-form-urlencoded"
SHOWN = 10
"""Faults of a request that are told."""


@dataclass
class Desk:
    """All that answering needs."""

    shelf: Shelf
    limits: Limits
    access: Access
    counts: Counts = field(default_factory=Counts)
    stopping: bool = False


@dataclass(frozen=True)
class Call:
    """One request that was found right."""

    request: Request
    desk: Desk
    body: Any = None

    @property
    def served(self) -> Served:
        """The run that the address names."""
        return self.desk.shelf[self.request.path_params["id"]]


@dataclass(frozen=True)
class Route:
    """One address: what is asked there, and who answers."""

    method: str
    path: str
    summary: str
    handle: Callable[[Call], Awaitable[Response]]
    answer: Callable[[Desk, Served | None], Schema] | None = None
    """The schema of a JSON answer."""
    media: str = JSON
    streams: bool = False
    """Whether the answer may be an event stream as well."""
    body: Callable[[Desk, Served | None], Schema] | None = None
    form: Callable[[Desk], Schema] | None = None
    """The schema of the same request as a form, where other services' clients send one."""
    dialect: str = ""
    """Whose clients are served: `libretranslate` or `openai`."""
    by_model: bool = False
    """Whether requests look different from model to model."""
    public: bool = False
    """Whether it is answered without a token."""
    problems: tuple[int, ...] = ()

    async def respond(self, desk: Desk, request: Request) -> Response:
        """Answer a request, or say what is wrong with it."""
        request.scope["regard.route"] = self.path
        counts = desk.counts
        try:
            if counts.running >= desk.limits.concurrent:
                most = desk.limits.concurrent
                raise busy(f"{most} requests are being worked on, which is the most at once")
            counts.running += 1
            try:
                call = await self._take(desk, request)
                with anyio.fail_after(desk.limits.seconds):
                    return await self.handle(call)
            finally:
                counts.running -= 1
        except Problem as problem:
            return problem.response(self.dialect)
        except TimeoutError:
            most_seconds = f"{desk.limits.seconds:g} seconds"
            return Problem(504, f"no answer within {most_seconds}").response(self.dialect)
        except RegardError:
            return Problem(409, "files of this run cannot be read now").response(self.dialect)
        except ClientDisconnect:
            return Response(status_code=400)

    async def _take(self, desk: Desk, request: Request) -> Call:
        if self.method == "POST":
            desk.access.origin(request.headers)
        key_inside = self.dialect == "libretranslate"
        if not (self.public or key_inside):
            desk.access.bearer(request.headers)
        if self.body is None:
            if key_inside and desk.access.token is not None:
                raw = await _read(request, desk.limits)
                desk.access.bearer(request.headers, _form(raw).get("api_key"))
            return Call(request, desk)
        found = await self._body(desk, request)
        if key_inside:
            key = found.get("api_key") if isinstance(found, dict) else None
            desk.access.bearer(request.headers, key if isinstance(key, str) else None)
        schema = self._schema(desk, request)
        wrong = list(faults(schema, found))
        if wrong:
            errors = [{"pointer": where, "detail": what} for where, what in wrong[:SHOWN]]
            told = f"{wrong[0][0] or 'the request'}: {wrong[0][1]}"
            raise Problem(422, told, errors)
        return Call(request, desk, found)

    def _schema(self, desk: Desk, request: Request) -> Schema:
        if self.form is not None and _media(request) == FORM:
            return self.form(desk)
        assert self.body is not None
        name = request.path_params.get("id")
        return self.body(desk, None if name is None else desk.shelf[name])

    async def _body(self, desk: Desk, request: Request) -> Any:
        media = _media(request)
        if media != JSON and not (self.form is not None and media == FORM):
            raise Problem(415, f"expected a body of type {JSON}")
        if request.headers.get("content-encoding", "identity") != "identity":
            raise Problem(415, "expected a body without content encoding")
        raw = await _read(request, desk.limits)
        if media == FORM:
            return _form(raw)
        try:
            return loads(raw)
        except ValueError as error:
            raise Problem(400, f"the body is not JSON: {error}") from error


def _media(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _read(request: Request, limits: Limits) -> bytes:
    too_much = Problem(413, f"the body is longer than {limits.body} bytes, which is the most")
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > limits.body:
        raise too_much
    parts, size = [], 0
    try:
        with anyio.fail_after(limits.reading):
            async for part in request.stream():
                size += len(part)
                if size > limits.body:
                    raise too_much
                parts.append(part)
    except TimeoutError:
        raise Problem(408, f"the body did not arrive in {limits.reading:g} seconds") from None
    return b"".join(parts)


def _form(raw: bytes) -> dict[str, str]:
    try:
        text = raw.decode("utf-8")
        found = parse_qsl(text, keep_blank_values=True, errors="replace", max_num_fields=20)
    except ValueError as error:
        raise Problem(400, f"the body is not a form: {error}") from error
    if len(dict(found)) < len(found):
        raise Problem(422, "a field is there twice")
    return {name: whole_characters(value) for name, value in found}


def answered(value: Any) -> Response:
    """A JSON answer."""
    return Response(dumps(value), media_type=JSON)


async def done(future: Any) -> Any:
    """What a model's thread will return."""
    return await asyncio.wrap_future(future)


async def not_found(request: Request, error: Exception) -> Response:
    """Addresses and methods that are not there, as problems."""
    assert isinstance(error, HTTPException)
    allow = dict(error.headers or {})
    if error.status_code == 405:
        problem = Problem(405, f"expected {allow.get('Allow', 'another method')}", headers=allow)
    else:
        problem = Problem(error.status_code, "nothing is here", headers=allow)
    return problem.response()
