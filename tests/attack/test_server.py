"""Attacks on the server over raw sockets: slow and idle clients, smuggling, hang-ups, floods.

Each attack is short. `ATTACK_ROUNDS=50 pytest tests/attack` repeats the random and the timed ones.
"""

import itertools
import json
import os
import random
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.serve import Limits, Server
from tests.serve.requests import Client
from tests.training.tiny import OPTIONS, write_data

ROUNDS = int(os.environ.get("ATTACK_ROUNDS", "1"))
PREDICT = "/v1/models/my-run/predict"
SHORT = {"inputs": "the film", "parameters": {"max_new_tokens": 1}}
HEAD = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
PATIENCE = 20.0
"""Seconds until a test gives up: machines under load are slow."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model that seems to be in training still, so that its event streams stay open.

    It has no n-grams, which know where lines end: its completions are as long as a request allows.
    """
    folder = tmp_path_factory.mktemp("attack")
    options = OPTIONS["language"] | {"steps": 2, "evaluate_every": 2, "learning_rate": 0.01}
    options["ngrams"] = 0
    regard.train("language", write_data(folder, "language"), out=folder / "my-run", **options)
    shutil.rmtree(folder / "my-run" / "state")
    return folder / "my-run"


@contextmanager
def serve(run: Path, **limits: Any) -> Iterator[tuple[Server, Client]]:
    """A server with these limits, which must not have an internal error."""
    errors: list[str] = []
    with Server([run], limits=Limits(**limits), on_error=errors.append) as server:
        yield server, Client(server.url)
    assert errors == []


@pytest.fixture(scope="module")
def served(run: Path) -> Iterator[tuple[Server, Client]]:
    """A server with short limits, for attacks that leave it as it was."""
    with serve(run, head_seconds=0.4, write_seconds=0.4, idle_seconds=1) as served:
        yield served


