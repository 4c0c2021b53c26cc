"""`regard predict`: a trained run on lines of text."""

import argparse
import re
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

from regard.commands.piping import (
    EXITS,
    SAMPLING,
    add_sampling,
    as_line,
    lines_of,
    number,
    once,
    told_cut,
    write_lines,
)
from regard.commands.remarks import Remarks
from regard.errors import RegardError
from regard.options import positive

AT_ONCE = 2000
"""Lines that are read, predicted and written together."""
SEARCH = ("beam", "nbest", "length_penalty", "coverage", "exact", "replace_unknown", "weights")
OPTIONS = {"translation": {*SEARCH, *SAMPLING, "lowercase", "force"}, "language": {*SAMPLING}}
"""The options that each task has a use for; others have none."""


def add(commands: Any) -> None:
    """Add `predict`."""
    predict = commands.add_parser(
        "predict", help="one output line for each input line", epilog=EXITS
    )
    predict.add_argument("folder", type=Path, help="the folder of the run")
    predict.add_argument("--input", default="-", metavar="FILE", help="default: standard input")
    predict.add_argument("--output", default="-", metavar="FILE", help="default: standard output")
    predict.add_argument("--json", action="store_true", help="print everything as JSON")
    predict.add_argument(
        "--batch-size", type=positive, metavar="INT", help="lines taken together at most"
    )
    _add_search(predict)
    add_sampling(predict)
    predict.set_defaults(run=_predict, parser=predict)


def _add_search(predict: argparse.ArgumentParser) -> None:
    group = predict.add_argument_group("translation")
    group.add_argument(
        "--beam", type=positive, metavar="INT", help="width of the beam (default: 5)"
    )
    group.add_argument(
        "--markup",
        choices=("html", "xml"),
        help="lines have inline tags, which are put around the aligned words",
    )
    group.add_argument(
        "--nbest",
        type=positive,
        metavar="INT",
        help="so many translations of each line, in the JSON (default: 1)",
    )
    group.add_argument(
        "--length-penalty",
        type=number,
        metavar="A",
        help="compare log p(y) / |y|^A; 0 for log p(y) (default: 1)",
    )
    group.add_argument(
        "--coverage", type=number, metavar="B", help="punish source words that were not looked at"
    )
    group.add_argument(
        "--exact", action="store_true", help="search until no better translation can come"
    )
    group.add_argument(
        "--prefix", metavar="FILE", help="what each translation begins with, a line for a line"
    )
    group.add_argument(
        "--force",
        type=pins,
        metavar="PINS",
        help='where the target may look, as in "2:0,1 5:4": token 2 at words 0 and 1, token 5 at '
        "word 4, all counted from 0",
    )
    group.add_argument(
        "--replace-unknown",
        action="store_true",
        help="copy the most attended source word for a word that the model does not know",
    )
    group.add_argument(
        "--weights", action="store_true", help="give the attention weights too, in the JSON"
    )


def pins(text: str) -> dict[int, list[int]]:
    """What positions of the target may look at, for argparse.

    >>> pins("2:0,1 5:4")
    {2: [0, 1], 5: [4]}
    """
    if not re.fullmatch(r"\s*\d+:\d+(,\d+)*(\s+\d+:\d+(,\d+)*)*\s*", text, re.ASCII):
        raise argparse.ArgumentTypeError(f'expected pins such as "2:0,1 5:4", got {text!r}')
    parts = [pin.split(":") for pin in text.split()]
    return {int(at): [int(word) for word in words.split(",")] for at, words in parts}


def load_with(folder: Path, chosen: argparse.Namespace, *names: str) -> tuple[Any, dict[str, Any]]:
    """The run, and those of its own options that were given."""
    from regard.inference import load

    run = load(folder)
    given = {name: getattr(chosen, name) for name in names}
    options = {name: value for name, value in given.items() if value is not None and value != ""}
    options = {name: value for name, value in options.items() if value is not False}
    strange = [name for name in options if name not in OPTIONS.get(run.name, ())]
    if strange:
        told = " and ".join(f"--{name.replace('_', '-')}" for name in strange)
        raise RegardError(f"{folder}: a run of task {run.name} has no use for {told}")
    return run, options


