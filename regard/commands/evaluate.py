"""`regard evaluate`: trained runs on files, side by side, by length too."""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.commands.progress import Live
from regard.commands.use import load_with
from regard.errors import RegardError
from regard.options import positive


def add(commands: Any) -> None:
    """Add `evaluate`."""
    evaluate = commands.add_parser("evaluate", help="measure trained models on a file")
    evaluate.add_argument("folders", nargs="+", type=Path, help="the folders of one or more runs")
    evaluate.add_argument(
        "--data",
        nargs="+",
        metavar="FILE",
        help="what to test on; the built-in test examples of a run on built-in data unless said",
    )
    evaluate.add_argument(
        "--beam",
        type=positive,
        metavar="INT",
        help="width of the beam, in translation (default: 5)",
    )
    evaluate.add_argument(
        "--lowercase", action="store_true", help="compare in lower case, in translation"
    )
    evaluate.add_argument("--json", action="store_true", help="print everything as JSON")
    evaluate.set_defaults(run=_evaluate, parser=evaluate)


def _evaluate(chosen: argparse.Namespace) -> int:
    """Measure each run; what was found is kept in its folder as well."""
    from regard.inference.evaluations import keep, named, summary

    show = Live(sys.stderr)
    loaded = [load_with(folder, chosen, "beam", "lowercase") for folder in chosen.folders]
    tasks = {run.name for run, _ in loaded}
    if len(tasks) > 1:
        raise RegardError(f"runs of several tasks ({', '.join(sorted(tasks))}): expected one")
    name = "built-in" if chosen.data is None else named(chosen.data)
    found: dict[str, Any] = {}
    for folder, (run, options) in zip(chosen.folders, loaded, strict=True):
        tell = show.line if not found else lambda line: None
        measured = run.evaluate(chosen.data, tell=tell, **options)
        found[str(folder)] = measured
    if chosen.json:
        records = [
            {"run": run, **summary(one), "lines": list(one.lines)} for run, one in found.items()
        ]
        print(json.dumps(records[0] if len(records) == 1 else records, ensure_ascii=False))
    else:
        print("\n".join(_table(found)))
    for folder, (run, options) in zip(chosen.folders, loaded, strict=True):
        try:
            keep(run.folder, name, found[str(folder)], **options)
        except RegardError as error:
            print(f"not kept: {error}", file=sys.stderr)
    return 0


def _table(found: Mapping[str, Any]) -> list[str]:
    """A column a run: the metrics, then the main one by length."""
    first = next(iter(found.values()))
    wide = max([26, *(len(run) + 2 for run in found)])
    lines = [] if len(found) == 1 else [" " * 24 + "".join(run.rjust(wide) for run in found)]
    for name, value in first.metrics.items():
        cells = [_cell(one.metrics.get(name)) for one in found.values()]
        lines.append(f"{name:24}" + "".join(cell.rjust(wide) for cell in cells))
        if value.signature:
            lines[-1] += f"   {value.signature}"
    for name, value in first.by_length.items():
        cells = [_cell(one.by_length.get(name)) for one in found.values()]
        label = f"  {first.main} at {name}"
        lines.append(f"{label:24}" + "".join(c.rjust(wide) for c in cells) + f"   (n = {value.n})")
    return lines


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{_short(value.value)} [{_short(value.low)}, {_short(value.high)}]"


def _short(value: float) -> str:
    return f"{value:.4g}" if abs(value) >= 0.001 else f"{value:.3f}"