def connect(server: Server, source: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(
        ("127.0.0.1", server.port), timeout=PATIENCE, source_address=(source, 0)
    )


def post(path: str, body: dict[str, Any]) -> bytes:
    raw = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    return head.encode() + b"content-length: %d\r\n\r\n%s" % (len(raw), raw)


def read_all(plug: socket.socket) -> bytes:
    """All bytes until the server closes the connection."""
    content = b""
    try:
        while part := plug.recv(65536):
            content += part
    except ConnectionError:
        pass
    return content


def is_closed(plug: socket.socket) -> bool:
    plug.setblocking(False)
    try:
        return plug.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "the server did not react in time"
        time.sleep(0.02)


SLOW: dict[str, tuple[bytes, bytes]] = {
    "nothing": (b"", b""),
    "head": (b"", b"GET / HTTP/1.1\r\nhost: localhost\r\nx-padding: " + b"x" * 10_000),
    "second head": (HEAD, b"GET / HTTP/1.1\r\nx: " + b"x" * 10_000),
    "body that nobody reads": (
        b"POST /nowhere HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10000\r\n\r\n",
        b"x" * 10_000,
    ),
    "body that was refused": (
        f"POST {PREDICT} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9999\r\n\r\n".encode(),
        b"x" * 9_999,
    ),
}


@pytest.mark.parametrize("kind", SLOW)
def test_slow_and_silent_clients_are_disconnected(kind, served):
    """One byte at a time, so that the connection is never idle for long."""
    server, ask = served
    first, rest = SLOW[kind]
    with connect(server) as plug:
        plug.sendall(first)
        plug.settimeout(0.05)
        end = time.monotonic() + PATIENCE
        for sent in itertools.count():
            assert time.monotonic() < end, "the server still waits"
            try:
                plug.sendall(rest[sent : sent + 1])
                if not plug.recv(65536):
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        assert sent > 3  # it was not closed at once
    assert ask("GET", "/healthz").status == 200


def test_a_slow_head_is_answered_with_its_limit(served):
    with connect(served[0]) as plug:
        plug.sendall(b"GET / HTTP/1.1\r\n")
        response = read_all(plug)
    assert response.startswith(b"HTTP/1.1 408 ")
    assert b"did not arrive in 0.4 seconds" in response


def test_clients_that_do_not_read_are_disconnected(served):
    """Pipelined requests whose responses fill all buffers."""
    server, ask = served
    with socket.socket() as plug:
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plug.settimeout(PATIENCE)
        plug.connect(("127.0.0.1", server.port))
        request = b"GET /page/onefile.html HTTP/1.1\r\nhost: localhost\r\n\r\n"
        with pytest.raises(ConnectionError):
            plug.sendall(request * 100_000)
    assert ask("GET", "/healthz").status == 200


@pytest.mark.parametrize(
    "opening", [b"", b"GET / HTTP/1.1\r\n", HEAD], ids=["none", "half", "kept"]
)
def test_idle_connections_keep_nobody_out(opening, run):
    with (
        serve(
            run, connections=30, connections_per_address=10, head_seconds=99.0, idle_seconds=99
        ) as (server, ask),
        ExitStack() as open,
    ):
        plugs = []
        for _ in range(40 * ROUNDS):
            plugs.append(open.enter_context(connect(server)))
            plugs[-1].sendall(opening)
            if opening == HEAD:
                assert plugs[-1].recv(4096).startswith(b"HTTP/1.1 200")
        assert ask("POST", PREDICT, SHORT).status == 200
        wait_until(lambda: sum(not is_closed(plug) for plug in plugs) <= 10)
        assert all(is_closed(plug) for plug in plugs[:-10])


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have one loopback address")
def test_one_address_does_not_use_up_the_connections_of_others(run):
    with serve(run, connections=12, connections_per_address=8) as (server, _), ExitStack() as open:
        patient = open.enter_context(connect(server, "127.0.0.9"))
        for _ in range(20 * ROUNDS):
            open.enter_context(connect(server, "127.0.0.2"))
        patient.sendall(HEAD)
        assert patient.recv(100).startswith(b"HTTP/1.1 200")
        others = [open.enter_context(connect(server, f"127.0.0.{n}")) for n in range(20, 40)]
        others[-1].sendall(HEAD)
        assert others[-1].recv(100).startswith(b"HTTP/1.1 200")


def test_connections_in_use_are_not_closed_for_new_ones(run):
    with serve(run, connections_per_address=3) as (server, _), ExitStack() as open:
        events = b"GET /v1/runs/my-run/events HTTP/1.1\r\nhost: localhost\r\n\r\n"
        streams = [open.enter_context(connect(server)) for _ in range(3)]
        for plug in streams:
            plug.sendall(events)
            assert plug.recv(100).startswith(b"HTTP/1.1 200")
        with connect(server) as plug:
            plug.sendall(HEAD)
            assert b"too many connections" in read_all(plug)
        streams[0].close()
        wait_until(lambda: Client(server.url)("GET", "/healthz").status == 200)


def test_bodies_that_do_not_arrive_keep_nobody_out(run):
    with (
        serve(run, concurrent_requests=2, large_bodies=2) as (server, ask),
        ExitStack() as open,
    ):
        head = post(PREDICT, {}).partition(b"\r\n\r\n")[0].replace(b"length: 2", b"length: 900000")
        for size in [1] * 5 + [100_000] * 5:
            plug = open.enter_context(connect(server))
            plug.sendall(head + b"\r\n\r\n" + b" " * size)
        wait_until(lambda: server.state.metrics.large_bodies == 2)
        assert ask("POST", PREDICT, SHORT).status == 200
        large = ask("POST", PREDICT, b" " * 200_000 + b"{}")
        assert large.status == 429
        assert "2 large requests" in large.json["detail"]


SMUGGLED = b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n"
CHUNKED = b"transfer-encoding: chunked\r\n"
FRAMINGS = {
    "both lengths": b"content-length: %d\r\n" % (5 + len(SMUGGLED)) + CHUNKED,
    "both, reversed": CHUNKED + b"content-length: 4\r\n",
    "two lengths": b"content-length: 5\r\ncontent-length: 50\r\n",
    "a list of lengths": b"content-length: 5, 50\r\n",
    "signed length": b"content-length: +5\r\n",
    "negative length": b"content-length: -5\r\n",
    "hexadecimal length": b"content-length: 0x5\r\n",
    "length with underscore": b"content-length: 1_0\r\n",
    "huge length": b"content-length: %s\r\n" % (b"9" * 30),
    "chunked twice": CHUNKED + CHUNKED,
    "other coding": b"transfer-encoding: xchunked\r\n",
    "coding after chunked": b"transfer-encoding: chunked, identity\r\n",
    "space before the colon": b"transfer-encoding : chunked\r\n",
    "tab in the name": b"transfer\tencoding: chunked\r\n",
    "vertical tab": b"transfer-encoding: \x0bchunked\r\n",
    "null": b"transfer-encoding: chunked\x00\r\n",
    "bare carriage return": b"x: y\rtransfer-encoding: chunked\r\n",
}


@pytest.mark.parametrize("kind", FRAMINGS)
@pytest.mark.parametrize("path", ["/translate", "/v1/models", "/nowhere"])
def test_no_request_hides_in_the_body_of_another(kind, path, served):
    with connect(served[0]) as plug:
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\n".encode()
        plug.sendall(head + FRAMINGS[kind] + b"\r\n0\r\n\r\n" + SMUGGLED)
        response = read_all(plug)
    assert response.count(b"HTTP/1.1 ") == 1
    assert response.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 501 ")) or kind == "huge length"


def test_http_1_0_has_no_chunks(served):
    with connect(served[0]) as plug:
        plug.sendall(b"POST / HTTP/1.0\r\nhost: localhost\r\n" + CHUNKED + b"\r\n0\r\n\r\n")
        assert read_all(plug).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "hosts",
    [b"", b"host: \r\n", b"host: localhost\r\nhost: localhost\r\n", b"host: localhost\xff\r\n"]
    + [b"host: localhost%s.evil.example\r\n" % mark for mark in (b"#", b"?", b"/", b"@", b"\\")],
)
def test_a_request_needs_one_plain_host(hosts, served):
    with connect(served[0]) as plug:
        plug.sendall(b"GET /v1/models HTTP/1.1\r\n" + hosts + b"connection: close\r\n\r\n")
        assert read_all(plug).split()[1] in (b"400", b"421")


