"""`regard predict`: a trained run on lines of text."""

import argparse
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from pathlib import Path
from typing import Any

from regard.commands.line_io import (
    EXIT_CODES,
    TRUNCATED,
    count_lines,
    open_lines,
    paired_lines,
    refuse_overwriting,
    refuse_two_inputs,
    report_truncated,
    write_lines,
)
from regard.commands.run_options import (
    add_quiet,
    add_run_options,
    given_options,
    refuse_text_before_run,
)
from regard.commands.worker_options import (
    add_many_files,
    has_many_files,
    process_many_files,
    refuse_with_many_files,
)
from regard.devices import add_device
from regard.errors import OptionError, RegardError
from regard.options import whole_number
from regard.progress import Stage, reporting, stage

TABLE_ENDINGS = (".csv", ".tsv", ".jsonl")
"""How the names of tables end, whose columns `predict` does not read."""


def add(commands: Any, arguments: Sequence[str] | None) -> None:
    """Add `predict`."""
    predict = commands.add_parser(
        "predict",
        help="predict one output line per input line",
        description="Predict one output line per text. With --nbest N, one line per candidate: the "
        "number of the text, the score and the output, separated by tabs.",
        note=EXIT_CODES,
        examples=(
            'regard predict runs/en-fr "The black cat sleeps ."',
            "regard predict runs/en-fr --input test.en --output test.fr --beam 10",
            "regard predict runs/en-fr --input 'corpus/*.txt.gz' --output out --jobs 4",
        ),
    )
    predict.add_argument("folder", type=Path, help="the run folder")
    predict.add_argument("texts", nargs="*", metavar="text", help="texts, in quotation marks")
    given = predict.add_mutually_exclusive_group()
    given.add_argument("--text", help="one text")
    given.add_argument(
        "--input",
        metavar="FILE",
        help="texts, one per line; - for standard input (default: standard input; at a terminal, "
        "each line is answered at once)",
    )
    predict.add_argument(
        "--output", default="-", metavar="FILE", help="output file (default: standard output)"
    )
    predict.add_argument("--json", action="store_true", help="print all details as JSON")
    predict.add_argument(
        "--column", metavar="NAME", help="column with the texts, in JSONL and Parquet files"
    )
    predict.add_argument(
        "--batch-size",
        type=whole_number(1, 100_000),
        metavar="INT",
        help="maximum number of lines per batch",
    )
    if arguments is None or "predict" in arguments:
        add_run_options(predict, arguments, "predict_options")
    constraints = predict.add_argument_group("Constraints on translations")
    constraints.add_argument(
        "--prefix", metavar="FILE", help="beginnings of the translations, one per input line"
    )
    constraints.add_argument(
        "--force",
        type=parse_pins,
        metavar="PINS",
        help='what target tokens may attend to, as in "2:0,1 5:4": token 2 to words 0 and 1, token '
        "5 to word 4, all counted from 0",
    )
    constraints.add_argument(
        "--markup",
        choices=("html", "xml"),
        help="lines have inline tags, which are placed around the aligned words",
    )
    add_many_files(predict)
    predict.rest = "texts"
    add_device(predict)
    add_quiet(predict)
    predict.set_defaults(run=_predict, parser=predict)


def parse_pins(text: str) -> dict[int, list[int]]:
    """What positions of the target may attend to, for argparse.

    >>> parse_pins("2:0,1 5:4")
    {2: [0, 1], 5: [4]}
    """
    if not re.fullmatch(r"\s*\d+:\d+(,\d+)*(\s+\d+:\d+(,\d+)*)*\s*", text, re.ASCII):
        raise argparse.ArgumentTypeError(f'expected pins such as "2:0,1 5:4", got {text!r}')
    parts = [pin.split(":") for pin in text.split()]
    return {int(at): [int(word) for word in words.split(",")] for at, words in parts}


def _predict(chosen: argparse.Namespace) -> int:
    from regard.commands.run_options import load_run

    refuse_text_before_run(chosen.folder, chosen.texts)
    _given_texts(chosen)  # refuses texts from two places
    if has_many_files(chosen, chosen.input):
        return _predict_files(chosen)
    if chosen.column is not None:
        raise OptionError("column", "needs --jobs or --on")
    refuse_overwriting(chosen.output, chosen.input, chosen.prefix)
    run = load_run(chosen.folder, chosen.device)
    for text in _given_texts(chosen):
        if os.path.isfile(text):
            chosen.display.line(
                f"note: {text} is read as a text; --input {text} reads the lines of that file"
            )
    options = given_options(run, chosen, "predict_options")
    _check_constraints(run, chosen)
    if options.get("weights") and not chosen.json:
        raise OptionError("weights", "requires --json")
    if chosen.force:
        options["force"] = chosen.force
    if (chosen.json or chosen.force) and "force" in run.spec.accepts:
        options.setdefault("return_tokens", True)
    if chosen.batch_size:
        options["batch_size"] = chosen.batch_size
    writer = _Writer(run, options, chosen.json, _Warnings(run, chosen.prefix), _input_name(chosen))
    if _is_conversation(chosen):
        return _converse(writer)
    refuse_two_inputs(_input_name(chosen), chosen.prefix)
    if chosen.markup:
        return _predict_markup(chosen, run, options)
    with ExitStack() as stack:
        lines = stack.enter_context(_open_texts(chosen))
        pairs: Iterator[tuple[str, str | None]] = ((line, None) for line in lines)
        if chosen.prefix:
            prefixes = stack.enter_context(open_lines(chosen.prefix))
            pairs = paired_lines(lines, prefixes, (_input_name(chosen), chosen.prefix))
        writer.total = count_lines(chosen.input) if chosen.input else None
        stack.enter_context(reporting(chosen.display if _has_room(chosen) else None))
        truncated = write_lines(chosen.output, lambda stream: writer.write(stream, pairs))
    _note_table(chosen)
    writer.warnings.print()
    return report_truncated(truncated)


