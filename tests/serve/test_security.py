"""Access control, validation, limits, error messages, and the headers of every response."""

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
from prometheus_client.parser import text_string_to_metric_families

import regard
from regard.cli import main
from regard.errors import RegardError
from regard.serve import Limits, Server
from regard.serve.http.problems import Problem
from tests.serve.requests import Client

PREDICT = "/v1/models/my-classify/predict"
VALID = {"inputs": "the film"}


@pytest.mark.parametrize("path", ["/", "/v1/models", "/nowhere", "/static/app.js", "/metrics"])
def test_every_response_has_security_headers(path, ask):
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
        ("localhost#.evil.example", 421),
        ("localhost?.evil.example", 421),
        ("localhost/.evil.example", 421),
        ("localhost\\.evil.example", 421),
        ("user@localhost", 421),
        ("localhost:80:80", 421),
        ("localhost:x", 421),
        ("localhost.", 200),
        ("localhost..", 421),
        ("LocalHost", 200),
        ("[localhost]", 421),
        ("[127.0.0.1]", 421),
        ("loc%61lhost", 421),
        ("localhost,evil.example", 421),
        ("[", 421),
    ],
)
def test_other_host_names_are_refused(host, status, ask):
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
def test_requests_from_pages_of_other_origins_are_refused(headers, status, path, ask):
    body = VALID if path == PREDICT else {"q": "film", "source": "aa", "target": "bb"}
    given = {k: v.format(host=ask.address.netloc) for k, v in headers.items()}
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
        (b"[]", {}, 422, "The request must be an object, not a list"),
        (b"{}", {}, 422, "The request lacks inputs"),
        (b'{"inputs": 3}', {}, 422, "The text must be a string, not a number"),
        (b'{"inputs": ["x", 3]}', {}, 422, "The text inputs[1] must be a string, not a number"),
        (b'{"inputs": "x", "input": "y"}', {}, 422, "input is unknown; known: inputs"),
        (b'{"inputs": "x", "parameters": {"beam": 2}}', {}, 422, "parameters.beam is unknown"),
        (
            b'{"inputs": "x", "parameters": {"top_k": 0}}',
            {},
            422,
            "parameters.top_k is 0; the minimum is 1",
        ),
        (
            b'{"inputs": "x", "parameters": {"top_k": true}}',
            {},
            422,
            "must be an integer, not a boolean",
        ),
        (
            json.dumps({"inputs": "x" * 5_001}).encode(),
            {},
            422,
            "The text has 5,001 characters; at most 5,000 are allowed",
        ),
        (
            json.dumps({"inputs": ["x"] * 65}).encode(),
            {},
            422,
            "inputs has 65 items; at most 64 are allowed",
        ),
        (b'{"inputs": "' + b"x" * 1_000_000 + b'"}', {}, 413, "1000000 bytes"),
    ],
)
def test_problems_say_what_is_wrong_with_a_request(body, headers, status, words, ask):
    response = ask("POST", PREDICT, body, **headers)
    assert response.status == status
    assert response.headers["content-type"] == "application/problem+json"
    assert words in response.json["detail"]
    assert response.json["status"] == status


def test_a_body_without_end_is_refused(server):
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


def test_unknown_paths_and_methods_are_problems(ask):
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


