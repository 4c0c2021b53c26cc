"""`regard generate` and `regard score`: write text, and weigh text that others wrote."""

import argparse
import math
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

from regard.commands.piping import EXITS, SAMPLING, add_sampling, as_line, lines_of, once, told_cut
from regard.commands.use import AT_ONCE, paired
from regard.errors import RegardError
from regard.options import positive


def add(commands: Any) -> None:
    """Add `generate` and `score`."""
    generate = commands.add_parser("generate", help="let a language model write")
    generate.add_argument("folder", type=Path, help="the folder of the run")
    generate.add_argument("--prompt", default="", metavar="TEXT", help="what the text begins with")
    generate.add_argument(
        "--tokens", type=positive, metavar="INT", help="so many at most (default: 100)"
    )
    generate.add_argument(
        "--samples", type=positive, default=1, metavar="INT", help="so many texts (default: 1)"
    )
    generate.add_argument("--json", action="store_true", help="print everything as JSON")
    add_sampling(generate)
    generate.set_defaults(run=_generate, parser=generate)
    score = commands.add_parser(
        "score", help="log-probability of each line of a text, or of a translation", epilog=EXITS
    )
    score.add_argument("folder", type=Path, help="the folder of the run")
    score.add_argument(
        "--data",
        nargs="+",
        required=True,
        metavar="FILE",
        help="a text (language); source and target, line by line, or one table of both "
        "(translation)",
    )
    score.add_argument("--source", metavar="NAME", help="column of the source, in a table")
    score.add_argument("--target", metavar="NAME", help="column of the target, in a table")
    score.add_argument("--json", action="store_true", help="token by token, as JSON")
    score.set_defaults(run=_score, parser=score)


def _generate(chosen: argparse.Namespace) -> int:
    from regard.inference import load
    from regard.tasks.conditional import Conditional

    run = load(chosen.folder)
    if run.name != "language":
        raise RegardError(
            f"{chosen.folder}: a run of task {run.name} writes no text: see regard predict"
        )
    if isinstance(run.task, Conditional):
        raise RegardError(
            f"{chosen.folder}: this run writes from a condition: give it to `regard predict`"
        )
    given = {name: getattr(chosen, name) for name in SAMPLING} | {"limit": chosen.tokens}
    options = {name: value for name, value in given.items() if value is not None}
    try:
        if chosen.samples == 1 and not chosen.json:
            _write(chosen.prompt)
            for piece in run.generate(chosen.prompt, **options):
                _write(piece)
            _write("\n")
            return 0
        for found in run.samples(chosen.prompt, chosen.samples, **options):
            record = {"prompt": chosen.prompt, "output": found.output, **found.details}
            line = " ".join(found.output.splitlines())
            _write((as_line(record) if chosen.json else line) + "\n")
    except ValueError as error:
        raise RegardError(f"option {error}") from error
    return 0


def _write(text: str) -> None:
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


def _score(chosen: argparse.Namespace) -> int:
    from regard.inference import load
    from regard.tasks.conditional import Conditional

    run = load(chosen.folder)
    if run.name not in ("language", "translation"):
        raise RegardError(f"{chosen.folder}: a run of task {run.name} gives no probability to text")
    if isinstance(run.task, Conditional):
        raise RegardError(
            f"{chosen.folder}: texts of this run depend on a condition: use `regard evaluate`"
        )
    cut, total, tokens = 0, 0.0, 0
    with ExitStack() as stack:
        pairs = _pairs(chosen, run, stack)
        while some := list(islice(pairs, AT_ONCE)):
            for record in _records(run, some):
                cut += record["cut"]
                value = record["log_probability"]
                if value is not None:
                    total += value
                    tokens += len(record["tokens"])
                _write(_line(record, chosen.json) + "\n")
    if tokens:
        rate = math.exp(min(-total / tokens, 700))
        print(
            f"log-probability {total:.4f}, {tokens} tokens, perplexity {rate:.4g}", file=sys.stderr
        )
    return told_cut(cut)


def _line(record: dict[str, Any], everything: bool) -> str:
    if everything:
        return as_line(record)
    value = record["log_probability"]
    return "" if value is None else f"{value:.6f}"


