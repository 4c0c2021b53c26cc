"""`regard serve`: trained runs over HTTP, with a page to look at them."""

import argparse
import signal
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

from regard.errors import RegardError


def add(commands: Any) -> None:
    """Add `serve`."""
    serve = commands.add_parser("serve", help="a page and an HTTP interface for trained models")
    serve.add_argument("folders", nargs="+", type=Path, metavar="folder", help="folders of runs")
    serve.add_argument("--port", type=_port, default=8000, help="default: 8000; 0: any free one")
    serve.add_argument(
        "--host",
        default="127.0.0.1",
        help="the address to listen at; others than this machine’s own need a token",
    )
    serve.add_argument("--token", help="what every request must bring: Authorization: Bearer …")
    serve.add_argument(
        "--token-file", type=Path, metavar="FILE", help="a file that holds the token"
    )
    serve.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a further name that requests may call this server by",
    )
    serve.add_argument("--open", action="store_true", help="open the page in a browser")
    serve.set_defaults(run=_serve, parser=serve)


def _serve(chosen: argparse.Namespace) -> int:
    from regard.serve import Server
    from regard.serve.server import is_loopback

    def tell(line: str) -> None:
        print(f"regard: {line}", file=sys.stderr, flush=True)

    token = _token(chosen)
    server = Server(
        chosen.folders,
        host=chosen.host,
        port=chosen.port,
        token=token,
        names=chosen.allow_host,
        tell=tell,
    )
    if not is_loopback(chosen.host):
        tell(f"warning: {chosen.host} can be reached by others, without encryption")
    names = ", ".join(
        one.id if one.ready else f"{one.id} (in training)"
        for one in server.desk.shelf.served.values()
    )
    print(f"{server.url}  {names}", flush=True)
    # uvicorn hands on the signal that ended it when all is finished: it has done its work
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: None)
    if chosen.open:
        import webbrowser

        # what stands after “#” stays in the browser
        webbrowser.open(server.url + ("" if token is None else f"/#token={quote(token)}"))
    server.run()
    return 0


def _token(chosen: argparse.Namespace) -> str | None:
    if chosen.token_file is None:
        return str(chosen.token) if chosen.token is not None else None
    if chosen.token is not None:
        raise RegardError("give --token or --token-file, not both")
    try:
        return str(chosen.token_file.read_text("utf-8")).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise RegardError(f"{chosen.token_file}: the token cannot be read ({error})") from error


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to 65535, got {text!r}")
    return int(text)
