"""`regard explain`: how much each word mattered, and whether attention can be trusted to say so."""

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain, groupby
from pathlib import Path
from random import Random
from typing import Any

from regard.commands.line_io import open_lines
from regard.commands.run_options import (
    add_column_options,
    add_quiet,
    given_columns,
    one_text,
)
from regard.devices import add_device
from regard.errors import OptionError, RegardError
from regard.options import positive, random_seed

WORDS_SHOWN = 10
"""Words of each label and query."""


def add(commands: Any, arguments: Sequence[str] | None) -> None:
    """Add `explain`."""
    explain = commands.add_parser(
        "explain",
        help="show how much each word mattered, and whether to trust attention",
        examples=(
            'regard explain runs/reviews --text "not a bad film"',
            "regard explain runs/reviews --faithfulness --data test.tsv",
        ),
    )
    explain.add_argument("folder", type=Path, help="the run folder")
    explain.add_argument("texts", nargs="*", metavar="text", help="the text, in quotation marks")
    explain.add_argument(
        "--text", help="the text to explain; with --data, the column with the texts"
    )
    given = explain.add_mutually_exclusive_group()
    given.add_argument("--input", metavar="FILE", help="texts, one per line; - for standard input")
    given.add_argument("--data", nargs="+", metavar="FILE", help="texts for --faithfulness")
    given.add_argument(
        "--words", action="store_true", help="show what a classifier has learned about words"
    )
    explain.add_argument(
        "--faithfulness",
        action="store_true",
        help="with --data: measure whether attention identifies the words that matter",
    )
    explain.add_argument(
        "--output", type=int, metavar="INT", help="the output to explain, counted from 0"
    )
    explain.add_argument("--looks", action="store_true", help="show every layer and head")
    explain.add_argument(
        "--erase",
        choices=("delete", "unknown"),
        help="how words are erased (default: delete; unknown in tagging)",
    )
    explain.add_argument(
        "--limit",
        type=positive,
        default=200,
        metavar="INT",
        help="maximum number of texts for --faithfulness (default: 200)",
    )
    explain.add_argument("--seed", type=random_seed, default=0, help="random seed (default: 0)")
    explain.add_argument("--json", action="store_true", help="print all details as JSON")
    add_device(explain)
    add_quiet(explain)
    if arguments is None or "explain" in arguments:
        add_column_options(explain, arguments, skip=("text",))
    explain.rest = "texts"
    explain.set_defaults(run=_explain, parser=explain)


def _explain(chosen: argparse.Namespace) -> int:
    from regard.commands.run_options import load_run

    if chosen.texts and chosen.data:
        raise OptionError("data", "cannot be combined with a text on the command line")
    chosen.text = one_text(chosen, chosen.folder)
    if chosen.faithfulness != bool(chosen.data):
        raise RegardError("--faithfulness and --data: expected both, or neither")
    for other in ("input", "words"):
        if chosen.text is not None and getattr(chosen, other):
            raise OptionError(other, "cannot be combined with --text")
    run = load_run(chosen.folder, chosen.device)
    if chosen.data:
        return _faithfulness(run, chosen)
    if chosen.words:
        return _words(run, chosen)
    if chosen.text is None and chosen.input is None:
        raise RegardError("nothing to explain: give a text, --input FILE, --words or --data FILE")
    return _texts(run, chosen)


def _texts(run: Any, chosen: argparse.Namespace) -> int:
    from regard.inference.explain.explanations import explain

    if chosen.json and chosen.output is not None:
        raise OptionError("output", "cannot be combined with --json, which gives all outputs")
    texts = [chosen.text]
    if chosen.text is None:
        with open_lines(chosen.input) as lines:
            texts = list(lines)
    for number, text in enumerate(texts):
        trace = explain(run, text, erase=chosen.erase)
        if chosen.json:
            print(trace.to_json())
            continue
        if number:
            print()
        try:
            print("\n".join(_draw_trace(trace, chosen.output, chosen.looks)))
        except RegardError as error:
            place = "" if chosen.text is not None else f"{chosen.input}:{number + 1}: "
            raise RegardError(f"{place}{error}") from error
    return 0


