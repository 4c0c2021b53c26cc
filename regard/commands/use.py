"""`regard evaluate` and `regard predict`: a trained run on files."""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from regard.commands.progress import Live
from regard.errors import RegardError
from regard.options import positive

AT_ONCE = 2000
"""Lines that are read, predicted and written together."""


def add(commands: Any) -> None:
    """Add `evaluate` and `predict`."""
    evaluate = commands.add_parser("evaluate", help="measure a trained model on a file")
    predict = commands.add_parser("predict", help="one output line for each input line")
    for parser, run in ((evaluate, _evaluate), (predict, _predict)):
        parser.add_argument("folder", type=Path, help="the folder of the run")
        parser.add_argument(
            "--beam",
            type=positive,
            metavar="INT",
            help="width of the beam, in translation (default: 5)",
        )
        parser.add_argument("--json", action="store_true", help="print everything as JSON")
        parser.set_defaults(run=run, parser=parser)
    evaluate.add_argument(
        "--data", nargs="+", required=True, metavar="FILE", help="what to test on"
    )
    evaluate.add_argument(
        "--lowercase", action="store_true", help="compare in lower case, in translation"
    )
    predict.add_argument("--input", default="-", metavar="FILE", help="default: standard input")
    predict.add_argument("--output", default="-", metavar="FILE", help="default: standard output")


def _load(chosen: argparse.Namespace, *names: str) -> tuple[Any, dict[str, Any]]:
    """The run, and those of its own options that were given."""
    from regard.inference import load

    run = load(chosen.folder)
    options = {name: value for name in names if (value := getattr(chosen, name))}
    if options and run.name != "translation":
        given = " and ".join(f"--{name}" for name in options)
        raise RegardError(f"{chosen.folder}: a run of task {run.name} has no use for {given}")
    return run, options


def _evaluate(chosen: argparse.Namespace) -> int:
    run, options = _load(chosen, "beam", "lowercase")
    show = Live(sys.stderr)
    found = run.evaluate(chosen.data, tell=show.line, **options)
    if chosen.json:
        record = {
            "metrics": {name: asdict(value) for name, value in found.metrics.items()},
            "by_length": {name: asdict(value) for name, value in found.by_length.items()},
            "lines": list(found.lines),
        }
        print(json.dumps(record, ensure_ascii=False))
        return 0
    for name, value in found.metrics.items():
        signature = f"   {value.signature}" if value.signature else ""
        print(f"{name:22}{value.value:9.4g}  [{value.low:.4g}, {value.high:.4g}]{signature}")
    for name, value in found.by_length.items():
        print(f"  {found.main} at {name:14}{value.value:9.4g}  ({value.n} examples)")
    return 0


def _predict(chosen: argparse.Namespace) -> int:
    from regard.training.folder import write_whole

    run, options = _load(chosen, "beam")
    with ExitStack() as stack:
        source: Iterable[bytes] = sys.stdin.buffer
        if chosen.input != "-":
            try:
                source = stack.enter_context(open(chosen.input, "rb"))
            except OSError as error:
                raise RegardError(f"{chosen.input}: cannot be read ({error.strerror})") from error
        lines = _lines(source, chosen.input)
        if chosen.output == "-":
            cut = _write_predictions(sys.stdout.buffer, run, lines, options, chosen.json)
        else:
            counts: list[int] = []

            def write(part: Path) -> None:
                with part.open("wb") as stream:
                    counts.append(_write_predictions(stream, run, lines, options, chosen.json))

            if not (folder := Path(chosen.output).parent).is_dir():
                raise RegardError(f"{chosen.output}: cannot be written (no folder {folder})")
            write_whole(Path(chosen.output), write)
            cut = counts[0]
    if cut:
        print(f"{cut} lines are longer than this model reads: they were cut", file=sys.stderr)
    return 0


def _lines(source: Iterable[bytes], name: str) -> Iterator[str]:
    """Lines that end where others count them, at each newline: one comes out for each."""
    from regard.data.lines import decode

    try:
        for number, raw in enumerate(source, 1):
            yield decode(raw.removesuffix(b"\n").removesuffix(b"\r"), name, number, number == 1)
    except OSError as error:
        raise RegardError(f"{name}: cannot be read ({error.strerror})") from error


def _write_predictions(
    stream: Any, run: Any, lines: Iterator[str], options: dict[str, Any], everything: bool
) -> int:
    """Write one line a prediction, and count the inputs that were cut."""
    cut = 0
    while some := list(islice(lines, AT_ONCE)):
        for text, found in zip(some, run.predict(some, **options), strict=True):
            cut += found.cut
            record = {"input": text, "output": found.output, "cut": found.cut, **found.details}
            line = json.dumps(record, ensure_ascii=False) if everything else found.output
            stream.write(line.encode("utf-8", "replace") + b"\n")
        stream.flush()
    return cut