def _predict(chosen: argparse.Namespace) -> int:
    run, options = load_with(chosen.folder, chosen, *SEARCH, *SAMPLING, "force")
    if chosen.prefix and run.name != "translation":
        raise RegardError(f"{chosen.folder}: a run of task {run.name} has no use for --prefix")
    for name in ("nbest", "weights"):
        if name in options and not chosen.json:
            raise RegardError(f"option --{name}: expected with --json, one line is one translation")
    if (chosen.json or chosen.force) and run.name == "translation":
        options["tokens"] = True
    if chosen.batch_size:
        options["batch_size"] = chosen.batch_size
    once(chosen.input, chosen.prefix)
    if chosen.markup:
        return _predict_markup(chosen, run, options)
    with ExitStack() as stack:
        lines = stack.enter_context(lines_of(chosen.input))
        pairs: Iterator[tuple[str, str | None]] = ((line, None) for line in lines)
        if chosen.prefix:
            prefixes = stack.enter_context(lines_of(chosen.prefix))
            pairs = paired(lines, prefixes, (chosen.input, chosen.prefix))
        remarks = Remarks(run, chosen.prefix)
        write = _Writer(run, options, chosen.json, remarks, chosen.input)
        cut = write_lines(chosen.output, lambda stream: write(stream, pairs))
    remarks.tell()
    return told_cut(cut)


def _predict_markup(chosen: argparse.Namespace, run: Any, options: dict[str, Any]) -> int:
    from regard.inference.markup import predict_markup

    if run.name != "translation":
        raise RegardError(f"{chosen.folder}: a run of task {run.name} has no use for --markup")
    if chosen.json or chosen.prefix:
        raise RegardError("option --markup: not with --json or --prefix")
    with lines_of(chosen.input) as lines:
        found = predict_markup(run, list(lines), chosen.markup, name=chosen.input, **options)
    remarks = Remarks(run, None)

    def write(stream: Any) -> int:
        for one in found:
            stream.write(one.output.encode("utf-8", "replace") + b"\n")
            if "force" in options and "tokens" in one.details:
                remarks.unwritten(options["force"], one.details["tokens"])
        return sum(one.cut for one in found)

    cut = write_lines(chosen.output, write)
    remarks.tell()
    return told_cut(cut)


def paired(
    lines: Iterator[str], others: Iterator[str], names: tuple[str, str]
) -> Iterator[tuple[str, str]]:
    """Lines of two files, as many in one as in the other."""
    for count, (line, other) in enumerate(zip_longest(lines, others)):
        if line is None or other is None:
            short, long = names if line is None else names[::-1]
            raise RegardError(f"{short}: {count} lines, but {long} has more: expected as many")
        yield line, other


class _Writer:
    """Writes one line a prediction, and counts the inputs that were cut."""

    def __init__(
        self, run: Any, options: dict[str, Any], everything: bool, remarks: Remarks, name: str
    ) -> None:
        self._run, self._options, self._everything = run, options, everything
        self._remarks, self._name = remarks, name

    def __call__(self, stream: Any, pairs: Iterator[tuple[str, str | None]]) -> int:
        cut, before = 0, 0
        while some := list(islice(pairs, AT_ONCE)):
            if some[0][1] is not None:
                self._remarks.unknown([str(prefix) for _, prefix in some])
            for (text, _), found in zip(some, self._located(some, before), strict=True):
                cut += found.cut
                if "force" in self._options and "tokens" in found.details:
                    self._remarks.unwritten(self._options["force"], found.details["tokens"])
                record = {"input": text, "output": found.output, "cut": found.cut, **found.details}
                line = as_line(record) if self._everything else found.output
                stream.write(line.encode("utf-8", "replace") + b"\n")
            stream.flush()
            before += len(some)
        return cut

    def _located(self, some: list[tuple[str, str | None]], before: int) -> list[Any]:
        """Predictions of some lines, or an error that names the first line which has none."""
        try:
            return self._predicted(some)
        except RegardError as error:
            if str(error).startswith("option "):
                raise
            if len(some) == 1:
                raise RegardError(f"{self._name}:{before + 1}: {error}") from error
            half = len(some) // 2
            self._located(some[:half], before)
            self._located(some[half:], before + half)
            raise

    def _predicted(self, some: list[tuple[str, str | None]]) -> list[Any]:
        options = self._options
        if some[0][1] is not None:
            options = options | {"prefixes": [prefix for _, prefix in some]}
        found: list[Any] = self._run.predict([text for text, _ in some], **options)
        return found
