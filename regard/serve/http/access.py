"""Access control: the host, origin and token of a request; and the headers of every response."""

import hmac
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.serve.http.problems import Problem
from regard.serve.http.prometheus import ServerMetrics

LOOPBACK = ("127.0.0.1", "localhost", "::1")

SECURITY_HEADERS = {
    "content-security-policy": (
        "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; "
        "form-action 'self'; frame-ancestors "
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
"""Headers of every response; the sites that may embed the app follow at the end of the policy."""
ORIGIN = re.compile(r"https?://(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(:[0-9]{1,5})?", re.IGNORECASE)
"""An origin (https://www.rfc-editor.org/rfc/rfc6454#section-6): scheme, host, perhaps a port."""
HOST = re.compile(
    r"(?P<name>\[[0-9a-f:.]*:[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?", re.IGNORECASE
)
"""A Host header (RFC 9110): a name or an address, and perhaps a port. Nothing else passes, since
programs differ in what they make of `localhost#.evil.example`."""
HTTP_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE")


@dataclass(frozen=True)
class Access:
    """Which requests are accepted."""

    hosts: frozenset[str] = frozenset(LOOPBACK)
    """Names of this server that a request's Host header may have. A page of another site whose own
    name was made to resolve to this machine (DNS rebinding) sends another one."""
    token: str | None = None
    embedding: tuple[str, ...] = ()
    """Origins whose pages may show the app in a frame; others may not, since a page around the app
    could make users click what they do not see."""

    def check_host(self, headers: Headers) -> None:
        """Refuse a request for a host name that is not this server's."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or _hostname(hosts[0]) not in self.hosts:
            raise Problem(421, "this host name is not allowed; see --allow-host")

    @staticmethod
    def check_framing(scope: Scope, headers: Headers) -> None:
        """Refuse a request whose end two programs could see at different places.

        https://www.rfc-editor.org/rfc/rfc9112#section-6.1: a request with both headers, or chunks
        in HTTP/1.0, may be an attempt to hide a second request from a proxy. The connection is
        closed, since what follows cannot be trusted.
        """
        if "transfer-encoding" not in headers:
            return
        close = {"connection": "close"}
        if "content-length" in headers:
            detail = "the request has both Content-Length and Transfer-Encoding"
            raise Problem(400, detail, headers=close)
        if scope["http_version"] == "1.0":
            raise Problem(400, "HTTP/1.0 has no Transfer-Encoding", headers=close)

    def check_origin(self, headers: Headers) -> None:
        """Refuse requests from pages of other origins."""
        host = headers["host"].lower()
        for origin in headers.getlist("origin"):
            if origin.lower() not in (f"http://{host}", f"https://{host}"):
                raise Problem(403, "requests from pages of other origins are not allowed")
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            raise Problem(403, "requests from pages of other sites are not allowed")

    def check_token(self, headers: Headers, key: str | None = None) -> None:
        """Refuse a request without the token, in the header or, as `key`, in the body."""
        if self.token is None:
            return
        scheme, _, credentials = headers.get("authorization", "").partition(" ")
        candidates = [credentials.strip() if scheme.lower() == "bearer" else "", key or ""]
        token = self.token.encode()
        if not any(hmac.compare_digest(candidate.encode(), token) for candidate in candidates):
            raise Problem(
                401,
                "the token is missing or wrong: send it as Authorization: Bearer …",
                headers={"www-authenticate": "Bearer"},
            )


def _hostname(host: str) -> str | None:
    match = HOST.fullmatch(host)
    return None if match is None else match["name"].strip("[]").lower().removesuffix(".")


def normalize_hosts(hosts: Iterable[str]) -> frozenset[str]:
    """Host names in the form in which they are compared."""
    return frozenset(host.strip("[]").lower().rstrip(".") for host in hosts)


class AccessMiddleware:
    """The outermost layer: checks the host, adds headers to every response, counts every request.

    Internal errors end here. They are reported by their type and place in the code alone, because
    the message of an error may contain a user's text.
    """

    def __init__(
        self, app: ASGIApp, access: Access, metrics: ServerMetrics, on_error: Callable[[str], None]
    ) -> None:
        self.app, self.access, self.metrics, self.on_error = app, access, metrics, on_error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.monotonic(), 0
        ancestors = " ".join(self.access.embedding) or "'none'"

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                response_headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    response_headers[name] = value
                response_headers["content-security-policy"] += ancestors
                response_headers.setdefault("cache-control", "no-store")
            await send(message)

        try:
            headers = Headers(scope=scope)
            self.access.check_host(headers)
            self.access.check_framing(scope, headers)
            await self.app(scope, receive, send_with_headers)
        except Problem as problem:
            await problem.response()(scope, receive, send_with_headers)
        except Exception as error:
            self.metrics.errors.inc()
            self.on_error(f"{scope['method']} {_route(scope)}: {_location(error)}")
            if status == 0:  # nothing was sent yet
                internal = Problem(500, "internal error; the server's standard error says where")
                await internal.response()(scope, receive, send_with_headers)
        finally:
            seconds = time.monotonic() - began
            self.metrics.count_request(_route(scope), _method(scope), status, seconds)


def _route(scope: Scope) -> str:
    """The pattern of the path; the path itself may contain anything that a client sends."""
    return str(scope.get("regard.route", "other"))


def _method(scope: Scope) -> str:
    return scope["method"] if scope["method"] in HTTP_METHODS else "other"


def _location(error: BaseException) -> str:
    """The type of an error and the line that raised it, without its message."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return type(error).__name__
    code = traceback.tb_frame.f_code
    return f"{type(error).__name__} at {code.co_filename}:{traceback.tb_lineno}"
