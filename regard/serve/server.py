"""The server: bound to an address, in the foreground or in a thread of its own."""

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

from regard.devices import AUTO
from regard.errors import RegardError
from regard.serve.application import create_app
from regard.serve.evidence_folders import EvidenceFolders
from regard.serve.http.access import LOOPBACK, ORIGIN, Access, normalize_hosts
from regard.serve.http.connections import ACCEPTED_AT_ONCE, limited_connections
from regard.serve.http.routing import AppState
from regard.serve.limits import Limits
from regard.serve.served_models import ServedModels

MIN_TOKEN_LENGTH = 8


class Server:
    """Serves trained runs over HTTP.

    In a script or notebook it runs in a thread: `with Server(["runs/a"]) as server:
    print(server.url)`; `run()` serves in the foreground until the process gets a signal to end.
    """

    def __init__(
        self,
        paths: Sequence[str | PathLike[str]],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
        allowed_hosts: Iterable[str] = (),
        embedding: Iterable[str] = (),
        quantize: str = "none",
        device: str = AUTO,
        evidence: Iterable[str | PathLike[str]] = (),
        limits: Limits | None = None,
        on_error: Callable[[str], None] = lambda line: None,
    ) -> None:
        """Load the runs and bind the address; requests are answered after `start` or `run`.

        Args:
            paths: folders of runs.
            host: the address to listen on; any other than a loopback address requires a token.
            port: the port; 0 for any free one.
            token: the token that every request must send.
            allowed_hosts: further host names under which the server can be reached.
            embedding: origins whose pages may embed the app, such as https://example.org.
            quantize: "int8" for predictions with weights in int8, where the task knows it.
            device: where the models compute, one copy of each.
            evidence: folders of experiments and comparisons, or folders that contain some.
            limits: limits of requests; default: those of `Limits`.
            on_error: receives the type and place of internal errors, never a user's text.
        """
        if not is_loopback(host) and token is None:
            raise RegardError(
                f"--host {host} can be reached from other machines: give a --token as well"
            )
        if token is not None and (len(token) < MIN_TOKEN_LENGTH or not token.isascii()):
            raise RegardError(
                f"the token must have at least {MIN_TOKEN_LENGTH} characters, all of them ASCII"
            )
        for origin in (origins := tuple(embedding)):
            if ORIGIN.fullmatch(origin) is None:
                raise RegardError(
                    f"--allow-embedding {origin}: expected an origin, such as https://example.org"
                )
        limits = limits or Limits()
        self._socket = _bind(host, port)
        self.host, self.port = host, int(self._socket.getsockname()[1])
        own_host = [] if _is_unspecified(host) else [host]
        hosts = normalize_hosts([*LOOPBACK, *allowed_hosts, *own_host])
        try:
            models = ServedModels.load(
                [Path(path) for path in paths],
                limits,
                local=is_loopback(host),
                quantize=quantize,
                device=device,
            )
        except BaseException:
            self._socket.close()
            raise
        results = EvidenceFolders(tuple(Path(path) for path in evidence))
        self.state = AppState(models, limits, Access(hosts, token, origins), results)
        config = uvicorn.Config(
            create_app(self.state, on_error),
            access_log=False,
            date_header=False,
            h11_max_incomplete_event_size=64 * 1024,
            backlog=ACCEPTED_AT_ONCE,
            http=limited_connections(limits),
            lifespan="on",
            log_config=None,
            log_level="error",
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=int(limits.request_seconds) + 1,
            timeout_keep_alive=limits.idle_seconds,
            ws="none",
        )
        self._uvicorn = _Uvicorn(config, self.state)
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Its address."""
        host = "127.0.0.1" if _is_unspecified(self.host) else self.host
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    def run(self) -> None:
        """Serve until a signal or `stop`; requests in progress are finished first."""
        try:
            self._uvicorn.run(sockets=[self._socket])
        finally:
            self._socket.close()
            self.state.models.close(self.state.limits.request_seconds)

    def start(self) -> "Server":
        """Serve in a thread."""
        self._thread = threading.Thread(target=self.run, name="regard-server", daemon=True)
        self._thread.start()
        while not self._uvicorn.started and self._thread.is_alive():
            time.sleep(0.005)
        return self

    def stop(self) -> None:
        """End the thread after the requests in progress."""
        self._uvicorn.should_exit = True
        if self._thread is not None:
            self._thread.join()

    def __enter__(self) -> "Server":
        return self.start()

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


class _Uvicorn(uvicorn.Server):
    """Marks the state as stopping when shutdown begins, so that event streams end too."""

    def __init__(self, config: uvicorn.Config, state: AppState) -> None:
        super().__init__(config)
        self.state = state

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish the requests in progress."""
        self.state.stopping = True
        await super().shutdown(sockets)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return host == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _is_unspecified(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return False


def _bind(host: str, port: int) -> socket.socket:
    try:
        addresses: list[Any] = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
        family, address = addresses[0][0], addresses[0][4]
        return socket.create_server(address[:2], family=family, backlog=ACCEPTED_AT_ONCE)
    except (OSError, OverflowError, UnicodeError) as error:
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise RegardError(
                f"port {port} of {host} is in use: choose another --port, or 0 for any free port"
            ) from error
        raise RegardError(
            f"cannot listen on {host}:{port} ({error}): choose another --host or --port"
        ) from error
