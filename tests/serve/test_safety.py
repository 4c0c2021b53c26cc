"""Who may come in, what may be asked, and what every answer carries."""

import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from urllib.request import urlopen

import pytest
from asking import Client

from regard.cli import main
from regard.errors import RegardError
from regard.serve import Limits, Server
from regard.serve.problems import Problem

PREDICT = "/v1/models/my-classify/predict"
FINE = {"inputs": "the film"}


@pytest.mark.parametrize("path", ["/", "/v1/models", "/nowhere", "/static/app.js", "/metrics"])
def test_every_answer_carries_the_headers(path, ask):
    headers = ask("GET", path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("localhost:9", 200),
        ("[::1]:8000", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost@evil.example", 421),
        ("evil.example#localhost", 421),
        ("[", 421),
    ],
)
def test_a_request_must_know_the_name_of_the_server(host, status, ask):
    assert ask("GET", "/v1/models", None, host=host).status == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"origin": "http://{host}"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://127.0.0.1:1"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": ""}, 200),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "same-origin"}, 200),
    ],
)
@pytest.mark.parametrize("path", [PREDICT, "/translate"])
def test_pages_of_other_origins_may_not_ask(headers, status, path, ask):
    body = FINE if path == PREDICT else {"q": "film", "source": "aa", "target": "bb"}
    given = {k: v.format(host=ask.place.netloc) for k, v in headers.items()}
    assert ask("POST", path, body, **given).status == status


@pytest.mark.parametrize(
    ("body", "headers", "status", "words"),
    [
        (b'{"inputs": "x"}', {"content_type": "text/plain"}, 415, "application/json"),
        (b"inputs=x", {"content_type": "application/x-www-form-urlencoded"}, 415, "json"),
        (b'{"inputs": "x"}', {"content_encoding": "gzip"}, 415, "encoding"),
        (b'{"inputs": ', {}, 400, "not JSON"),
        (b"\xff", {}, 400, "byte 0 is not UTF-8"),
        (b'{"inputs": NaN}', {}, 400, "NaN is not a number"),
        (b"[" * 100_000, {}, 400, "levels deep"),
        (b'{"inputs":' + b"[" * 40 + b"]" * 40 + b"}", {}, 400, "levels deep"),
        (b"1" * 5000, {}, 400, "not JSON"),
        (b"[]", {}, 422, "expected object, got array"),
        (b"{}", {}, 422, "inputs is missing"),
        (b'{"inputs": 3}', {}, 422, "/inputs: expected"),
        (b'{"inputs": ["x", 3]}', {}, 422, "/inputs/1: expected string"),
        (b'{"inputs": "x", "input": "y"}', {}, 422, "/input: unknown; known: inputs"),
        (b'{"inputs": "x", "parameters": {"beam": 2}}', {}, 422, "/parameters/beam: unknown"),
        (b'{"inputs": "x", "parameters": {"top_k": 0}}', {}, 422, "least allowed, 1"),
        (b'{"inputs": "x", "parameters": {"top_k": true}}', {}, 422, "expected integer"),
        (json.dumps({"inputs": "x" * 5_001}).encode(), {}, 422, "at most 5000 are allowed"),
        (json.dumps({"inputs": ["x"] * 65}).encode(), {}, 422, "at most 64 are allowed"),
        (b'{"inputs": "' + b"x" * 1_000_000 + b'"}', {}, 413, "1000000 bytes"),
    ],
)
def test_what_is_wrong_with_a_request_is_named(body, headers, status, words, ask):
    answer = ask("POST", PREDICT, body, **headers)
    assert answer.status == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert words in answer.json["detail"]
    assert answer.json["status"] == status