def _draw_trace(trace: Any, output: int | None, looks: bool) -> list[str]:
    """A trace with attributions in lines."""
    from regard.show.terminal import shaded_matrix
    from regard.show.text_width import printable, terminal_width

    if not trace.attributions:
        return ["(nothing to explain)"]
    names = trace.prediction["explained"]["outputs"]
    positions = list(dict.fromkeys(row.output for row in trace.attributions))
    # the output of a language model repeats the text that it was given
    given = trace.sides[trace.attributions[0].side].text
    repeated = trace.output == " ".join(given.splitlines())
    lines = [] if repeated else [f"→ {printable(trace.output)}"]
    if output is not None and not 0 <= output < len(positions):
        last = len(positions) - 1
        valid = f"0 to {last}" if last else "0, the only output"
        raise RegardError(f"--output {output}: expected {valid}")
    if output is not None or len(positions) == 1:
        index = output or 0
        lines += _table(trace, positions[index], printable(names[index]))
    else:
        lines += _matrices(trace, positions, names)
        lines.append("(--output INT shows one output in full; --json prints all details)")
    for look in trace.looks if looks else ():
        where = [
            f"{what} {n}"
            for what, n in (("layer", look.layer), ("head", look.head))
            if n is not None
        ]
        lines += ["", " ".join([look.name, *where]), shaded_matrix(look, terminal_width(100))]
    return lines


def _table(trace: Any, position: int | None, name: str) -> list[str]:
    """One row per token and one column per method, shaded relative to its largest value."""
    import numpy as np

    from regard.inference.explain.explainers import EXPLAINERS
    from regard.show.text_width import fit_table, terminal_width, truncate, wrap_beside

    rows = {row.method: row for row in trace.attributions if row.output == position}
    columns = {method: EXPLAINERS[method].column for method in EXPLAINERS if method in rows}
    methods = list(columns)
    tokens = _token_names(trace.sides[trace.attributions[0].side].tokens)
    largest = {m: max(float(np.abs(rows[m].values).max()), 1e-12) for m in methods}
    table = [[truncate(f"for {name}", 20), *(columns[method] for method in methods)]]
    for i, token in enumerate(tokens):
        table.append(
            [truncate(token, 20), *(_cell(rows[m].values[i], largest[m]) for m in methods)]
        )
    width = terminal_width()
    legend = [(columns[method], EXPLAINERS[method].meaning) for method in methods]
    lines = [wrap_beside(name, meaning, 12, width) for name, meaning in legend if meaning]
    return [*fit_table(table, width), "", *chain.from_iterable(lines)]


def _token_names(tokens: Sequence[Any]) -> list[str]:
    """The texts of tokens; the bytes of one character, such as an emoji, are numbered."""
    from regard.show.text_width import printable

    names: list[str] = []
    for (start, end), group in groupby(tokens, lambda token: (token.start, token.end)):
        texts = [printable(token.text) for token in group]
        of_one = len(texts) > 1 and start is not None and end > start
        names += [f"{t} {i}/{len(texts)}" for i, t in enumerate(texts, 1)] if of_one else texts
    return names


def _cell(value: float, largest: float) -> str:
    from regard.show.terminal import SHADES

    shade = SHADES[min(len(SHADES) - 1, round(abs(value) / largest * (len(SHADES) - 1)))]
    return f"{shade} {value:>6.3f}"


def _matrices(trace: Any, positions: Sequence[int | None], names: Sequence[str]) -> list[str]:
    import numpy as np

    from regard.inference.explain.explainers import EXPLAINERS
    from regard.show.terminal import shaded_matrix
    from regard.show.text_width import terminal_width
    from regard.trace.look import from_arrays

    lines = []
    for method, explainer in EXPLAINERS.items():
        if not explainer.drawn:
            continue
        attributions = [row for row in trace.attributions if row.method == method]
        if not attributions:
            continue
        rows = np.abs(np.stack([row.values for row in attributions]))
        if explainer.relative:
            rows = rows / np.maximum(rows.max(1, keepdims=True), 1e-12)
        keys = _token_names(trace.sides[attributions[0].side].tokens)
        queries = [f"{i} {name}" for i, name in zip(range(len(positions)), names, strict=True)]
        title = f"{method}, relative to the largest" if explainer.relative else method
        matrix = shaded_matrix(from_arrays(rows, queries, keys), terminal_width(100))
        lines += ["", title, matrix]
    return lines


