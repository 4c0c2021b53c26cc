"""The whole application: routes, the page's files, the gate around them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio.to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as Address
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from regard.serve import pages
from regard.serve.desk import Desk, Route, answered, not_found
from regard.serve.gates import Gate
from regard.serve.openapi import document
from regard.serve.problems import Problem
from regard.serve.routes import ROUTES

Answer = Callable[[Request], Awaitable[Response]]


def application(desk: Desk, tell: Callable[[str], None] = lambda line: None) -> ASGIApp:
    """The application of these models; `tell` hears of our own mistakes, by their place."""
    addresses = _routes(desk) + _page(desk)

    @asynccontextmanager
    async def lifespan(app: object) -> AsyncIterator[None]:
        yield
        desk.stopping = True
        await anyio.to_thread.run_sync(desk.shelf.close, desk.limits.seconds)

    router = Router(addresses, redirect_slashes=False, lifespan=lifespan)
    return Gate(_Strict(router), desk.access, desk.counts, tell)


def _routes(desk: Desk) -> list[Address]:
    """One address a path, so that a wrong method is told all the right ones."""
    paths: dict[str, dict[str, Route]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method] = route

    def answer(methods: dict[str, Route]) -> Answer:
        async def respond(request: Request) -> Response:
            method = "GET" if request.method == "HEAD" else request.method
            return await methods[method].respond(desk, request)

        return respond

    return [Address(path, answer(methods), methods=[*methods]) for path, methods in paths.items()]


class _Strict:
    """A router whose own answers are problems too."""

    def __init__(self, router: Router) -> None:
        self.router = router

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = self  # makes the router raise where it would answer in plain text
        try:
            await self.router(scope, receive, send)
        except HTTPException as error:
            response = await not_found(Request(scope), error)
            await response(scope, receive, send)


def _page(desk: Desk) -> list[Address]:
    def file(kind: Callable[[str], tuple[bytes, str]], fixed: str = "") -> Answer:
        async def answer(request: Request) -> Response:
            request.scope["regard.route"] = "page"
            name = fixed or request.path_params["name"]
            try:
                found = await anyio.to_thread.run_sync(kind, name)
            except Problem as problem:
                return problem.response()
            return pages.answer(request, found)

        return answer

    async def description(request: Request) -> Response:
        request.scope["regard.route"] = "/openapi.json"
        return answered(document(desk))

    index = file(pages.static, "index.html")
    return [
        Address("/", index),
        *(Address(f"/{screen}", index) for screen in pages.SCREENS),
        Address("/docs", file(pages.static, "docs.html")),
        Address("/openapi.json", description),
        Address("/static/{name:path}", file(pages.static)),
        Address("/page/onefile.html", file(pages.onefile, "onefile.html")),
        Address("/page/{name:path}", file(pages.element)),
    ]
