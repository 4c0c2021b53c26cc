"""`regard explain`: how much each word mattered, and whether attention can be trusted to say so."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

import numpy as np

from regard.commands.piping import lines_of
from regard.commands.progress import Live
from regard.errors import RegardError
from regard.options import positive

COLUMNS = {
    "attention": "attention",
    "attention rollout": "rollout",
    "integrated gradients": "integrated",
    "gradient × input": "× input",
    "leave-one-out": "left out",
    "gradient": "gradient",
    "gradient through values": "by values",
    "gradient around attention": "around",
    "gradient under uniform attention": "uniform",
}
"""Methods, and what they are called over a column."""
PICTURED = ("attention", "integrated gradients", "leave-one-out")
"""Methods that are drawn as matrices where there are several outputs."""
SHOWN = 10
"""Words of each label and query."""


def add(commands: Any) -> None:
    """Add `explain`."""
    explain = commands.add_parser(
        "explain", help="say how much each word mattered, and whether attention tells it"
    )
    explain.add_argument("folder", type=Path, help="the folder of the run")
    given = explain.add_mutually_exclusive_group()
    given.add_argument("--text", help="the text to explain")
    given.add_argument("--input", metavar="FILE", help="texts, one a line; - for standard input")
    given.add_argument("--data", nargs="+", metavar="FILE", help="what to measure faithfulness on")
    given.add_argument(
        "--words", action="store_true", help="what a classifier has learned of single words"
    )
    explain.add_argument(
        "--faithfulness",
        action="store_true",
        help="with --data: whether attention names the words that matter",
    )
    explain.add_argument(
        "--output", type=int, metavar="INT", help="the output to explain, counted from 0"
    )
    explain.add_argument("--looks", action="store_true", help="show every layer and head")
    explain.add_argument(
        "--erase",
        choices=("delete", "unknown"),
        help="how words are left out (default: delete; in tagging unknown)",
    )
    explain.add_argument(
        "--limit", type=positive, default=200, metavar="INT", help="texts of --data (default: 200)"
    )
    explain.add_argument("--seed", type=int, default=0, help="of all that is drawn at random")
    explain.add_argument("--json", action="store_true", help="print everything as JSON")
    explain.set_defaults(run=_explain, parser=explain)


def _explain(chosen: argparse.Namespace) -> int:
    from regard.inference import load

    if chosen.faithfulness != bool(chosen.data):
        raise RegardError("--faithfulness and --data FILE go together: it is measured on a file")
    run = load(chosen.folder)
    if chosen.data:
        return _faithfulness(run, chosen)
    if chosen.words:
        return _words(run, chosen)
    if chosen.text is None and chosen.input is None:
        raise RegardError("nothing to explain: give --text, --input FILE, --words or --data FILE")
    return _texts(run, chosen)


def _texts(run: Any, chosen: argparse.Namespace) -> int:
    from regard.inference.explanations import explain

    if chosen.json and chosen.output is not None:
        raise RegardError("option --output: not with --json, which gives all outputs")
    texts = [chosen.text]
    if chosen.text is None:
        with lines_of(chosen.input) as lines:
            texts = list(lines)
    show = _progress()
    for number, text in enumerate(texts):
        show(number, len(texts))
        found = explain(run, text, erase=chosen.erase)
        show(len(texts), len(texts))
        if chosen.json:
            print(found.to_json())
            continue
        if number:
            print()
        try:
            print("\n".join(_pictured(found, chosen.output, chosen.looks)))
        except RegardError as error:
            place = "" if chosen.text is not None else f"{chosen.input}:{number + 1}: "
            raise RegardError(f"{place}{error}") from error
    return 0


def _pictured(found: Any, output: int | None, looks: bool) -> list[str]:
    """A trace with attributions in lines."""
    from regard.show.lettering import printable
    from regard.show.terminal import shaded

    if not found.attributions:
        return ["(nothing to explain)"]
    names = found.prediction["explained"]["outputs"]
    places = list(dict.fromkeys(one.output for one in found.attributions))
    lines = [f"→ {printable(found.output)}"] if found.task != "language" else []
    if output is not None and not 0 <= output < len(places):
        raise RegardError(f"--output {output}: there are outputs 0 to {len(places) - 1}")
    if output is not None or len(places) == 1:
        index = output or 0
        place = places[index]
        lines += _table(found, place, printable(names[index]))
    else:
        lines += _matrices(found, places, names)
        lines.append("(--output INT explains one of them in full; --json gives everything)")
    for look in found.looks if looks else ():
        where = [
            f"{what} {n}"
            for what, n in (("layer", look.layer), ("head", look.head))
            if n is not None
        ]
        lines += ["", " ".join([look.name, *where]), shaded(look)]
    return lines


def _table(found: Any, place: int | None, name: str) -> list[str]:
    """A row a token, a column a method, each shaded by its largest number."""
    from regard.show.lettering import printable

    ones = {one.method: one for one in found.attributions if one.output == place}
    methods = [method for method in COLUMNS if method in ones]
    tokens = [printable(t.text) for t in found.sides[ones["gradient"].side].tokens]
    left = min(max(len(name) + 4, *(len(t) for t in tokens), 8), 20)
    head = "".join(f"{COLUMNS[method]:>11}" for method in methods)
    lines = [f"{f'for {name}'[:left]:{left}}{head}"]
    most = {m: max(float(np.abs(ones[m].values).max()), 1e-12) for m in methods}
    for i, token in enumerate(tokens):
        cells = "".join(_cell(ones[m].values[i], most[m]) for m in methods)
        lines.append(f"{token[:left]:{left}}{cells}")
    return lines


def _cell(value: float, most: float) -> str:
    from regard.show.terminal import SHADES

    shade = SHADES[min(len(SHADES) - 1, round(abs(value) / most * (len(SHADES) - 1)))]
    return f"{shade:>3} {value:>7.3f}"


def _matrices(found: Any, places: Sequence[int | None], names: Sequence[str]) -> list[str]:
    from regard.looks import from_arrays
    from regard.show.terminal import shaded

    lines = []
    for method in PICTURED:
        ones = [one for one in found.attributions if one.method == method]
        if not ones:
            continue
        rows = np.abs(np.stack([one.values for one in ones]))
        if method != "attention":
            rows = rows / np.maximum(rows.max(1, keepdims=True), 1e-12)
        keys = [token.text for token in found.sides[ones[0].side].tokens]
        queries = [f"{i} {name}" for i, name in zip(range(len(places)), names, strict=True)]
        title = method if method == "attention" else f"{method}, relative to the largest"
        lines += ["", title, shaded(from_arrays(rows, queries, keys))]
    return lines


def _words(run: Any, chosen: argparse.Namespace) -> int:
    from regard.inference.polarities import nearest_words, polarities
    from regard.show.lettering import printable

    found, near = polarities(run), nearest_words(run, SHOWN)
    if chosen.json:
        table = dict(zip(found.words, found.values.tolist(), strict=True))
        record = {
            "labels": found.labels,
            "exact": found.exact,
            "polarities": table,
            "queries": [[asdict(one) for one in row] for row in near],
        }
        print(json.dumps(record, ensure_ascii=False))
        return 0
    how = "the word's part in every text" if found.exact else "of the word alone"
    print(f"polarities ({how})")
    for label in found.labels:
        words = "  ".join(f"{printable(w)} {v:+.2f}" for w, v in found.strongest(label, SHOWN))
        print(f"  {label}: {words}")
    for number, row in enumerate(near, 1):
        words = "  ".join(f"{printable(one.word)} {one.degrees:.0f}°" for one in row)
        print(f"nearest to query {number}: {words}")
    return 0


def _faithfulness(run: Any, chosen: argparse.Namespace) -> int:
    from regard.inference.evaluations import named
    from regard.inference.faithfulness import faithfulness, read_texts
    from regard.inference.reports import keep, plain

    texts, told = read_texts(run, chosen.data)
    if len(texts) > chosen.limit:
        drawn = sorted(Random(chosen.seed).sample(range(len(texts)), chosen.limit))
        told += f"; {chosen.limit} drawn at random"
        texts = [texts[i] for i in drawn]
    print(told, file=sys.stderr)
    found = faithfulness(run, texts, erase=chosen.erase, seed=chosen.seed, report=_progress())
    if chosen.json:
        print(json.dumps(plain(found), ensure_ascii=False, allow_nan=False), flush=True)
    else:
        print("\n".join(report(found)), flush=True)
    options = {"limit": chosen.limit, "seed": chosen.seed}
    path = keep(run.folder, named(chosen.data), found, **options)
    print(f"kept in {path}", file=sys.stderr)
    return 0


def report(found: Any) -> list[str]:
    """The tables of a faithfulness report, and its verdict."""
    shares = ", ".join(f"{100 * share:g} %" for share in found.shares)
    measures = ("comprehensiveness", "sufficiency", "τ with attention")
    lines = [
        f"{found.texts} texts, {found.outputs} outputs; words erased ({found.erase}): {shares}",
        "",
        f"{'words named by':22}" + "".join(f"{name:>24}" for name in measures),
    ]
    for method, value in found.comprehensiveness.items():
        cells = (value, found.sufficiency[method], found.agreement.get(method))
        lines.append(f"{method:22}{''.join(f'{_interval(cell):>24}' for cell in cells)}")
    if found.flips:
        lines += ["", f"{'attention':22}{'outputs that change':>24}{'total variation':>24}"]
        for name, value in found.flips.items():
            moved = _interval(found.distance[name])
            lines.append(f"{name:22}{_interval(value):>24}{moved:>24}")
    return [*lines, "", found.verdict]


def _interval(value: Any) -> str:
    if value is None or np.isnan(value.value):
        return "–"
    return f"{value.value:.3f} [{value.low:.3f}, {value.high:.3f}]"


def _progress() -> Callable[[int, int], None]:
    """A line that says how far it is, on a terminal, once it has taken two seconds."""
    show, begun = Live(sys.stderr), monotonic()

    def told(done: int, total: int) -> None:
        if not show.live or monotonic() - begun < 2:
            return
        show.close()
        if done < total:
            full = 30 * done // total
            left = (monotonic() - begun) * (total / done - 1) if done else 0.0
            bar = "█" * full + "░" * (30 - full)
            show.stream.write(f"{bar} {done} of {total} texts, {left:.0f} s left")
            show.stream.flush()

    return told