def test_files_of_the_app_have_media_types_and_etags(ask):
    page = ask("GET", "/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert b"<script>" not in page.raw
    script = ask("GET", "/static/app.js")
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    again = ask("GET", "/static/app.js", None, if_none_match=script.headers["etag"])
    assert (again.status, again.raw) == (304, b"")
    assert ask("GET", "/translation").raw == page.raw
    assert b"openapi.json" in ask("GET", "/docs").raw


def test_all_but_public_routes_require_the_token(runs):
    with Server([runs["classify"].folder.path], token="open sesame") as server:
        ask = Client(server.url)
        for path in ("/", "/static/app.js", "/healthz", "/readyz", "/docs"):
            assert ask("GET", path).status == 200
        run_metrics = "/v1/runs/my-classify/metrics"
        for path in ("/v1/models", "/metrics", run_metrics, "/languages", "/openapi.json"):
            refused = ask("GET", path)
            assert refused.status == 401
            assert refused.headers["www-authenticate"] == "Bearer"
            assert ask("GET", path, None, authorization="Bearer wrong").status == 401
            assert ask("GET", path, None, authorization="Bearer open sesame").status == 200
        assert ask("POST", PREDICT, VALID).status == 401
        assert ask("POST", PREDICT, VALID, authorization="Bearer open sesame").status == 200


def test_hosts_other_than_loopback_require_a_token(runs, capsys):
    folder = str(runs["classify"].folder.path)
    assert main(["serve", folder, "--host", "0.0.0.0", "--port", "0"]) == 2
    assert "give a --token" in capsys.readouterr().err
    with pytest.raises(RegardError, match="at least 8 characters"):
        Server([folder], token="short")
    with Server([folder], host="0.0.0.0", token="long enough", allowed_hosts=["my.name"]) as server:
        ask = Client(server.url)
        known = {"authorization": "Bearer long enough"}
        assert ask("GET", "/v1/models", None, **known).status == 200
        assert ask("GET", "/v1/models", None, host="my.name:80", **known).status == 200
        assert ask("GET", "/v1/models", None, host="other.name", **known).status == 421


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "nowhere: no such run folder"),
        (["{run}", "--port", "99999"], "expected a port"),
        (["{run}", "--port", "{taken}"], "is in use: choose another --port"),
        (["{run}", "--host", "nowhere.invalid", "--token", "long enough"], "cannot listen on"),
        (["{run}", "--token", "a", "--token-file", "b"], "not both"),
        (["{run}", "--token-file", "nowhere"], "cannot read the token"),
    ],
)
def test_bad_arguments_give_one_line(arguments, words, runs, server, capsys):
    names = {"run": runs["classify"].folder.path, "taken": server.port}
    given = [one.format(**names) for one in arguments]
    assert (
        main(["serve", "--port", "0", *given] if "--port" not in given else ["serve", *given]) == 2
    )
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_requests_beyond_the_limits_get_429(runs):
    limits = Limits(
        waiting_texts=4,
        batch_texts=1,
        request_seconds=0.3,
        concurrent_requests=3,
        event_streams=0,
    )
    with Server([runs["classify"].folder.path], limits=limits) as server:
        ask, worker = Client(server.url), server.state.models["my-classify"].worker
        full = ask("POST", PREDICT, {"inputs": ["x"] * 5})
        assert full.status == 429
        assert full.headers["retry-after"] == "1"
        assert "at most 4 may wait" in full.json["detail"]
        assert ask("GET", "/v1/runs/my-classify/events").status == 429
        hold = threading.Event()
        worker.call(lambda: hold.wait(10))
        late = ask("POST", PREDICT, VALID)
        assert (late.status, late.json["detail"]) == (504, "no response within 0.3 seconds")
        server.state.metrics.running += 3
        crowded = ask("POST", PREDICT, VALID)
        assert crowded.status == 429
        assert "3 requests are being handled" in crowded.json["detail"]
        server.state.metrics.running -= 3
        hold.set()
        while worker.counts.waiting:
            time.sleep(0.01)
        assert ask("POST", PREDICT, VALID).status == 200


def test_runs_that_read_vectors_do_not_accept_texts(runs, monkeypatch):
    with Server([runs["classify"].folder.path]) as server:
        model = server.state.models["my-classify"]
        object.__setattr__(model.run.task, "features", 3)
        with pytest.raises(Problem, match="does not accept texts"):
            model.load_run()
        ask = Client(server.url)
        named = ask("POST", PREDICT, {"inputs": "/etc/secret.npy"})
        assert named.status == 409
        assert ask("POST", "/v1/models/my-classify/explain", {"text": "x.npy"}).status == 409


