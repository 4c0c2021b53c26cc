"""Results of experiments and comparisons over HTTP: found in folders, and nothing else is read."""

import json
from pathlib import Path

import pytest

from regard.commands.serve import _evidence_folders, _run_folders
from regard.serve import Server
from regard.serve.evidence_folders import EvidenceFolders, holds_evidence
from tests.serve.requests import Client

RESULT = {
    "name": "distance",
    "claim": "claim",
    "summary": "summary",
    "held": True,
    "numbers": {"one": {"mean": 1.0, "low": float("nan"), "high": None, "n": 1}},
    "pictures": ["a.svg", "../outside.svg", "linked.svg", 3],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    result, comparison = tmp_path / "all/distance", tmp_path / "all/mine"
    for path in (result, comparison):
        path.mkdir(parents=True)
    (result / "result.json").write_text(json.dumps(RESULT))
    (result / "a.svg").write_text("<svg/>")
    (tmp_path / "outside.svg").write_text("<svg>outside</svg>")
    (result / "linked.svg").symlink_to(tmp_path / "outside.svg")
    (comparison / "comparison.json").write_text(json.dumps({"format": "f", "task": "tag"}))
    report = {"task": "tag", "metric": "F1", "verdict": "v", "systems": [], "pairs": []}
    (comparison / "report.json").write_text(json.dumps(report))
    return tmp_path / "all"


def test_results_are_found_in_a_folder_and_right_below_it(folder):
    for named in (folder, folder / "distance"):
        assert [one["name"] for one in EvidenceFolders((named,)).experiments()] == ["distance"]
    assert [one["id"] for one in EvidenceFolders((folder / "mine",)).comparisons()] == ["mine"]
    assert holds_evidence(folder)
    assert not holds_evidence(folder.parent / "nowhere")


def test_pictures_come_from_their_own_folder_only(folder):
    found = EvidenceFolders((folder,)).experiment("distance")
    assert found is not None
    assert found["svg"] == ["<svg/>"]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"name": 1}', '{"name": "x", "numbers": []}'])
def test_damaged_files_are_left_out(folder, text):
    (folder / "distance/result.json").write_text(text)
    (folder / "mine/report.json").write_text(text)
    found = EvidenceFolders((folder,))
    assert found.experiments() == []
    assert [one["finished"] for one in found.comparisons()] == [False]
    assert found.comparison("mine") is None


def test_the_server_lists_claims_and_results(folder):
    with Server([], evidence=[folder]) as server:
        ask = Client(server.url)
        rows = ask("GET", "/v1/experiments").json["data"]
        (run,) = [row for row in rows if row["result"]]
        assert run["name"] == "distance"
        assert len(rows) > 10
        assert ask("GET", "/v1/experiments/distance").json["numbers"]["one"]["low"] is None
        assert ask("GET", "/v1/experiments/beams").status == 404
        (listed,) = ask("GET", "/v1/comparisons").json["data"]
        assert listed["id"] == "mine"
        assert listed["finished"] is True
        assert ask("GET", "/v1/comparisons/mine").json["verdict"] == "v"
        assert ask("GET", "/v1/comparisons/..%2Fall").status == 404


def test_serve_takes_folders_of_results(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    assert _run_folders([Path("all"), Path("nowhere")]) == [Path("nowhere")]
    assert _evidence_folders([Path("all")])[:2] == [Path("all"), Path("experiments")]


def test_results_come_with_the_package():
    found = EvidenceFolders(tuple(_evidence_folders([])))
    names = {one["name"] for one in found.experiments()}
    assert {"permutation", "gradients", "masking"} <= names
    assert all(found.experiment(name)["svg"] for name in names)
    assert found.comparison("pooling")["systems"]
