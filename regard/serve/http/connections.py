"""Limits of connections: how many an address may open, and how long each may be idle or slow.

Uvicorn has a time limit between two requests of a connection (`timeout_keep_alive`), but none for a
request whose head never ends, for a body that nobody reads, or for a client that does not read its
response; and its limit of connections refuses everybody once it is reached. `LimitedConnection` is
uvicorn's own protocol with these limits added.

When there are too many connections, the one that has been idle the longest is closed in favour of
the new one. Idle connections can therefore never keep others out.
"""

import asyncio
import itertools
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from regard.serve.limits import Limits

ACCEPTED_AT_ONCE = 128
"""Connections that the event loop accepts before it handles any of them."""
RESERVED_FILES = 2 * ACCEPTED_AT_ONCE + 64
"""Open files that connections leave free: those just accepted or closed, and files of the runs."""
CLOSING_SECONDS = 1.0
"""Time for a client to read the last response of a connection that was closed for a limit."""


class LimitedConnection(H11Protocol):
    """A connection of a server with limits; `limited_connections` gives a class its limits."""

    limits = Limits()
    most_connections = limits.connections
    _numbers = itertools.count()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection, or refuse it if no idle one can make room for it."""
        super().connection_made(transport)
        self.number = next(self._numbers)
        self.network = _network(self.client)
        self._read_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        others = [
            one for one in cast("set[LimitedConnection]", self.connections) if one is not self
        ]
        nearby = [one for one in others if one.network == self.network]
        if len(nearby) >= self.limits.connections_per_address:
            self._make_room(nearby)
        elif len(others) >= self.most_connections:
            self._make_room(others)
        self._start_read_timer()

    def data_received(self, data: bytes) -> None:
        """Handle bytes of a request; once its head is complete, the handlers limit its time."""
        super().data_received(data)
        if not self.is_waiting:
            self._stop_timer("_read_timer")

    def on_response_complete(self) -> None:
        """Wait for the next request, which may have arrived already."""
        self._start_read_timer()
        super().on_response_complete()
        if not self.is_waiting:
            self._stop_timer("_read_timer")

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_timer("_read_timer")
        self._stop_timer("_write_timer")
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait for a client that reads its response more slowly than it is written."""
        super().pause_writing()
        self._start_timer("_write_timer", self.limits.write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on, since the client has read a part."""
        self._stop_timer("_write_timer")
        super().resume_writing()

    @property
    def is_waiting(self) -> bool:
        """Whether the next step is the client's: no request has arrived, or all were answered."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def is_idle(self) -> bool:
        """Whether no request is being handled: none has arrived whole, or all were answered."""
        return self.is_waiting or self.cycle.more_body

    def _make_room(self, candidates: "list[LimitedConnection]") -> None:
        """Close the oldest idle connection of these, or this one if all others are busy."""
        idle = [one for one in candidates if one.is_idle and not one.transport.is_closing()]
        if idle:
            oldest = min(idle, key=lambda one: one.number)
            oldest.connections.discard(oldest)
            oldest.transport.abort()
        else:
            self._refuse(503, "too many connections: try again later")

    def _start_read_timer(self) -> None:
        """Limit the time until the head of the next request is complete."""
        self._start_timer("_read_timer", self.limits.head_seconds, self._end_slow_request)

    def _end_slow_request(self) -> None:
        if self.conn.our_state is h11.IDLE and self.conn.trailing_data[0]:
            limit = f"{self.limits.head_seconds:g} seconds"
            self._refuse(408, f"the head of the request did not arrive in {limit}")
        else:
            self.transport.abort()

    def _refuse(self, status: int, reason: str) -> None:
        """Send a short response and close the connection, whether or not the client reads it."""
        headers = [("content-type", "text/plain; charset=utf-8"), ("connection", "close")]
        for event in (
            h11.Response(status_code=status, headers=headers),
            h11.Data(data=reason.encode()),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
        self._start_timer("_write_timer", CLOSING_SECONDS, self.transport.abort)

    def _start_timer(self, name: str, seconds: float, end: Callable[[], None]) -> None:
        self._stop_timer(name)
        setattr(self, name, self.loop.call_later(seconds, end))

    def _stop_timer(self, name: str) -> None:
        timer = getattr(self, name)
        if timer is not None:
            timer.cancel()
            setattr(self, name, None)


def limited_connections(limits: Limits) -> type[LimitedConnection]:
    """The class of the connections of a server with these limits."""
    most = min(limits.connections, max(1, _open_file_limit() - RESERVED_FILES))
    members: dict[str, Any] = {"limits": limits, "most_connections": most}
    return type("ServerConnection", (LimitedConnection,), members)


def _open_file_limit() -> int:
    """How many files, connections included, this process may open."""
    try:
        import resource
    except ImportError:  # Windows, whose limit is higher than any of ours
        return 1_000_000
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1_000_000 if soft == resource.RLIM_INFINITY else soft


def _network(client: tuple[str, int] | None) -> str:
    """What counts as one address: an IPv4 address, or the 64 bits of an IPv6 network, since every
    customer of a provider gets at least that many addresses."""
    host = "" if client is None else client[0].partition("%")[0]
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return host
    return str(address.ipv4_mapped or int(address) >> 64)
