"""A server of runs: bound to an address, run here or in a thread of its own."""

import errno
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from ipaddress import ip_address
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any

import uvicorn

from regard.errors import RegardError
from regard.serve.application import application
from regard.serve.desk import Desk
from regard.serve.gates import LOOPBACK, Access, allowed
from regard.serve.limits import Limits
from regard.serve.shelf import Shelf

CONNECTIONS = 1024
"""Connections at once; who comes after is sent away."""
SHORTEST_TOKEN = 8


class Server:
    """Runs behind an address.

    In a script or notebook it serves from a thread: `with Server(["runs/a"]) as server:
    print(server.url)`; `run()` serves until the process is told to end.
    """

    def __init__(
        self,
        paths: Sequence[str | PathLike[str]],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
        names: Iterable[str] = (),
        limits: Limits | None = None,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        """Load the runs and take the address; nothing is answered yet.

        Args:
            paths: folders of runs.
            host: the address to listen at; one that others can reach needs a token.
            port: 0 for any that is free.
            token: what every request must bring.
            names: further names that the server goes by.
            limits: what a request may ask for.
            tell: hears of our own mistakes, by kind and place; never of a text.
        """
        if not is_loopback(host) and token is None:
            raise RegardError(f"--host {host} lets others in: give a --token that they must know")
        if token is not None and (len(token) < SHORTEST_TOKEN or not token.isascii()):
            raise RegardError(f"a token has {SHORTEST_TOKEN} characters or more, all of ASCII")
        limits = limits or Limits()
        self._socket = _bind(host, port)
        self.host, self.port = host, int(self._socket.getsockname()[1])
        known = allowed([*LOOPBACK, *names, *([] if _everywhere(host) else [host])])
        try:
            shelf = Shelf.open([Path(path) for path in paths], limits)
        except BaseException:
            self._socket.close()
            raise
        self.desk = Desk(shelf, limits, Access(known, token))
        config = uvicorn.Config(
            application(self.desk, tell),
            access_log=False,
            date_header=False,
            h11_max_incomplete_event_size=64 * 1024,
            http="h11",
            lifespan="on",
            limit_concurrency=CONNECTIONS,
            log_config=None,
            log_level="error",
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=int(limits.seconds) + 1,
            timeout_keep_alive=5,
            ws="none",
        )
        self._uvicorn = _Uvicorn(config, self.desk)
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Where it is found."""
        host = "127.0.0.1" if _everywhere(self.host) else self.host
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    def run(self) -> None:
        """Answer until told to end; what is in flight is finished first."""
        try:
            self._uvicorn.run(sockets=[self._socket])
        finally:
            self._socket.close()
            self.desk.shelf.close(self.desk.limits.seconds)

    def start(self) -> "Server":
        """Answer from a thread."""
        self._thread = threading.Thread(target=self.run, name="regard-server", daemon=True)
        self._thread.start()
        while not self._uvicorn.started and self._thread.is_alive():
            time.sleep(0.005)
        return self

    def stop(self) -> None:
        """End the thread when what is in flight is finished."""
        self._uvicorn.should_exit = True
        if self._thread is not None:
            self._thread.join()

    def __enter__(self) -> "Server":
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trail: TracebackType | None,
    ) -> None:
        self.stop()


class _Uvicorn(uvicorn.Server):
    """Tells the desk as soon as the end has begun, so that event streams end too."""

    def __init__(self, config: uvicorn.Config, desk: Desk) -> None:
        super().__init__(config)
        self.desk = desk

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish what is in flight."""
        self.desk.stopping = True
        await super().shutdown(sockets)


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own alone.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return host == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _everywhere(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return False


def _bind(host: str, port: int) -> socket.socket:
    try:
        found: list[Any] = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
        family, address = found[0][0], found[0][4]
        return socket.create_server(address[:2], family=family, backlog=512)
    except (OSError, OverflowError, UnicodeError) as error:
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise RegardError(
                f"port {port} of {host} is in use: choose another --port, or 0 for any free one"
            ) from error
        raise RegardError(
            f"{host}:{port} cannot be listened at ({error}): choose another --port"
        ) from error