def slow_down(server: Server) -> Any:
    """The model, each layer of which takes some time from now on."""
    model = server.state.models["my-run"]
    for layer in model.run.model.modules():
        layer.register_forward_pre_hook(lambda layer, inputs: time.sleep(0.005))
    return model


LONG_REQUESTS = {
    "completion": ("/v1/completions", {"model": "my-run", "prompt": "the", "max_tokens": 1000}),
    "prediction": (PREDICT, {"inputs": ["the"] * 60, "parameters": {"max_new_tokens": 900}}),
    "explanation": (
        "/v1/models/my-run/explain",
        {"text": "the film was bad " * 50, "attributions": True},
    ),
}


@pytest.mark.parametrize("kind", LONG_REQUESTS)
def test_the_model_stops_when_its_clients_are_gone(kind, run):
    """Jobs that have begun stop, and those that wait are dropped."""
    path, body = LONG_REQUESTS[kind]
    with serve(run) as (server, ask), ExitStack() as open:
        model = slow_down(server)
        counts = model.worker.counts
        for _ in range(ROUNDS):
            stopped = counts.abandoned
            plugs = [open.enter_context(connect(server)) for _ in range(3)]
            for plug in plugs:
                plug.sendall(post(path, body))
            wait_until(lambda: bool(model.worker._running))
            wait_until(lambda: server.state.metrics.running == 3)
            for plug in plugs:
                plug.close()
            wait_until(lambda stopped=stopped: counts.abandoned > stopped and not counts.waiting)
        began = time.monotonic()
        assert ask("POST", PREDICT, SHORT).status == 200
        assert time.monotonic() < began + PATIENCE
        assert server.state.metrics.running == 0


def test_the_model_stops_when_time_is_up(run):
    path, body = LONG_REQUESTS["completion"]
    with serve(run, request_seconds=0.5) as (server, ask):
        counts = slow_down(server).worker.counts
        assert ask("POST", path, body).status == 504
        wait_until(lambda: counts.abandoned == 1)


def test_the_limit_of_event_streams_holds_when_they_open_at_once(run):
    with serve(run, event_streams=3) as (server, _), ExitStack() as open:
        for _ in range(ROUNDS):
            plugs = [open.enter_context(connect(server)) for _ in range(24)]
            for plug in plugs:
                plug.sendall(b"GET /v1/runs/my-run/events HTTP/1.1\r\nhost: localhost\r\n\r\n")
            statuses = [plug.recv(100).split()[1] for plug in plugs]
            assert statuses.count(b"200") == 3
            assert statuses.count(b"429") == 21
            assert server.state.metrics.event_streams == 3
            for plug in plugs:
                plug.close()
            wait_until(lambda: server.state.metrics.event_streams == 0)


def test_without_the_token_no_response_names_a_run(run):
    paths = ("/", "/docs", "/openapi.json", "/v1/models", "/metrics", "/languages", "/v1/nowhere")
    with Server([run], token="open sesame") as server:
        ask = Client(server.url)
        for path in (*paths, "/v1/models/my-ru", "/v1/runs/my-ru/metrics"):
            for kind in ("*/*", "text/html"):
                assert b"my-run" not in ask("GET", path, None, accept=kind).raw
        known = ask("GET", "/openapi.json", None, authorization="Bearer open sesame")
        assert b"my-run" in known.raw


def test_unknown_addresses_are_pages_for_browsers_and_problems_for_programs(served):
    _, ask = served
    browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
    for path in ("/nowhere", "/static/nowhere.js", "/<script>"):
        page = ask("GET", path, None, accept=browser)
        assert page.status == 404
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert b'<a href="/">' in page.raw
        assert b"<script>" not in page.raw
        assert ask("GET", path).json["status"] == 404
        assert ask("GET", path, None, accept="application/json").json["status"] == 404


def test_damaged_requests_get_an_answer_or_none_but_no_error(served):
    """Valid requests with random changes: bytes replaced, removed, repeated."""
    server, ask = served
    generator = random.Random(ROUNDS)
    valid = [HEAD, SMUGGLED, post(PREDICT, SHORT), post("/translate", {"q": "x"})]
    for _ in range(40 * ROUNDS):
        request = bytearray(generator.choice(valid))
        for _ in range(generator.randint(1, 4)):
            place = generator.randrange(len(request))
            request[place : place + generator.randint(0, 3)] = generator.choice(
                [bytes([generator.randrange(256)]), b"\r\n", b"", request[place : place + 40]]
            )
        with connect(server) as plug:
            plug.sendall(bytes(request))
            plug.shutdown(socket.SHUT_WR)
            read_all(plug)
    assert ask("GET", "/healthz").status == 200
    assert server.state.metrics.registry.get_sample_value("regard_errors_total") == 0
