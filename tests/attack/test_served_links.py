"""Nothing outside the folder of a run is served, whatever links it contains."""

import json
import os
import shutil
from pathlib import Path

import pytest

from regard import verified_files
from regard.cli import main
from regard.errors import RegardError
from regard.serve import Server
from tests.serve.requests import Client

SECRET = "a-secret-of-the-disk"
ROUTES = (
    "/v1/models",
    "/v1/runs/run/metrics",
    "/v1/runs/run/events",
    "/v1/runs/run/evaluations",
    "/v1/runs/run/evaluations/x",
    "/v1/runs/run/evaluations/..%2F..%2Foutside%2Fx",
    "/v1/runs/run/faithfulness",
    "/v1/runs/run/checkpoints",
    "/static/..%2frun/README.md",
    "/openapi.json",
)
LINKS = {
    "config.json": "x.json",
    "model.safetensors": "x.json",
    "metrics.jsonl": "x.jsonl",
    "README.md": "x.json",
    "curves.svg": "x.json",
    "data/source.json": "x.json",
    "data": "",
    "evaluations": "",
    "evaluations/x.json": "x.json",
    "evaluations/x.jsonl": "x.jsonl",
    "faithfulness": "",
    "faithfulness/x.json": "x.json",
    "checkpoints": "",
    f"checkpoints/step-{SECRET}.safetensors": "x.json",
    "state/latest.safetensors": "x.json",
}
"""Links in a run, and where they lead in the folder beside it."""


@pytest.fixture
def run(translator: Path, tmp_path: Path) -> Path:
    """A run, and a folder beside it with files that look like those of a run."""
    shutil.copytree(translator, tmp_path / "run")
    outside = tmp_path / "outside"
    outside.mkdir()
    record = {"metrics": {}, "by_length": {}, "comprehensiveness": {}, "secret": SECRET}
    (outside / "x.json").write_text(json.dumps(record))
    (outside / "x.jsonl").write_text(json.dumps(record) + "\n")
    (outside / f"step-{SECRET}.safetensors").write_text("")
    return tmp_path / "run"


def add_link(run: Path, name: str) -> None:
    path = run / name
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(run.parent / "outside" / LINKS[name])


@pytest.mark.parametrize("name", LINKS)
def test_a_run_with_a_link_out_of_it_is_not_served(name: str, run: Path, capsys) -> None:
    add_link(run, name)
    with pytest.raises(RegardError, match="is a link that leads out of the run folder"):
        Server([run])
    assert main(["serve", str(run)]) == 2
    error = capsys.readouterr().err
    assert f"{run / name}: is a link" in error
    assert SECRET not in error.replace(name, "")


def test_links_that_appear_later_are_not_followed(run: Path) -> None:
    (run / "evaluations").mkdir()
    (run / "evaluations/mine.json").write_text('{"metrics": {}}')
    os.mkfifo(run / "evaluations/pipe.json")  # nobody writes to it: it must not be opened
    with Server([run]) as server:
        ask = Client(server.url)
        for name in LINKS:
            add_link(run, name)
            if name == "state/latest.safetensors":  # the stream of events would never end
                continue
            for route in ROUTES:
                if not route.endswith("events"):
                    assert SECRET.encode() not in ask("GET", route).raw, (name, route)
            if name != "evaluations":
                continue
            (run / "evaluations").unlink()
            (run / "evaluations").mkdir()
        body = {"inputs": "the film", "parameters": {"checkpoint": f"step-{SECRET}"}}
        assert ask("POST", "/v1/models/run/explain", body).status in (400, 404, 422)


def test_metrics_behind_a_link_are_not_in_the_events(run: Path) -> None:
    with Server([run]) as server:
        add_link(run, "metrics.jsonl")
        response = Client(server.url)("GET", "/v1/runs/run/events")  # training has ended
    assert response.status == 200
    assert b"event: end" in response.raw
    assert SECRET.encode() not in response.raw


def test_links_within_the_run_and_to_the_run_are_followed(run: Path) -> None:
    (run / "evaluations").mkdir()
    (run / "evaluations/first.json").write_text('{"metrics": {}}')
    (run / "evaluations/second.json").symlink_to("first.json")
    (run.parent / "latest").symlink_to("run")
    with Server([run.parent / "latest"]) as server:
        listed = Client(server.url)("GET", "/v1/runs/run/evaluations").json["data"]
    assert [one["name"] for one in listed] == ["validation", "first", "second"]


@pytest.mark.parametrize("name", ["evaluations/mine.json", "evaluations"])
def test_what_becomes_a_link_after_the_check_is_not_read(name: str, run: Path, monkeypatch) -> None:
    """Somebody replaces a file, or its folder, between the check and the opening."""
    (run / "evaluations").mkdir()
    (run / "evaluations/mine.json").write_text('{"metrics": {}}')
    (run.parent / "outside/mine.json").write_text(json.dumps({"metrics": {}, "secret": SECRET}))
    realpath = os.path.realpath

    def resolve_and_replace(path: object) -> str:
        resolved = realpath(path)  # type: ignore[call-overload]
        target = run / name
        if resolved.endswith("mine.json") and not target.is_symlink():
            target.rename(run / "before")
            target.symlink_to(run.parent / "outside" / name.removeprefix("evaluations").lstrip("/"))
        return str(resolved)

    assert SECRET not in (run / "evaluations/mine.json").read_text()
    monkeypatch.setattr(verified_files.os.path, "realpath", resolve_and_replace)
    with pytest.raises(RegardError, match="cannot be read"):
        verified_files.read_json(run / "evaluations/mine.json", within=run)
    assert SECRET in (run / "evaluations/mine.json").read_text()