def _pairs(
    chosen: argparse.Namespace, run: Any, stack: ExitStack
) -> Iterator[tuple[str, str | None]]:
    files = chosen.data
    if len(files) > (2 if run.name == "translation" else 1):
        raise RegardError(f"option --data: {len(files)} files, expected fewer. See --help")
    once(*files)
    if run.name == "language" or len(files) == 2:
        if chosen.source is not None or chosen.target is not None:
            raise RegardError("--source and --target: expected with one table of both")
        lines = stack.enter_context(lines_of(files[0]))
        if run.name == "language":
            return ((line, None) for line in lines)
        return paired(lines, stack.enter_context(lines_of(files[1])), (files[0], files[1]))
    return _rows(files[0], run, chosen, stack)


def _rows(
    name: str, run: Any, chosen: argparse.Namespace, stack: ExitStack
) -> Iterator[tuple[str, str]]:
    """The pairs of a table; a first line that names its columns is none of them."""
    from regard.data.columns import SOURCE, TARGET
    from regard.data.formats import ENDINGS
    from regard.data.sources import resolve

    roles = [SOURCE.named(chosen.source), TARGET.named(chosen.target)]
    usual = [SOURCE.named(run.data.source), TARGET.named(run.data.target)]
    own = chosen.source is None and chosen.target is None
    ending = "" if name == "-" else resolve(name)[0].suffix
    if ENDINGS.get(ending, "tsv") != "tsv":
        return _cells(name, usual if own else roles)
    return _split(stack.enter_context(lines_of(name)), roles, usual if own else roles, name)


def _cells(name: str, roles: list[Any]) -> Iterator[tuple[str, str]]:
    from regard.data.cells import text_cells
    from regard.data.formats import TABLES, accept, form
    from regard.data.lines import normal
    from regard.data.sources import resolve
    from regard.data.tables import table

    sources = resolve(name)
    forms = [form(source) for source in sources]
    accept(sources, forms, TABLES, "pairs: two text files, or a table of both sides")
    for source, found in zip(sources, forms, strict=True):
        for where, values in table(source, roles, found):
            one, other = text_cells(values, roles, where)
            if one is None or other is None:
                raise RegardError(f"{where}: too long to be read")
            if values and one and other:  # as they stand there, with blanks at their ends
                one, other = (normal(v) if isinstance(v, str) else str(v) for v in values)
            yield one, other


def _split(
    lines: Iterator[str], roles: list[Any], usual: list[Any], name: str
) -> Iterator[tuple[str, str]]:
    """Pairs of a TSV; columns that the run was trained on by name are taken if they are there."""
    from regard.data.columns import by_name, by_number, has_header

    places: list[int] | None = None
    width = 0
    for count, line in enumerate(lines, 1):
        cells, where = line.split("\t"), f"{name}:{count}"
        if not line.strip():
            yield "", ""
            continue
        if places is None:
            width = len(cells)
            if all(role.given in cells for role in usual):
                roles = usual
            if width > 1 and has_header(cells, roles):
                places = by_name(cells, roles, where)
                continue
            places = by_number(width, roles, where)
        if len(cells) != width:
            raise RegardError(
                f"{where}: {len(cells)} columns where the first line has {width}: expected source, "
                "tab, target"
            )
        yield cells[places[0]], cells[places[1]]


def _records(run: Any, some: list[tuple[str, str | None]]) -> Iterator[dict[str, Any]]:
    """One record a line; a source that is empty has nothing to be translated, and no score."""
    aimed = some[0][1] is not None
    filled = [(text, target) for text, target in some if text.strip() or not aimed]
    texts, targets = [text for text, _ in filled], [target for _, target in filled]
    found = iter(run.score(texts, targets if aimed else None) if filled else [])
    for text, target in some:
        record: dict[str, Any] = {"input": text} | ({"target": target} if aimed else {})
        if not text.strip() and aimed:
            yield {**record, "log_probability": None, "tokens": [], "cut": False}
            continue
        one = next(found)
        yield {
            **record,
            "log_probability": one.log_probability,
            "tokens": one.tokens,
            "token_log_probabilities": one.token_log_probabilities,
            "cut": one.cut,
        }
