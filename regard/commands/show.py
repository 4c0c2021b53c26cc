"""`regard show`: where a model looks, in the terminal, as a picture or as a page."""

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.commands.line_io import number, refuse_overwriting
from regard.commands.run_options import one_text
from regard.devices import add_device
from regard.errors import OptionError, RegardError, unknown
from regard.examples import example_path
from regard.options import positive

ENDINGS = ("html", "svg", "png", "pdf", "json")
PICTURES = ("matrix", "links", "text", "heads")
AGGREGATES = ("mean", "max")


def add(commands: Any, arguments: Sequence[str] | None) -> None:
    """Add `show`."""
    show = commands.add_parser(
        "show",
        help="draw the attention of a model on a text",
        examples=(
            'regard show runs/en-fr --text "The black cat sleeps ."',
            'regard show runs/en-fr --text "The black cat sleeps ." --to look.html',
            'regard show runs/en-fr --text "The cat sleeps ." --to look.pdf --no-title',
        ),
    )
    show.add_argument("source", type=Path, help="a run folder, or a trace file")
    show.add_argument("texts", nargs="*", metavar="text", help="the text, in quotation marks")
    show.add_argument("--text", help="the same as text; a run folder needs one")
    show.add_argument("--target", help="a translation to force, instead of the model's own")
    show.add_argument(
        "--to",
        default="terminal",
        metavar="FILE",
        help="terminal (default), or a file that ends in .html, .svg, .png, .pdf or .json",
    )
    show.add_argument(
        "--picture", default="matrix", help=", ".join(PICTURES) + " (SVG, PNG and PDF only)"
    )
    show.add_argument("--look", metavar="NAME", help="kind of attention, such as decoder.source")
    show.add_argument("--layer", type=int, metavar="INT", help="counted from 0 (default: the last)")
    show.add_argument(
        "--head", type=int, metavar="INT", help="counted from 0 (default: all combined)"
    )
    show.add_argument(
        "--aggregate", default="mean", help="how heads are combined: mean (default) or max"
    )
    show.add_argument(
        "--word",
        type=int,
        default=0,
        metavar="INT",
        help="the query, counted from 0, for --picture text",
    )
    titles = show.add_mutually_exclusive_group()
    titles.add_argument("--title", default="", help="title of the picture or page")
    titles.add_argument(
        "--no-title", action="store_true", help="leave the title out of the picture, for a paper"
    )
    show.add_argument(
        "--font-size",
        type=_font_size,
        default=14.0,
        metavar="PIXELS",
        help="size of the labels of a picture at its own size, from 4 to 100 (default: 14)",
    )
    show.add_argument(
        "--budget",
        type=positive,
        default=10,
        metavar="MB",
        help="maximum size of a page; weights are rounded, and layers left out, where they do not "
        "fit (default: 10)",
    )
    add_device(show)
    show.rest = "texts"
    show.set_defaults(run=_show, parser=show)


def _show(chosen: argparse.Namespace) -> int:
    kind = _kind(chosen.to)
    if chosen.picture not in PICTURES:
        raise RegardError(unknown("picture", chosen.picture, PICTURES))
    if chosen.aggregate not in AGGREGATES:
        raise RegardError(unknown("aggregate", chosen.aggregate, AGGREGATES))
    refuse_overwriting(None if kind == "terminal" else chosen.to, chosen.source)
    chosen.text = one_text(chosen, chosen.source)
    trace = _trace(chosen)
    which = {"name": chosen.look, "layer": chosen.layer, "head": chosen.head}
    if kind == "terminal":
        from regard.show import report

        width = shutil.get_terminal_size((100, 24)).columns
        print(report(trace, width, _coloured(), **which))
        return 0
    from regard.atomic_files import write_output
    from regard.show import draw, fit_page

    notes: list[str] = []
    if kind == "html":
        page = fit_page(trace, chosen.budget * 10**6, chosen.title)
        data, notes = page.text.encode("utf-8", "replace"), page.notes()
    else:
        data = draw(
            trace,
            kind,
            picture=chosen.picture,
            aggregate=chosen.aggregate,
            word=chosen.word,
            title=chosen.title,
            show_title=not chosen.no_title,
            font_size=chosen.font_size,
            **which,
        )
    path = Path(chosen.to)
    write_output(path, lambda stream: stream.write(data))
    size = f"{len(data) / 1e6:.2f} MB" if len(data) > 10**5 else "written"
    print("; ".join([f"{path}: {size}", *notes]))
    if notes:
        more = f"--budget {2 * chosen.budget} allows a larger page"
        print(f"regard: note: {more}", file=sys.stderr)
    return 0


def _font_size(text: str) -> float:
    size = number(text)
    if not 4 <= size <= 100:
        raise argparse.ArgumentTypeError(f"expected a number from 4 to 100, got {text!r}")
    return size


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

    chosen.source = example_path(chosen.source)
    if not chosen.source.exists():
        raise RegardError(f"{chosen.source}: no such run folder or trace file")
    if not chosen.source.is_dir():
        if chosen.text is not None or chosen.target is not None:
            raise RegardError(f"{chosen.source}: --text and --target require a run folder")
        return Trace.read(chosen.source)
    from regard.commands.run_options import load_run
    from regard.training import RunFolder

    RunFolder(chosen.source).config()  # a folder that is not a run needs another message
    if chosen.text is None:
        raise RegardError(f"{chosen.source}: a run needs a text: give one, in quotation marks")
    if not chosen.text.strip():
        raise OptionError("text", "the text is empty: expected at least one word")
    run = load_run(chosen.source, chosen.device)
    try:
        return run.trace(chosen.text, chosen.target)
    except ValueError as error:
        raise RegardError(str(error)) from error


def _coloured() -> bool:
    """Colours only on a terminal, and not where they were declined (https://no-color.org)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return sys.stdout.isatty()