def _words(run: Any, chosen: argparse.Namespace) -> int:
    from regard.show.text_width import printable

    describe = run.spec.require("words", run.folder.path, "--words")
    report = describe(run.task, run.model, WORDS_SHOWN)
    polarities, nearest = report.polarities, report.nearest
    if chosen.json:
        table = dict(zip(polarities.words, polarities.values.tolist(), strict=True))
        record = {
            "labels": polarities.labels,
            "exact": polarities.exact,
            "polarities": table,
            "queries": [[asdict(word) for word in row] for row in nearest],
        }
        print(json.dumps(record, ensure_ascii=False))
        return 0
    how = "of the word in every text" if polarities.exact else "of the word alone"
    print(f"polarities ({how})")
    for label in polarities.labels:
        words = "  ".join(
            f"{printable(w)} {v:+.2f}" for w, v in polarities.strongest(label, WORDS_SHOWN)
        )
        print(printable(f"  {label}: {words}"))
    for number, row in enumerate(nearest, 1):
        words = "  ".join(f"{printable(near.word)} {near.degrees:.0f}°" for near in row)
        print(printable(f"nearest to query {number}: {words}"))
    return 0


def _faithfulness(run: Any, chosen: argparse.Namespace) -> int:
    from regard.inference.evaluations import evaluation_name, full_paths
    from regard.inference.explain.faithfulness import faithfulness, read_texts
    from regard.inference.explain.faithfulness_reports import report_record, save_report

    texts, summary = read_texts(run, chosen.data, **given_columns(run, chosen))
    if len(texts) > chosen.limit:
        sampled = sorted(Random(chosen.seed).sample(range(len(texts)), chosen.limit))
        summary += f"; {chosen.limit} sampled at random"
        texts = [texts[i] for i in sampled]
    chosen.display.line(summary)
    result = faithfulness(run, texts, erase=chosen.erase, seed=chosen.seed)
    if chosen.json:
        print(json.dumps(report_record(result), ensure_ascii=False, allow_nan=False), flush=True)
    else:
        print("\n".join(report(result)), flush=True)
    options = {"limit": chosen.limit, "seed": chosen.seed}
    name, data = evaluation_name(chosen.data), full_paths(chosen.data)
    path = save_report(run.folder, name, result, data=data, **options)
    chosen.display.line(f"saved in {path}")
    return 0


def report(result: Any) -> list[str]:
    """The tables of a faithfulness report, and its verdict."""
    from regard.show.text_width import fit_table, terminal_width

    shares = ", ".join(f"{100 * share:g} %" for share in result.proportions)
    measures = ("comprehensiveness", "sufficiency", "τ with attention")
    lines = [
        f"{result.texts} texts, {result.outputs} outputs; words erased ({result.erase}): {shares}",
        "",
    ]
    table = [["words ranked by", *measures]]
    for method, value in result.comprehensiveness.items():
        cells = (value, result.sufficiency[method], result.agreement.get(method))
        table.append([method, *map(_interval, cells)])
    lines += fit_table(table, terminal_width())
    if result.flips:
        table = [["attention", "outputs that change", "total variation"]]
        for name, value in result.flips.items():
            table.append([name, _interval(value), _interval(result.distance[name])])
        lines += ["", *fit_table(table, terminal_width())]
    return [*lines, "", result.verdict]


def _interval(value: Any) -> str:
    if value is None or math.isnan(value.value):
        return "–"
    if math.isnan(value.low):
        return f"{value.value:.3f}"
    return f"{value.value:.3f} [{value.low:.3f}, {value.high:.3f}]"
