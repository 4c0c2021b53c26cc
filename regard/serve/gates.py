"""What every request passes: its host, its origin, its token; and the headers of every answer."""

import hmac
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.serve.counting import Counts
from regard.serve.problems import Problem

LOOPBACK = ("127.0.0.1", "localhost", "::1")

HEADERS = {
    "content-security-policy": (
        "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


@dataclass(frozen=True)
class Access:
    """Who may come in."""

    hosts: frozenset[str] = frozenset(LOOPBACK)
    """Names that a request may call this server by: others come from pages of other hosts whose
    name was made to lead here (DNS rebinding)."""
    token: str | None = None

    def host(self, headers: Headers) -> None:
        """Refuse a request that calls the server by a name that is not its own."""
        named = headers.getlist("host")
        if len(named) != 1 or _hostname(named[0]) not in self.hosts:
            raise Problem(421, "this server does not go by that name; see --allow-host")

    def origin(self, headers: Headers) -> None:
        """Refuse what pages of other origins send."""
        for origin in headers.getlist("origin"):
            if urlsplit(origin).netloc.lower() != headers["host"].lower() or origin == "null":
                raise Problem(403, "pages of other origins may not use this server")
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            raise Problem(403, "pages of other sites may not use this server")

    def bearer(self, headers: Headers, key: str | None = None) -> None:
        """Refuse who does not know the token, in the header or, as `key`, in the body."""
        if self.token is None:
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        known = [given.strip() if scheme.lower() == "bearer" else "", key or ""]
        if not any(hmac.compare_digest(one.encode(), self.token.encode()) for one in known):
            raise Problem(
                401,
                "this server asks for its token: Authorization: Bearer …",
                headers={"www-authenticate": "Bearer"},
            )


def _hostname(named: str) -> str | None:
    try:
        found = urlsplit(f"//{named}").hostname
    except ValueError:
        return None
    return found.rstrip(".") if found else None


def allowed(hosts: Iterable[str]) -> frozenset[str]:
    """Host names as they are compared."""
    return frozenset(host.strip("[]").lower().rstrip(".") for host in hosts)


class Gate:
    """The outermost layer: headers on every answer, a count of every request, no text in any log.

    Whatever goes wrong inside ends here, told by its kind and place alone: messages of errors may
    hold what somebody wrote.
    """

    def __init__(
        self, app: ASGIApp, access: Access, counts: Counts, tell: Callable[[str], None]
    ) -> None:
        self.app, self.access, self.counts, self.tell = app, access, counts, tell

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or not."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.monotonic(), 0

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        try:
            self.access.host(Headers(scope=scope))
            await self.app(scope, receive, sent)
        except Problem as problem:
            await problem.response()(scope, receive, sent)
        except Exception as error:
            self.counts.failed += 1
            self.tell(f"{scope['method']} {_route(scope)}: {_place(error)}")
            if status == 0:
                failed = Problem(500, "something went wrong here; the server's log says where")
                await failed.response()(scope, receive, sent)
        finally:
            seconds = time.monotonic() - began
            self.counts.add(_route(scope), _method(scope), status, seconds)


def _route(scope: Scope) -> str:
    """The pattern of the address, since the address itself is the sender's."""
    return str(scope.get("regard.route", "other"))


def _method(scope: Scope) -> str:
    known = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE")
    return scope["method"] if scope["method"] in known else "other"


def _place(error: BaseException) -> str:
    trail = error.__traceback__
    while trail is not None and trail.tb_next is not None:
        trail = trail.tb_next
    if trail is None:
        return type(error).__name__
    return f"{type(error).__name__} at {trail.tb_frame.f_code.co_filename}:{trail.tb_lineno}"
