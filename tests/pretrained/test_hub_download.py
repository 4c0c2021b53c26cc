"""`regard import hf:name` downloads what it needs from a hub, here one on this machine."""

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import regard
from regard.inference.import_run import import_run
from tests.pretrained.checkpoints import write_checkpoint

pytest.importorskip("huggingface_hub")
COMMIT = "0123456789abcdef0123456789abcdef01234567"
NAME = "people/tiny"


class Hub(ThreadingHTTPServer):
    """The files of a model as the hub serves them."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = files
        self.served: list[str] = []


class Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        path = self.path.split("?")[0]
        headers: dict[str, str] = {}
        if path.startswith(f"/api/models/{NAME}/tree/"):
            content = json.dumps(
                [
                    {"type": "file", "path": name, "size": len(file), "oid": _digest(file)}
                    for name, file in self.server.files.items()
                ]
            ).encode()
        elif path in (f"/api/models/{NAME}", f"/api/models/{NAME}/revision/{COMMIT}"):
            siblings = [{"rfilename": name} for name in self.server.files]
            content = json.dumps({"id": NAME, "sha": COMMIT, "siblings": siblings}).encode()
        elif path.startswith(f"/{NAME}/resolve/{COMMIT}/"):
            name = path.removeprefix(f"/{NAME}/resolve/{COMMIT}/")
            content = self.server.files[name]
            headers = {"ETag": f'"{_digest(content)}"', "X-Repo-Commit": COMMIT}
            if body:
                self.server.served.append(name)
        else:
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


def _digest(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest()


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    write_checkpoint(tmp_path / "hf", "bert", id2label={"0": "bad", "1": "good"})
    files = {path.name: path.read_bytes() for path in (tmp_path / "hf").iterdir()}
    server = Hub(files | {"pytorch_model.bin": b"pickled", "modeling.py": b"exit()"})
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def _import(name: str, address: str, out: Path) -> subprocess.CompletedProcess[str]:
    """In a process of its own: the package reads its address and folder when it is imported."""
    variables = {
        "HF_ENDPOINT": address,
        "HF_HOME": str(out.parent / "hub"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_OFFLINE": "0",  # which other tests set
        "NO_PROXY": "127.0.0.1",
    }
    return subprocess.run(
        [sys.executable, "-m", "regard", "import", name, "--out", str(out), "--quiet"],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
    )


def test_a_model_is_downloaded_and_imported(hub: Hub, tmp_path: Path) -> None:
    address = f"http://127.0.0.1:{hub.server_address[1]}"
    done = _import(f"hf:{NAME}", address, tmp_path / "run")
    assert done.returncode == 0, done.stderr
    local = regard.load(import_run(tmp_path / "hf", tmp_path / "local").path)
    text = "the dog knows"
    ours = regard.load(tmp_path / "run")
    assert ours(text) == local(text)
    assert sorted(hub.served) == sorted(
        name for name in hub.files if name not in ("pytorch_model.bin", "modeling.py")
    )
    again = _import(f"hf:{NAME}@{COMMIT}", address, tmp_path / "again")
    assert again.returncode == 0, again.stderr
    assert len(hub.served) == len({*hub.served})  # from the cache


def test_what_cannot_be_downloaded_is_one_line(hub: Hub, tmp_path: Path) -> None:
    address = f"http://127.0.0.1:{hub.server_address[1]}"
    for name, where in ((f"hf:{NAME}2", address), (f"hf:{NAME}", "http://127.0.0.1:1")):
        done = _import(name, where, tmp_path / "run")
        assert done.returncode == 2
        (line,) = done.stderr.splitlines()
        assert line.startswith(f"regard: {name}: cannot be downloaded: ")
        assert not (tmp_path / "run").exists()