def test_internal_errors_are_reported_without_texts(runs, monkeypatch):
    errors = []
    with Server([runs["classify"].folder.path], on_error=errors.append) as server:

        def fail(self):
            raise KeyError("the secret text")

        monkeypatch.setattr(type(server.state.models["my-classify"]), "description", fail)
        response = Client(server.url)("GET", "/v1/models")
        assert response.status == 500
        assert response.headers["x-content-type-options"] == "nosniff"
        assert b"secret" not in response.raw
        samples = metric_samples(Client(server.url))
    assert len(errors) == 1
    assert "KeyError at" in errors[0]
    assert "secret" not in errors[0]
    assert samples["regard_errors_total", ()] == 1


def metric_samples(ask):
    """The values of `/metrics` by name and labels, read by Prometheus's own parser."""
    families = text_string_to_metric_families(ask("GET", "/metrics").raw.decode())
    samples = [sample for family in families for sample in family.samples]
    return {(one.name, tuple(sorted(one.labels.items()))): one.value for one in samples}


def test_metrics_count_requests_and_texts(runs):
    with Server([runs["classify"].folder.path]) as server:
        ask = Client(server.url)
        ask("POST", PREDICT, {"inputs": ["the film", "the plot"]})
        ask("POST", PREDICT, VALID)
        ask("POST", PREDICT, b"[")
        response = ask("GET", "/metrics")
        samples = metric_samples(ask)
    assert response.headers["content-type"].startswith("text/plain; version=")
    route = (("method", "POST"), ("route", "/v1/models/{id}/predict"))
    assert samples["regard_requests_total", (*route, ("status", "200"))] == 2
    assert samples["regard_requests_total", (*route, ("status", "400"))] == 1
    assert samples["regard_request_seconds_total", route] > 0
    assert samples["regard_errors_total", ()] == 0
    assert samples["regard_requests_running", ()] == 1  # this one
    assert samples["regard_event_streams", ()] == 0
    assert samples["regard_info", (("version", regard.__version__),)] == 1
    model = (("model", "my-classify"),)
    assert samples["regard_model_texts_total", model] == 3
    assert samples["regard_model_batches_total", model] == 2
    assert samples["regard_model_failures_total", model] == 0
    assert samples["regard_model_calls_total", model] == 0
    assert samples["regard_model_seconds_total", model] > 0
    assert samples["regard_model_waiting", model] == 0
    assert samples["regard_model_largest", model] == 2
    if sys.platform == "linux":
        assert samples["process_resident_memory_bytes", ()] > 1e6


def test_two_servers_count_apart(runs):
    folder = runs["classify"].folder.path
    with Server([folder]) as first, Server([folder]) as second:
        Client(first.url)("POST", PREDICT, VALID)
        texts = [
            metric_samples(Client(server.url))[
                "regard_model_texts_total", (("model", "my-classify"),)
            ]
            for server in (first, second)
        ]
    assert texts == [1, 0]


def test_the_command_finishes_requests_in_progress_and_logs_no_text(runs, tmp_path):
    run = tmp_path / "a"
    shutil.copytree(runs["language"].folder.path, run)
    command = [sys.executable, "-m", "regard", "serve", str(run), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        url, name = process.stdout.readline().split()
        assert name == "a"
        with urlopen(f"{url}/readyz") as ready:
            assert json.load(ready) == {"status": "ready"}
        ask, replies = Client(url), []
        body = {"model": "a", "prompt": "xyzzy plugh", "max_tokens": 400, "n": 2}
        thread = threading.Thread(
            target=lambda: replies.append(ask("POST", "/v1/completions", body))
        )
        thread.start()
        while thread.is_alive() and "running 2" not in ask("GET", "/metrics").raw.decode():
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        out, error = process.communicate(timeout=60)
        thread.join()
    finally:
        process.kill()
        process.wait()
    assert replies[0].status == 200
    assert len(replies[0].json["choices"]) == 2
    assert process.returncode == 0
    assert "xyzzy" not in out + error
    assert error == ""
