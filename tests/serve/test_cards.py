"""Model cards, the runs that come with the package, measuring at request, and embedding."""

import time

import pytest

from regard.cli import main
from regard.errors import RegardError
from regard.serve import Server
from regard.serve.api import measurements
from regard.serve.http.access import SECURITY_HEADERS
from tests.serve.requests import Client


@pytest.fixture(scope="module")
def ask():
    with Server(["example:sentiment", "example:copy"]) as server:
        yield Client(server.url)


def test_models_say_what_they_are(ask, runs):
    sentiment, copy = ask("GET", "/v1/models").json["data"]
    assert sentiment["id"] == "sentiment"
    assert sentiment["argument"] == "example:sentiment"
    assert sentiment["data"] == "built-in"
    assert sentiment["metric"].startswith("accuracy ")
    assert copy["written"] > 1.7e9
    rows = dict(ask("GET", "/v1/models/copy/card").json["rows"])
    assert rows["task"] == "algorithm"
    assert "exact match" in rows["validation"]
    path = runs["classify"].folder.path
    with Server([path], host="0.0.0.0", token="long enough", allowed_hosts=["x"]) as server:
        listed = Client(server.url)("GET", "/v1/models", None, authorization="Bearer long enough")
        assert listed.json["data"][0]["argument"] == path.name  # no folders for other machines


def test_a_model_is_measured_once_at_a_time(ask, monkeypatch):
    monkeypatch.setattr(measurements, "MAX_TEXTS", 10)
    assert ask("GET", "/v1/faithfulness").json["status"] == "idle"
    assert ask("POST", "/v1/runs/copy/faithfulness", {}).status == 409  # nothing to explain there
    started = ask("POST", "/v1/runs/sentiment/faithfulness", {})
    assert started.json["total"] == 10
    assert ask("POST", "/v1/runs/sentiment/faithfulness", {}).status == 409
    while ask("GET", "/v1/faithfulness").json["status"] == "running":
        time.sleep(0.05)
    assert ask("GET", "/v1/faithfulness").json["status"] == "done"
    (report,) = ask("GET", "/v1/runs/sentiment/faithfulness").json["data"]
    assert report["texts"] == 10
    assert report["verdict"]


def test_only_named_sites_may_embed_the_app(runs, capsys):
    path = runs["classify"].folder.path
    with Server([path], embedding=["https://example.org", "http://localhost:8080"]) as server:
        policy = Client(server.url)("GET", "/").headers["content-security-policy"]
    assert policy.endswith("frame-ancestors https://example.org http://localhost:8080")
    assert "none" not in SECURITY_HEADERS["content-security-policy"].rpartition(";")[2]
    for wrong in ("*", "example.org", "https://example.org/page", "https://a; script-src *"):
        with pytest.raises(RegardError, match="expected an origin"):
            Server([path], embedding=[wrong])
    assert main(["serve", str(path), "--allow-embedding", "*", "--port", "0"]) == 2
    assert "--allow-embedding *: expected an origin" in capsys.readouterr().err
