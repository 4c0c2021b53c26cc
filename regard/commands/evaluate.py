"""`regard evaluate`: trained runs on files, side by side, by length too."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.commands.run_options import add_quiet, add_run_options, given_options
from regard.errors import RegardError


def add(commands: Any, arguments: Sequence[str] | None) -> None:
    """Add `evaluate`."""
    evaluate = commands.add_parser(
        "evaluate",
        help="evaluate trained models on files",
        examples=(
            "regard evaluate runs/en-fr --data test.en test.fr",
            "regard evaluate runs/large runs/small --data reviews.tsv --json",
        ),
    )
    evaluate.add_argument("folders", nargs="+", type=Path, help="one or more run folders")
    evaluate.add_argument(
        "--data",
        nargs="+",
        metavar="FILE",
        help="test data (default: the built-in test split, for runs on built-in data)",
    )
    evaluate.add_argument("--json", action="store_true", help="print all details as JSON")
    evaluate.add_argument(
        "--metrics",
        nargs="+",
        default=[],
        metavar="NAME",
        help="additional metrics, by name or as package.module:name",
    )
    add_quiet(evaluate)
    if arguments is None or "evaluate" in arguments:
        add_run_options(evaluate, arguments, "evaluate_options")
    evaluate.set_defaults(run=_evaluate, parser=evaluate)


def _evaluate(chosen: argparse.Namespace) -> int:
    """Evaluate each run; the evaluation is saved in its folder as well."""
    from regard.commands.run_options import load_run
    from regard.inference.evaluations import (
        evaluation_name,
        full_paths,
        save_evaluation,
        summary,
    )

    runs = [load_run(folder) for folder in chosen.folders]
    loaded = [(run, _options(run, chosen)) for run in runs]
    tasks = {run.name for run in runs}
    if len(tasks) > 1:
        raise RegardError(
            f"runs of different tasks ({', '.join(sorted(tasks))}): expected one task"
        )
    name = "built-in" if chosen.data is None else evaluation_name(chosen.data)
    data = [] if chosen.data is None else full_paths(chosen.data)
    evaluations: dict[str, Any] = {}
    for folder, (run, options) in zip(chosen.folders, loaded, strict=True):
        log = chosen.display.line if not evaluations else lambda line: None
        evaluations[str(folder)] = run.evaluate(chosen.data, log=log, **options)
    if chosen.json:
        records = [
            {"run": run, **summary(one), "lines": list(one.lines)}
            for run, one in evaluations.items()
        ]
        print(json.dumps(records[0] if len(records) == 1 else records, ensure_ascii=False))
    else:
        print("\n".join(_table(evaluations)))
    for folder, (run, options) in zip(chosen.folders, loaded, strict=True):
        try:
            saved = save_evaluation(
                run.folder, name, evaluations[str(folder)], data=data, **options
            )
            chosen.display.line(f"saved in {saved}")
        except RegardError as error:
            print(f"not saved: {error}", file=sys.stderr)
    return 0


def _options(run: Any, chosen: argparse.Namespace) -> dict[str, Any]:
    options = given_options(run, chosen, "evaluate_options")
    if chosen.metrics:
        from regard.metrics import metric_by_name

        kind = run.spec.require("compares", run.folder.path, "--metrics")
        for name in chosen.metrics:
            metric_by_name(name, kind)  # refuses a wrong name before anything is computed
        options["metrics"] = tuple(chosen.metrics)
    return options


def _table(evaluations: Mapping[str, Any]) -> list[str]:
    """One column per run: the metrics, then the main one by length."""
    first = next(iter(evaluations.values()))
    wide = max([26, *(len(run) + 2 for run in evaluations)])
    lines = (
        []
        if len(evaluations) == 1
        else [" " * 24 + "".join(run.rjust(wide) for run in evaluations)]
    )
    for name, value in first.metrics.items():
        cells = [_cell(one.metrics.get(name)) for one in evaluations.values()]
        lines.append(f"{value.name:24}" + "".join(cell.rjust(wide) for cell in cells))
        if value.signature:
            lines[-1] += f"   {value.signature}"
    for name, value in first.by_length.items():
        cells = [_cell(one.by_length.get(name)) for one in evaluations.values()]
        label = f"  {first.metrics[first.main].name}, length {name}"
        lines.append(f"{label:24}" + "".join(c.rjust(wide) for c in cells) + f"   (n = {value.n})")
    return lines


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    text: str = value.text()
    return text
