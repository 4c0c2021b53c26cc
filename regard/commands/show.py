"""`regard show`: where a model looks, in the terminal, as a picture or as a page."""

import argparse
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from regard.errors import RegardError, unknown
from regard.options import positive

ENDINGS = ("html", "svg", "png", "json")
PICTURES = ("matrix", "links", "text", "heads")
AGGREGATES = ("mean", "max")


def add(commands: Any) -> None:
    """Add `show`."""
    show = commands.add_parser("show", help="see where a model looks, or draw a saved trace")
    show.add_argument("source", type=Path, help="the folder of a run, or the file of a trace")
    show.add_argument("--text", help="what the model reads; needed with a run")
    show.add_argument("--target", help="the translation that it is made to write")
    show.add_argument(
        "--to",
        default="terminal",
        metavar="FILE",
        help="terminal (default), or a file that ends in .html, .svg, .png or .json",
    )
    show.add_argument("--picture", default="matrix", help=", ".join(PICTURES) + " (svg and png)")
    show.add_argument("--look", metavar="NAME", help="which attention, such as decoder.source")
    show.add_argument("--layer", type=int, metavar="INT", help="from 0 (default: the last)")
    show.add_argument("--head", type=int, metavar="INT", help="from 0 (default: all together)")
    show.add_argument(
        "--aggregate", default="mean", help="how heads come together: mean (default) or max"
    )
    show.add_argument(
        "--word", type=int, default=0, metavar="INT", help="the word that looks, in --picture text"
    )
    show.add_argument("--title", default="", help="the title of the picture or page")
    show.add_argument(
        "--budget",
        type=positive,
        default=10,
        metavar="MB",
        help="how large a page may be: layers that do not fit are left out (default: 10)",
    )
    show.set_defaults(run=_show, parser=show)


def _show(chosen: argparse.Namespace) -> int:
    kind = _kind(chosen.to)
    if chosen.picture not in PICTURES:
        raise RegardError(unknown("picture", chosen.picture, PICTURES))
    if chosen.aggregate not in AGGREGATES:
        raise RegardError(unknown("aggregate", chosen.aggregate, AGGREGATES))
    trace = _trace(chosen)
    which = {"name": chosen.look, "layer": chosen.layer, "head": chosen.head}
    if kind == "terminal":
        from regard.show import report

        width = shutil.get_terminal_size((100, 24)).columns
        print(_printable(report(trace, width, _coloured(), **which)))
        return 0
    from regard.files import write_whole
    from regard.show import draw

    data = draw(
        trace,
        kind,
        picture=chosen.picture,
        aggregate=chosen.aggregate,
        word=chosen.word,
        title=chosen.title,
        budget=chosen.budget * 10**6,
        **which,
    )
    path = Path(chosen.to)
    if not path.parent.is_dir():
        raise RegardError(f"{path}: cannot be written (no folder {path.parent})")
    write_whole(path, lambda part: part.write_bytes(data))
    print(f"{path}: {len(data) / 1e6:.2f} MB" if len(data) > 10**5 else f"{path}: written")
    return 0


def _kind(to: str) -> str:
    """What to make, from the name of the file."""
    if to == "terminal":
        return to
    ending = Path(to).suffix.lstrip(".").lower()
    if ending not in ENDINGS:
        expected = ", ".join(f".{one}" for one in ENDINGS)
        raise RegardError(f"--to {to}: expected terminal, or a file that ends in {expected}")
    return ending


def _trace(chosen: argparse.Namespace) -> Any:
    """The trace of a file, or of a run on a text."""
    from regard.trace import Trace

    if not chosen.source.is_dir():
        if chosen.text is not None or chosen.target is not None:
            raise RegardError(f"{chosen.source}: --text and --target need the folder of a run")
        return Trace.read(chosen.source)
    if chosen.text is None or not chosen.text.strip():
        raise RegardError(f"{chosen.source}: a run needs a text to look at: give --text")
    from regard.inference import load

    run = load(chosen.source)
    try:
        return run.trace(chosen.text, chosen.target)
    except ValueError as error:
        raise RegardError(str(error)) from error


def _coloured() -> bool:
    """Colours only on a terminal, and not where they were declined (https://no-color.org)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return sys.stdout.isatty()


def _printable(text: str) -> str:
    """The text in the letters that standard output knows."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)