def test_a_body_without_end_is_cut_off(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as plug:
        head = (
            f"POST {PREDICT} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            "transfer-encoding: chunked\r\n\r\n"
        )
        plug.sendall(head.encode())
        chunk = b"%x\r\n%s\r\n" % (60_000, b" " * 60_000)
        for _ in range(17):
            plug.sendall(chunk)
        assert plug.recv(64).startswith(b"HTTP/1.1 413")


def test_addresses_and_methods_that_are_not_there_are_problems(ask):
    assert ask("GET", "/v1/models/none").json["detail"].startswith("no such model or run")
    assert ask("GET", "/nowhere").json["status"] == 404
    wrong = ask("GET", PREDICT)
    assert wrong.status == 405
    assert wrong.headers["allow"] == "POST"
    both = ask("DELETE", "/v1/steps").headers["allow"]
    assert set(both.split(", ")) == {"GET", "HEAD", "POST"}
    assert ask("HEAD", "/v1/steps").status == 200
    for path in ("/static/../server.py", "/static/%2e%2e/server.py", "/static//etc/passwd"):
        assert ask("GET", path).status == 404


def test_the_pages_files_come_with_their_types_and_tags(ask):
    page = ask("GET", "/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert b"<script>" not in page.raw
    script = ask("GET", "/static/app.js")
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    again = ask("GET", "/static/app.js", None, if_none_match=script.headers["etag"])
    assert (again.status, again.raw) == (304, b"")
    assert ask("GET", "/translation").raw == page.raw
    assert b"openapi.json" in ask("GET", "/docs").raw


def test_a_token_is_asked_for_everywhere_but_at_the_door(runs):
    with Server([runs["classify"].folder.path], token="open sesame") as server:
        ask = Client(server.url)
        for path in ("/", "/static/app.js", "/healthz", "/readyz", "/openapi.json", "/docs"):
            assert ask("GET", path).status == 200
        for path in ("/v1/models", "/metrics", "/v1/runs/my-classify/metrics", "/languages"):
            refused = ask("GET", path)
            assert refused.status == 401
            assert refused.headers["www-authenticate"] == "Bearer"
            assert ask("GET", path, None, authorization="Bearer wrong").status == 401
            assert ask("GET", path, None, authorization="Bearer open sesame").status == 200
        assert ask("POST", PREDICT, FINE).status == 401
        assert ask("POST", PREDICT, FINE, authorization="Bearer open sesame").status == 200


def test_only_this_machine_may_come_in_without_a_token(runs, capsys):
    folder = str(runs["classify"].folder.path)
    assert main(["serve", folder, "--host", "0.0.0.0", "--port", "0"]) == 2
    assert "give a --token" in capsys.readouterr().err
    with pytest.raises(RegardError, match="8 characters or more"):
        Server([folder], token="short")
    with Server([folder], host="0.0.0.0", token="long enough", names=["my.name"]) as server:
        ask = Client(server.url)
        known = {"authorization": "Bearer long enough"}
        assert ask("GET", "/v1/models", None, **known).status == 200
        assert ask("GET", "/v1/models", None, host="my.name:80", **known).status == 200
        assert ask("GET", "/v1/models", None, host="other.name", **known).status == 421


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "not a run folder"),
        (["{run}", "--port", "99999"], "expected a port"),
        (["{run}", "--port", "{taken}"], "is in use: choose another --port"),
        (["{run}", "--host", "nowhere.invalid", "--token", "long enough"], "cannot be listened at"),
        (["{run}", "--token", "a", "--token-file", "b"], "not both"),
        (["{run}", "--token-file", "nowhere"], "cannot be read"),
    ],
)
def test_bad_arguments_are_one_line(arguments, words, runs, server, capsys):
    names = {"run": runs["classify"].folder.path, "taken": server.port}
    given = [one.format(**names) for one in arguments]
    assert (
        main(["serve", "--port", "0", *given] if "--port" not in given else ["serve", *given]) == 2
    )
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_too_much_at_once_is_sent_away(runs):
    limits = Limits(waiting=4, together=1, seconds=0.3, concurrent=3, followers=0)
    with Server([runs["classify"].folder.path], limits=limits) as server:
        ask, worker = Client(server.url), server.desk.shelf["my-classify"].worker
        full = ask("POST", PREDICT, {"inputs": ["x"] * 5})
        assert full.status == 429
        assert full.headers["retry-after"] == "1"
        assert "at most 4 may wait" in full.json["detail"]
        assert ask("GET", "/v1/runs/my-classify/events").status == 429
        hold = threading.Event()
        worker.call(lambda: hold.wait(10))
        late = ask("POST", PREDICT, FINE)
        assert (late.status, late.json["detail"]) == (504, "no answer within 0.3 seconds")
        server.desk.counts.running += 3
        crowded = ask("POST", PREDICT, FINE)
        assert crowded.status == 429
        assert "3 requests are being worked on" in crowded.json["detail"]
        server.desk.counts.running -= 3
        hold.set()
        while worker.count.waiting:
            time.sleep(0.01)
        assert ask("POST", PREDICT, FINE).status == 200


def test_runs_that_read_files_take_no_texts(runs, monkeypatch):
    with Server([runs["classify"].folder.path]) as server:
        served = server.desk.shelf["my-classify"]
        object.__setattr__(served.run.task, "features", 3)
        with pytest.raises(Problem, match="takes no texts"):
            served.model()
        ask = Client(server.url)
        named = ask("POST", PREDICT, {"inputs": "/etc/secret.npy"})
        assert named.status == 409
        assert ask("POST", "/v1/models/my-classify/explain", {"text": "x.npy"}).status == 409


def test_our_own_mistakes_are_told_without_a_text(runs, monkeypatch):
    told = []
    with Server([runs["classify"].folder.path], tell=told.append) as server:

        def fail(self):
            raise KeyError("the secret text")

        monkeypatch.setattr(type(server.desk.shelf["my-classify"]), "card", fail)
        answer = Client(server.url)("GET", "/v1/models")
        assert answer.status == 500
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert b"secret" not in answer.raw
        counts = Client(server.url)("GET", "/metrics").raw.decode()
    assert len(told) == 1
    assert "KeyError at" in told[0]
    assert "secret" not in told[0]
    assert "regard_errors_total 1\n" in counts


def test_metrics_count_what_was_asked(ask):
    ask("POST", PREDICT, FINE)
    text = ask("GET", "/metrics").raw.decode()
    route = 'method="POST",route="/v1/models/{id}/predict",status="200"'
    assert f"regard_requests_total{{{route}}} " in text
    assert 'regard_model_texts_total{model="my-classify"}' in text
    for line in text.splitlines():
        assert line.startswith("# ") or float(line.rsplit(" ", 1)[1]) >= 0


def test_the_command_finishes_what_is_in_flight_and_logs_no_text(runs, tmp_path):
    run = tmp_path / "a"
    shutil.copytree(runs["language"].folder.path, run)
    command = [sys.executable, "-m", "regard", "serve", str(run), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        url, name = process.stdout.readline().split()
        assert name == "a"
        with urlopen(f"{url}/readyz") as ready:
            assert json.load(ready) == {"status": "ready"}
        ask, found = Client(url), []
        body = {"model": "a", "prompt": "xyzzy plugh", "max_tokens": 400, "n": 2}
        thread = threading.Thread(target=lambda: found.append(ask("POST", "/v1/completions", body)))
        thread.start()
        while thread.is_alive() and "running 2" not in ask("GET", "/metrics").raw.decode():
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        out, error = process.communicate(timeout=60)
        thread.join()
    finally:
        process.kill()
        process.wait()
    assert found[0].status == 200
    assert len(found[0].json["choices"]) == 2
    assert process.returncode == 0
    assert "xyzzy" not in out + error
    assert error == ""
