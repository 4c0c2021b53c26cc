"""`regard serve`: trained runs over HTTP, with a web app."""

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from regard.devices import add_device
from regard.errors import RegardError
from regard.examples import FOLDER, PREFIX, example_names, example_path
from regard.verified_files import read_named

MAX_TOKEN = 4096
"""Bytes of a file with a token."""


def add(commands: Any, arguments: Sequence[str] | None) -> None:
    """Add `serve`."""
    serve = commands.add_parser(
        "serve",
        help="serve trained models: a web app and an HTTP API",
        examples=(
            "regard serve --open",
            "regard serve runs/en-fr runs/reviews example:sentiment",
            "regard serve runs --port 8080",
        ),
    )
    serve.add_argument(
        "folders",
        nargs="*",
        type=Path,
        metavar="folder",
        help="run folders, or folders that contain some (default: the examples that come with "
        "Regard); results of experiments and comparisons, too",
    )
    serve.add_argument(
        "--port",
        type=_port,
        default=8000,
        help="port to listen on; 0 for any free port (default: 8000)",
    )
    serve.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on; any but loopback requires a token (default: 127.0.0.1)",
    )
    serve.add_argument(
        "--token", help="token that every request must send: Authorization: Bearer …"
    )
    serve.add_argument("--token-file", type=Path, metavar="FILE", help="read the token from a file")
    serve.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="additional host name under which the server can be reached",
    )
    serve.add_argument(
        "--allow-embedding",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="site whose pages may embed the app in a frame, such as https://example.org",
    )
    serve.add_argument(
        "--quantize",
        choices=("none", "int8"),
        default="none",
        help="decode translations with weights in int8: faster, and slightly less exact "
        "(default: none)",
    )
    add_device(serve)
    serve.add_argument("--open", action="store_true", help="open the web app in a browser")
    serve.set_defaults(run=_serve, parser=serve)


def _serve(chosen: argparse.Namespace) -> int:
    from regard.serve import Server
    from regard.serve.server import is_loopback

    def report(line: str) -> None:
        print(f"regard: {line}", file=sys.stderr, flush=True)

    token = _token(chosen)
    server = Server(
        _run_folders(chosen.folders),
        evidence=_evidence_folders(chosen.folders),
        host=chosen.host,
        port=chosen.port,
        token=token,
        allowed_hosts=chosen.allow_host,
        embedding=chosen.allow_embedding,
        quantize=chosen.quantize,
        device=chosen.device,
        on_error=report,
    )
    if not is_loopback(chosen.host):
        report(f"warning: {chosen.host} can be reached from other machines, without encryption")
    names = ", ".join(
        model.id if model.ready else f"{model.id} (in training)" for model in server.state.models
    )
    print(f"{server.url}  {names or '(no models)'}", flush=True)
    # uvicorn shuts down at the first signal and raises it again afterwards: ignored, since the
    # requests in progress are finished then
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: None)
    if chosen.open:
        import webbrowser

        # browsers do not send what follows “#”
        webbrowser.open(server.url + ("" if token is None else f"/#token={quote(token)}"))
    server.run()
    return 0


def _run_folders(folders: Sequence[Path]) -> list[Path]:
    """Runs by their folders, and all runs in folders that contain some."""
    from regard.serve.evidence_folders import holds_evidence
    from regard.training.stored_runs.run_summary import find_runs

    runs: list[Path] = []
    for folder in [example_path(path) for path in folders or [Path(PREFIX)]]:
        inside = find_runs(folder) if folder.is_dir() else []
        if folder == FOLDER:
            inside = [folder / name for name in example_names()]
        if inside or not holds_evidence(folder):
            runs += inside or [folder]  # the server says why a folder is no run
    return list(dict.fromkeys(runs))


def _evidence_folders(folders: Sequence[Path]) -> list[Path]:
    """Where results of experiments and comparisons may be: the folders that were named, those of
    the working directory, and the examples."""
    from regard.serve.evidence_folders import DEFAULT_FOLDERS

    examples = [example_path(PREFIX) / name for name in DEFAULT_FOLDERS]
    named = [example_path(path) for path in folders]
    return list(dict.fromkeys([*named, *map(Path, DEFAULT_FOLDERS), *examples]))


def _token(chosen: argparse.Namespace) -> str | None:
    if chosen.token_file is None:
        return str(chosen.token) if chosen.token is not None else None
    if chosen.token is not None:
        raise RegardError("give --token or --token-file, not both")
    try:
        return read_named(chosen.token_file, MAX_TOKEN).strip()
    except (OSError, ValueError) as error:
        raise RegardError(f"{chosen.token_file}: cannot read the token ({error})") from error


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to 65535, got {text!r}")
    return int(text)