def _predict_files(chosen: argparse.Namespace) -> int:
    from regard.commands.run_options import load_run
    from regard.data.readers.columns import SOURCE, TEXT
    from regard.inference.bulk.line_work import LineWork

    refuse_with_many_files(chosen, "text", "texts", "prefix", "force", "markup")
    if chosen.input is None:
        raise OptionError("input", "expected files, as in --input 'corpus/*.txt'")
    run = load_run(chosen.folder, chosen.device)
    options = given_options(run, chosen, "predict_options")
    if options.get("weights") and not chosen.json:
        raise OptionError("weights", "requires --json")
    if chosen.json and "force" in run.spec.accepts:
        options.setdefault("return_tokens", True)
    if chosen.batch_size:
        options["batch_size"] = chosen.batch_size
    folder = str(run.folder.path.resolve())
    work = LineWork("predictions", folder, ("input",), options, chosen.json, chosen.device)
    role = SOURCE if run.spec.pairs_of_texts else TEXT
    return process_many_files(chosen, work, chosen.input, [role.choose(chosen.column)])


def _given_texts(chosen: argparse.Namespace) -> list[str]:
    """The texts on the command line."""
    texts = [*chosen.texts, *([] if chosen.text is None else [chosen.text])]
    if chosen.texts and (chosen.text is not None or chosen.input is not None):
        other = "text" if chosen.text is not None else "input"
        raise OptionError(other, "cannot be combined with texts on the command line")
    return texts


def _note_table(chosen: argparse.Namespace) -> None:
    """Say that a table is not read as one."""
    name = (chosen.input or "").lower().removesuffix(".gz")
    if name.endswith(TABLE_ENDINGS):
        chosen.display.line(f"{chosen.input} is read as plain text, one text per line")


def _input_name(chosen: argparse.Namespace) -> str:
    """What messages call the input."""
    if chosen.texts:
        return "text"
    return "--text" if chosen.text is not None else chosen.input or "-"


def _open_texts(chosen: argparse.Namespace) -> AbstractContextManager[Iterator[str]]:
    """The texts of the command line, or the lines of a file."""
    texts = _given_texts(chosen)
    if texts:
        return nullcontext(" ".join(text.splitlines()) for text in texts)
    return open_lines(chosen.input or "-")


def _is_conversation(chosen: argparse.Namespace) -> bool:
    """Whether somebody types at a terminal and reads the answers there."""
    if _given_texts(chosen) or chosen.prefix or chosen.markup or chosen.input is not None:
        return False
    at_terminal = getattr(sys.stdin, "isatty", None)  # there may be no standard input at all
    return chosen.output == "-" and at_terminal is not None and bool(at_terminal())


def _converse(writer: "_Writer") -> int:
    """Answer each line at once, until the end of the input."""
    with suppress(ImportError):
        import readline  # noqa: F401 (line editing and history in `input`)

    print("One text per line; Ctrl-D ends.", file=sys.stderr)
    truncated = 0
    while True:
        try:
            line = input("> ")
        except EOFError:
            print(file=sys.stderr)
            return TRUNCATED if truncated else 0
        if not line.strip():
            continue
        try:
            number = writer.write(sys.stdout.buffer, iter([(line, None)]))
        except OptionError:
            raise
        except RegardError as error:
            print(f"regard: {error}", file=sys.stderr)
            continue
        truncated += number
        report_truncated(number)


def _has_room(chosen: argparse.Namespace) -> bool:
    """Whether progress can be shown: not where predictions are printed on the same terminal."""
    return chosen.output != "-" or not sys.stdout.isatty()


def _check_constraints(run: Any, chosen: argparse.Namespace) -> None:
    for option, argument in (("prefix", "prefixes"), ("force", "force")):
        if getattr(chosen, option) and argument not in run.spec.accepts:
            raise RegardError(f"{chosen.folder}: --{option} does not apply to {run.name} runs")
    if chosen.markup:
        run.spec.require("source_attention", chosen.folder, "--markup")
        if chosen.json or chosen.prefix:
            raise OptionError("markup", "cannot be combined with --json or --prefix")


