"""`regard evaluate`: trained runs on files, side by side, by length too."""

import argparse
import json
import math
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.commands.line_io import refuse_overwriting
from regard.commands.run_options import (
    add_column_options,
    add_quiet,
    add_run_options,
    given_columns,
    given_options,
)
from regard.devices import add_device
from regard.errors import RegardError, printable
from regard.number_format import format_value


def add(commands: Any, arguments: Sequence[str] | None) -> None:
    """Add `evaluate`."""
    evaluate = commands.add_parser(
        "evaluate",
        help="evaluate trained models on files",
        examples=(
            "regard evaluate runs/en-fr --data test.en test.fr",
            "regard evaluate runs/large runs/small --data reviews.tsv --json",
            "regard evaluate runs/reviews --data other.csv --text comment --label stars",
            "regard evaluate runs/reviews --data reviews.tsv --picture confusion.svg",
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
    evaluate.add_argument(
        "--picture",
        type=Path,
        metavar="FILE",
        help="draw the confusion matrix into a file that ends in .svg, .png or .pdf",
    )
    add_device(evaluate)
    add_quiet(evaluate)
    if arguments is None or "evaluate" in arguments:
        add_run_options(evaluate, arguments, "evaluate_options")
        add_column_options(evaluate, arguments)
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

    _check_picture(chosen)
    runs = [load_run(folder, chosen.device) for folder in chosen.folders]
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
        lines = [*_table(evaluations), *_classes(evaluations)]
        print(printable("\n".join(lines)))
    if chosen.picture is not None:
        _draw_confusion(chosen, next(iter(evaluations.values())))
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
    options = given_options(run, chosen, "evaluate_options") | given_columns(run, chosen)
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
    lengths, margin = _length_names(first), _margin(first)
    wide = _column_width(evaluations)
    lines = (
        []
        if len(evaluations) == 1
        else [" " * margin + "".join(run.rjust(wide) for run in evaluations)]
    )
    for name, value in first.metrics.items():
        cells = [_cell(one.metrics.get(name)) for one in evaluations.values()]
        lines.append(f"{value.name:{margin}}" + "".join(cell.rjust(wide) for cell in cells))
        if value.signature:
            lines[-1] += f"   {value.signature}"
    for name, value in first.by_length.items():
        cells = [_cell(one.by_length.get(name)) for one in evaluations.values()]
        row = f"{lengths[name]:{margin}}" + "".join(cell.rjust(wide) for cell in cells)
        lines.append(f"{row}   (n = {value.n})")
    return lines


def _length_names(evaluation: Any) -> dict[str, str]:
    """The names of rows by length."""
    main = evaluation.metrics[evaluation.main].name
    return {name: f"  {main}, length {name}" for name in evaluation.by_length}


def _margin(evaluation: Any) -> int:
    return max([24, *(len(label) for label in _length_names(evaluation).values())])


def _column_width(runs: Iterable[str]) -> int:
    return max([26, *(len(run) + 2 for run in runs)])


def _classes(evaluations: Mapping[str, Any]) -> list[str]:
    """Each class of one run, with the confusion matrix; the F1 of each class of several runs."""
    from regard.show.class_tables import class_table, confusion_text
    from regard.show.text_width import align_left, truncate

    reports = [one.report for one in evaluations.values()]
    if any(report is None for report in reports):
        return []
    if len(reports) > 1:
        margin, wide = _margin(next(iter(evaluations.values()))), _column_width(evaluations)
        values = [{one.name: one.f1 for one in report.classes} for report in reports]
        names = dict.fromkeys(name for by_name in values for name in by_name)
        return [
            align_left(truncate(f"  F1 of {name}", margin - 1), margin)
            + "".join(format_value(v.get(name, math.nan), "f1").rjust(wide) for v in values)
            for name in names
        ]
    (report,) = reports
    rows = [(one.name, one.precision, one.recall, one.f1, one.support) for one in report.classes]
    lines = ["", class_table(report.kind, rows)] if rows else []
    if (confusion := report.confusion) is not None and confusion.labels:
        width = shutil.get_terminal_size((100, 24)).columns
        matrix = confusion_text(confusion.labels, confusion.counts, width)
        lines += ["", f"confusion of {confusion.unit}", matrix]
    return lines


def _check_picture(chosen: argparse.Namespace) -> None:
    """Refuse a picture that could not be written before anything is computed."""
    if chosen.picture is None:
        return
    from regard.show.picture_files import picture_format

    picture_format(chosen.picture, "--picture")
    refuse_overwriting(chosen.picture, *(chosen.data or ()))
    if len(chosen.folders) > 1:
        raise RegardError(
            f"--picture {chosen.picture}: expected one run, got {len(chosen.folders)}"
        )


def _draw_confusion(chosen: argparse.Namespace, evaluation: Any) -> None:
    from regard.show.confusion import confusion_svg
    from regard.show.picture_files import write_picture

    path = chosen.picture
    if evaluation.report is None or evaluation.report.confusion is None:
        raise RegardError(
            f"--picture {path}: expected a run that gives each text or word one label; there is no "
            f"confusion matrix without"
        )
    confusion = evaluation.report.confusion
    files = [Path(name).name for name in chosen.data or ["built-in test data"]]
    title = f"{chosen.folders[0].resolve().name} on {', '.join(files)}"
    svg = confusion_svg(confusion.labels, confusion.counts, unit=confusion.unit, title=title)
    write_picture(path, svg)
    chosen.display.line(f"{path}: written")


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    text: str = value.text()
    return text
