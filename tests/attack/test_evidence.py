"""Folders of experiments and comparisons from somebody else: served as data, and only they are."""

import json
import os
import time
from pathlib import Path

import pytest

from regard.serve import Server, evidence_folders
from regard.serve.evidence_folders import EvidenceFolders
from tests.attack.test_writers import as_nobody, open_to_others
from tests.serve.requests import Client

RECORD = {"name": "x", "claim": "c", "summary": "s", "held": True, "numbers": {}}
SCRIPT = "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'><script>alert(1)</script></svg>"


def write_result(folder: Path, **values: object) -> Path:
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps(RECORD | values))
    return folder


def names(folder: Path) -> list[str]:
    return [record["name"] for record in EvidenceFolders((folder,)).experiments()]


def test_links_that_lead_out_of_the_folder_are_not_followed(tmp_path):
    write_result(tmp_path / "all/mine", name="mine")
    write_result(tmp_path / "outside", name="secret")
    (tmp_path / "all/link").symlink_to(tmp_path / "outside")
    (tmp_path / "all/loop").symlink_to("loop")
    (tmp_path / "all/inner").symlink_to("mine")
    (tmp_path / "all/file").mkdir()
    (tmp_path / "all/file/result.json").symlink_to(tmp_path / "outside/result.json")
    assert names(tmp_path / "all") == ["mine"]


def test_files_that_are_none_or_of_somebody_else_are_left_out(tmp_path):
    open_to_others(tmp_path)
    write_result(tmp_path / "all/mine", name="mine")
    for kind, make in (("pipe", os.mkfifo), ("folder", os.mkdir)):
        (tmp_path / f"all/{kind}").mkdir()
        make(tmp_path / f"all/{kind}/result.json")
    (tmp_path / "all/device").mkdir()
    (tmp_path / "all/device/result.json").symlink_to("/dev/zero")
    write_result(tmp_path / "all/closed", name="closed").chmod(0)
    for path in (tmp_path / "all", tmp_path / "all/mine", tmp_path / "all/mine/result.json"):
        path.chmod(0o755)
    with as_nobody():
        assert names(tmp_path / "all") == ["mine"]


def test_what_is_read_for_a_request_is_bounded(tmp_path, monkeypatch):
    for number in range(20):
        write_result(tmp_path / f"all/{number:02}", name=str(number), padding="x" * 10_000)
    assert len(names(tmp_path / "all")) == 20
    monkeypatch.setattr(evidence_folders, "MAX_RESULTS", 5)
    assert names(tmp_path / "all") == ["0", "1", "2", "3", "4"]
    monkeypatch.setattr(evidence_folders, "MAX_BYTES", 25_000)
    assert names(tmp_path / "all") == ["0", "1"]


def nested(levels: int) -> list[object]:
    value: list[object] = []
    for _ in range(levels):
        value = [value]
    return value


CRAFTED: dict[str, object] = {
    "nested": nested(900),
    "a little nested": nested(40),
    "numbers": [float("nan"), float("inf"), 1e308 * 10, 10**400],
    "half a letter": "\ud800",
    "markup": "</script><script>alert(1)</script>",
}


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    folder = tmp_path_factory.mktemp("all")
    for name, value in CRAFTED.items():
        write_result(folder / name, name=name, source=value, extra=value)
    drawn = write_result(folder / "drawn", name="drawn", pictures=["a.svg"] * 99)
    (drawn / "a.svg").write_text(SCRIPT)
    (folder / "report").mkdir()
    (folder / "report/comparison.json").write_text('{"format": "f", "task": {"a": [1]}}')
    report = {"task": "t", "metric": "m", "verdict": "v", "systems": [{}], "pairs": [{"a": SCRIPT}]}
    (folder / "report/report.json").write_text(json.dumps(report))
    errors: list[str] = []
    with Server([], evidence=[folder], on_error=errors.append) as server:
        yield Client(server.url)
    assert errors == []


@pytest.mark.parametrize(
    "path",
    ["/v1/experiments", "/v1/comparisons", "/v1/comparisons/report", "/v1/experiments/drawn"]
    + [f"/v1/experiments/{name.replace(' ', '%20')}" for name in CRAFTED]
    + ["/v1/experiments/..%2f..%2fetc", "/v1/experiments/%00", "/v1/comparisons/" + "x" * 5000],
)
def test_crafted_results_are_data_and_never_a_page(path, ask):
    """A picture is a text in JSON, which the app shows as an image: nothing in it can run."""
    began = time.monotonic()
    for kind in ("*/*", "text/html", "image/svg+xml"):
        response = ask("GET", path, None, accept=kind)
        assert response.status in (200, 400, 404, 414), path
        if response.status == 200:
            assert response.headers["content-type"] == "application/json"
        assert response.headers["x-content-type-options"] == "nosniff"
        policy = response.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        assert b"<script" not in response.raw or response.headers["content-type"].startswith(
            "application/json"
        )
    assert time.monotonic() - began < 20


def test_results_that_are_nested_too_deeply_are_left_out(ask):
    listed = {row["name"] for row in ask("GET", "/v1/experiments").json["data"] if row["result"]}
    assert listed == {"numbers", "half a letter", "markup", "drawn"}
    assert len(ask("GET", "/v1/experiments/drawn").json["svg"]) == 8
