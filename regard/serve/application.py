"""The ASGI application: the API, the files of the page, and the middleware around them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio.to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from regard.serve import static_files
from regard.serve.api.routes import ROUTES
from regard.serve.http.access import AccessMiddleware
from regard.serve.http.openapi import openapi_document
from regard.serve.http.problems import Problem
from regard.serve.http.routing import AppState, Route, json_response, not_found, unknown_route

Endpoint = Callable[[Request], Awaitable[Response]]


def create_app(state: AppState, on_error: Callable[[str], None] = lambda line: None) -> ASGIApp:
    """The application; `on_error` receives the type and place of internal errors."""

    @asynccontextmanager
    async def lifespan(app: object) -> AsyncIterator[None]:
        yield
        state.stopping = True
        await anyio.to_thread.run_sync(state.measurements.close, state.limits.request_seconds)
        await anyio.to_thread.run_sync(state.models.close, state.limits.request_seconds)

    routes = _api_routes(state) + _page_routes(state)
    router = Router(routes, redirect_slashes=False, lifespan=lifespan)
    return AccessMiddleware(_ProblemRouter(router), state.access, state.metrics, on_error)


def _api_routes(state: AppState) -> list[StarletteRoute]:
    """One route per path, so that the problem with a wrong method names all the right ones."""
    paths: dict[str, dict[str, Route]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method] = route

    def endpoint(methods: dict[str, Route]) -> Endpoint:
        async def respond(request: Request) -> Response:
            method = "GET" if request.method == "HEAD" else request.method
            return await methods[method].respond(state, request)

        return respond

    return [
        StarletteRoute(path, endpoint(methods), methods=[*methods])
        for path, methods in paths.items()
    ]


class _ProblemRouter:
    """A router that answers unknown paths and methods with problems."""

    def __init__(self, router: Router) -> None:
        self.router = router

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = self  # makes the router raise where it would respond in plain text
        try:
            await self.router(scope, receive, send)
        except HTTPException as error:
            response = await unknown_route(Request(scope), error)
            await response(scope, receive, send)


def _page_routes(state: AppState) -> list[StarletteRoute]:
    def file_endpoint(
        read: Callable[[str], static_files.FileContent], fixed_name: str = ""
    ) -> Endpoint:
        async def respond(request: Request) -> Response:
            request.scope["regard.route"] = "page"
            name = fixed_name or request.path_params["name"]
            try:
                content = await anyio.to_thread.run_sync(read, name)
            except Problem as problem:
                return not_found(request, problem.detail)
            return static_files.file_response(request, content)

        return respond

    async def openapi(request: Request) -> Response:
        request.scope["regard.route"] = "/openapi.json"
        try:
            state.access.check_token(request.headers)  # it names the models
        except Problem as problem:
            return problem.response()
        return json_response(openapi_document(state))

    index = file_endpoint(static_files.app_file, "index.html")
    return [
        StarletteRoute("/", index),
        *(StarletteRoute(f"/{screen}", index) for screen in static_files.SCREENS),
        StarletteRoute("/docs", file_endpoint(static_files.app_file, "docs.html")),
        StarletteRoute("/openapi.json", openapi),
        StarletteRoute("/static/{name:path}", file_endpoint(static_files.app_file)),
        StarletteRoute(
            "/page/onefile.html", file_endpoint(static_files.empty_one_file_page, "onefile.html")
        ),
        StarletteRoute("/page/{name:path}", file_endpoint(static_files.element_file)),
    ]
