"""`regard score`: the log-probability of texts, or of translations."""

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from regard.commands.line_io import (
    EXIT_CODES,
    open_lines,
    paired_lines,
    refuse_two_inputs,
    report_truncated,
)
from regard.commands.run_options import add_quiet, add_run_options, given_options
from regard.commands.worker_options import (
    add_many_files,
    has_many_files,
    process_many_files,
    refuse_with_many_files,
)
from regard.devices import add_device
from regard.errors import OptionError, RegardError


def add(commands: Any, arguments: Sequence[str] | None) -> None:
    """Add `score`."""
    score = commands.add_parser(
        "score",
        help="compute the log-probability of each line of a text or translation",
        note=EXIT_CODES,
        examples=(
            "regard score runs/stories --data text.txt",
            "regard score runs/en-fr --data test.en test.fr --json",
            "regard score runs/en-fr --data 'pairs/*.tsv' --output scores --jobs 4",
        ),
    )
    score.add_argument("folder", type=Path, help="the run folder")
    score.add_argument(
        "--data",
        nargs="+",
        required=True,
        metavar="FILE",
        help="a text (language); source and target, line by line, or one table with both "
        "(translation)",
    )
    score.add_argument("--source", metavar="NAME", help="column of the source, in a table")
    score.add_argument("--target", metavar="NAME", help="column of the target, in a table")
    score.add_argument(
        "--running",
        action="store_true",
        help="read the lines as one text, each given those before it, as evaluate does (language)",
    )
    if arguments is None or "score" in arguments:
        add_run_options(score, arguments, "score_options")
    score.add_argument("--json", action="store_true", help="print each token as JSON")
    add_device(score)
    score.add_argument("--output", metavar="FOLDER", help="folder for the output of many files")
    add_many_files(score)
    add_quiet(score)
    score.set_defaults(run=_score, parser=score)


def _score(chosen: argparse.Namespace) -> int:
    from regard.commands.run_options import load_run
    from regard.data.corpus import in_chunks
    from regard.inference.line_records import BLOCK_LINES, as_json_line, score_records, score_text

    run = load_run(chosen.folder, chosen.device)
    run.spec.require("log_probabilities", chosen.folder, "score")
    if chosen.running and run.spec.pairs_of_texts:
        raise RegardError(f"--running does not apply to {run.name} runs")
    if has_many_files(chosen, *chosen.data):
        return _score_files(chosen, run)
    if chosen.output is not None:
        raise OptionError("output", "needs --jobs or --on: one file is scored to standard output")
    options = given_options(run, chosen, "score_options")
    if chosen.running:
        options["running"] = True
    truncated, total, tokens, words = 0, 0.0, 0, 0
    with ExitStack() as stack:
        given = _pairs(chosen, run, stack)
        for block in [list(given)] if chosen.running else in_chunks(given, BLOCK_LINES):
            for record in score_records(run, block, options):
                truncated += record["truncated"]
                value = record["log_probability"]
                if value is not None:
                    total += value
                    tokens += len(record["tokens"])
                    words += len(record["input"].split()) + 1
                line = as_json_line(record) if chosen.json else score_text(value)
                sys.stdout.buffer.write(line.encode("utf-8", "replace") + b"\n")
            sys.stdout.buffer.flush()
    if tokens:
        rate = math.exp(min(-total / tokens, 700))
        summary = f"log-probability {total:.4f}, {tokens} tokens, perplexity {rate:.4g}"
        if not run.spec.pairs_of_texts:
            summary += f" per token, {math.exp(min(-total / words, 700)):.4g} per word"
        print(summary, file=sys.stderr)
    return report_truncated(truncated)