def _predict_markup(chosen: argparse.Namespace, run: Any, options: dict[str, Any]) -> int:
    from regard.inference.align.markup import predict_markup

    with _open_texts(chosen) as lines:
        predictions = predict_markup(
            run, list(lines), chosen.markup, name=_input_name(chosen), **options
        )
    warnings = _Warnings(run, None)

    def write(stream: Any) -> int:
        for prediction in predictions:
            stream.write(prediction.output.encode("utf-8", "replace") + b"\n")
            warnings.count_unused_pins(options.get("force"), prediction)
        return sum(prediction.truncated for prediction in predictions)

    truncated = write_lines(chosen.output, write)
    _note_table(chosen)
    warnings.print()
    return report_truncated(truncated)


class _Warnings:
    """Constraints without an effect, counted line by line and reported at the end."""

    def __init__(self, run: Any, prefixes: str | None = None) -> None:
        self._run, self._prefixes = run, prefixes
        self._read = self._with_unknown = self._translated = 0
        self._first_unknown = ""
        self._unused_pins: Counter[int] = Counter()

    def count_unknown_words(self, prefixes: Sequence[str]) -> None:
        """Count prefixes with words that the model cannot write."""
        from regard.data.tokenizers.tokenizer import UNK

        encoded = self._run.task.target.encode_batch(prefixes)
        for line, prefix in enumerate(encoded, self._read + 1):
            tokens = zip(prefix.ids, prefix.tokens, strict=True)
            unknown = [text for token, text in tokens if token == UNK]
            if unknown and not self._first_unknown:
                self._first_unknown = f"{self._prefixes}:{line}: {unknown[0]!r}"
            self._with_unknown += bool(unknown)
        self._read += len(prefixes)

    def count_unused_pins(self, force: Mapping[int, Any] | None, prediction: Any) -> None:
        """Count pinned positions that lie behind the end of a translation."""
        if force is None or "tokens" not in prediction.details:
            return
        self._translated += 1
        written = len(prediction.details["tokens"])
        self._unused_pins.update(position for position in force if position >= written)

    def print(self) -> None:
        """Print the warnings on standard error."""
        for position, lines in sorted(self._unused_pins.items()):
            total = f"{self._translated} line{'s' * (self._translated != 1)}"
            print(
                f"--force: token {position} was never generated in {lines} of {total}: its pins "
                "had no effect there",
                file=sys.stderr,
            )
        if self._with_unknown:
            others = self._with_unknown - 1
            more = f" (and {others} more line{'s' * (others != 1)})" if others else ""
            print(
                f"{self._first_unknown} is not in the vocabulary of this model{more}: replaced "
                "with <unk>",
                file=sys.stderr,
            )


class _Writer:
    """Writes one line per prediction, and counts the inputs that were truncated."""

    def __init__(
        self, run: Any, options: dict[str, Any], as_json: bool, warnings: _Warnings, name: str
    ) -> None:
        self._run, self._options, self._as_json = run, options, as_json
        self.warnings, self._name = warnings, name
        self._count = 0
        self.total: int | None = None
        """Number of texts, if it is known."""

    def write(self, stream: Any, pairs: Iterator[tuple[str, str | None]]) -> int:
        """Write the predictions of texts and their prefixes, block by block."""
        with stage("predicting", self.total, "lines") as predicting:
            return self._write_blocks(stream, pairs, predicting)

    def _write_blocks(
        self, stream: Any, pairs: Iterator[tuple[str, str | None]], predicting: Stage
    ) -> int:
        from regard.data.corpus import in_chunks
        from regard.inference.line_records import BLOCK_LINES

        truncated, before = 0, 0
        for block in in_chunks(pairs, BLOCK_LINES):
            if block[0][1] is not None:
                self.warnings.count_unknown_words([str(prefix) for _, prefix in block])
            for (text, _), prediction in zip(block, self._locate(block, before), strict=True):
                truncated += prediction.truncated
                self.warnings.count_unused_pins(self._options.get("force"), prediction)
                self._count += 1
                for line in self._lines(text, prediction):
                    stream.write(line.encode("utf-8", "replace") + b"\n")
            stream.flush()
            before += len(block)
            predicting.advance(len(block))
        return truncated

    def _lines(self, text: str, prediction: Any) -> list[str]:
        from regard.inference.line_records import as_json_line, prediction_lines, prediction_record

        if self._as_json:
            return [as_json_line(prediction_record(text, prediction))]
        return prediction_lines(self._count, prediction, self._options.get("nbest", 1))

    def _locate(self, block: list[tuple[str, str | None]], before: int) -> list[Any]:
        """Predictions of a block, or an error that names the first line which has none.

        A block that fails is halved until the line is found.
        """
        try:
            return self._predict(block)
        except RegardError as error:
            if isinstance(error, OptionError):
                raise
            if len(block) == 1:
                raise RegardError(f"{self._name}:{before + 1}: {error}") from error
            half = len(block) // 2
            self._locate(block[:half], before)
            self._locate(block[half:], before + half)
            raise

    def _predict(self, block: list[tuple[str, str | None]]) -> list[Any]:
        options = self._options
        if block[0][1] is not None:
            options = options | {"prefixes": [prefix for _, prefix in block]}
        predictions: list[Any] = self._run.predict([text for text, _ in block], **options)
        return predictions