def _score_files(chosen: argparse.Namespace, run: Any) -> int:
    from regard.data.readers.columns import SOURCE, TARGET, TEXT
    from regard.inference.bulk.line_work import LineWork

    refuse_with_many_files(chosen, "running")
    texts: tuple[str, ...] = ("input",)
    roles = [TEXT]
    if run.spec.pairs_of_texts:
        texts = ("input", "target")
        roles = [SOURCE.choose(chosen.source), TARGET.choose(chosen.target)]
    options = given_options(run, chosen, "score_options")
    folder = str(run.folder.path.resolve())
    work = LineWork("scores", folder, texts, options, chosen.json, chosen.device)
    return process_many_files(chosen, work, chosen.data, roles)


def _pairs(
    chosen: argparse.Namespace, run: Any, stack: ExitStack
) -> Iterator[tuple[str, str | None]]:
    files = chosen.data
    if len(files) > (2 if run.spec.pairs_of_texts else 1):
        raise OptionError("data", f"{len(files)} files, too many. See --help")
    refuse_two_inputs(*files)
    if not run.spec.pairs_of_texts or len(files) == 2:
        if chosen.source is not None or chosen.target is not None:
            raise RegardError("--source and --target require one table with both")
        lines = stack.enter_context(open_lines(files[0]))
        if not run.spec.pairs_of_texts:
            return ((line, None) for line in lines)
        return paired_lines(lines, stack.enter_context(open_lines(files[1])), (files[0], files[1]))
    return _rows(files[0], run, chosen, stack)


def _rows(
    name: str, run: Any, chosen: argparse.Namespace, stack: ExitStack
) -> Iterator[tuple[str, str]]:
    """The pairs of a table; a first line that names its columns is none of them."""
    from regard.data.readers.columns import SOURCE, TARGET
    from regard.data.readers.formats import ENDINGS
    from regard.data.readers.sources import resolve

    roles = [SOURCE.choose(chosen.source), TARGET.choose(chosen.target)]
    usual = [SOURCE.choose(run.data.source), TARGET.choose(run.data.target)]
    own = chosen.source is None and chosen.target is None
    ending = "" if name == "-" else resolve(name)[0].suffix
    if ENDINGS.get(ending, "tsv") != "tsv":
        return _cells(name, usual if own else roles)
    return _split(stack.enter_context(open_lines(name)), roles, usual if own else roles, name)


def _cells(name: str, roles: list[Any]) -> Iterator[tuple[str, str]]:
    from regard.data.readers.cells import text_cells
    from regard.data.readers.formats import TABLES, check_formats, detect_format
    from regard.data.readers.lines import to_nfc
    from regard.data.readers.sources import resolve
    from regard.data.readers.tables import table_rows

    sources = resolve(name)
    forms = [detect_format(source) for source in sources]
    check_formats(sources, forms, TABLES, "pairs: two text files, or a table of both sides")
    for source, found in zip(sources, forms, strict=True):
        for where, values in table_rows(source, roles, found):
            one, other = text_cells(values, roles, where)
            if one is None or other is None:
                raise RegardError(f"{where}: too long to be read")
            if values and one and other:  # as they stand there, with blanks at their ends
                one, other = (to_nfc(v) if isinstance(v, str) else str(v) for v in values)
            yield one, other


def _split(
    lines: Iterator[str], roles: list[Any], usual: list[Any], name: str
) -> Iterator[tuple[str, str]]:
    """Pairs of a TSV; columns that the run was trained on by name are taken if they are there."""
    from regard.data.readers.columns import columns_by_name, columns_by_number, has_header

    places: list[int] | None = None
    width = 0
    for count, line in enumerate(lines, 1):
        cells, where = line.split("\t"), f"{name}:{count}"
        if not line.strip():
            yield "", ""
            continue
        if places is None:
            width = len(cells)
            if all(role.chosen in cells for role in usual):
                roles = usual
            if width > 1 and has_header(cells, roles):
                places = columns_by_name(cells, roles, where)
                continue
            places = columns_by_number(width, roles, where)
        if len(cells) != width:
            raise RegardError(
                f"{where}: {len(cells)} columns where the first line has {width}: expected source, "
                "tab, target"
            )
        yield cells[places[0]], cells[places[1]]
