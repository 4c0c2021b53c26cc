"""Reports of a comparison: terminal, Markdown, JSON and one HTML page with plots."""

import json
import shlex
from collections.abc import Sequence
from math import isfinite
from pathlib import Path

from regard.atomic_files import write_text
from regard.compare.comparison_folder import ComparisonFolder
from regard.compare.comparison_result import ComparisonResult
from regard.number_format import format_bare_value
from regard.show.charts import Axis, Bar, Series, interval_chart, line_chart
from regard.show.curves import PER_UNIT
from regard.show.report_page import (
    Block,
    Code,
    Heading,
    Picture,
    Table,
    Text,
    markdown_table,
    report_page,
    terminal_table,
)

MAX_PAIRS = 40
"""Tests that a report for people lists; JSON has all."""
METHOD = (
    "The interval (95 %) is over seeds and test sentences together. Two systems are compared on "
    "the same test sentences (paired bootstrap, with the variance over seeds added; Welch's "
    "degrees of freedom), and p-values are corrected for multiple comparisons (Holm)."
)

SPEED = (
    "items/s is the training speed: target tokens per second, or texts per second for models that "
    "classify a whole text."
)


def write_reports(result: ComparisonResult, folder: Path) -> list[Path]:
    """Write report.md, report.json, report.html and the plots into the comparison's folder."""
    record = json.dumps(result.record(), ensure_ascii=False, indent=1)
    files = {
        "report.md": markdown_report(result),
        "report.json": record + "\n",
        "report.html": html_report(result),
        "metric.svg": metric_chart(result),
    }
    if lengths := length_chart(result):
        files["by-length.svg"] = lengths
    for name, text in files.items():
        write_text(folder / name, text)
    return [folder / name for name in files]


def terminal_report(result: ComparisonResult) -> str:
    """The table, the tests and the verdict as text."""
    tables = [terminal_table(table) for _, table in _tables(result)]
    return "\n\n".join([*tables, *_notes(result), result.verdict])


def markdown_report(result: ComparisonResult) -> str:
    """The report in Markdown."""
    parts = [f"# Comparison: {result.task}", result.verdict]
    for heading, table in _tables(result):
        parts += [f"## {heading}", markdown_table(table)]
    parts += [METHOD, *_notes(result)]
    if command := command_of(result):
        parts += ["## Command", f"```sh\n{command}\n```"]
    return "\n\n".join(parts) + "\n"


def html_report(result: ComparisonResult) -> str:
    """The report as one HTML page with plots."""
    blocks: list[Block] = [Text(result.verdict, lead=True), Picture(metric_chart(result))]
    for heading, table in _tables(result):
        blocks += [Heading(heading), table]
        if heading.startswith("Quality"):
            blocks.append(Picture(length_chart(result)))
    blocks += [Heading("How it was tested"), Text(METHOD), *map(Text, _notes(result))]
    if command := command_of(result):
        blocks += [Heading("Command"), Code(command)]
    return report_page(f"Comparison: {result.task}", blocks)


def command_of(result: ComparisonResult) -> str | None:
    """The command that repeats a comparison; None without its folder."""
    folder = None if result.folder is None else ComparisonFolder(result.folder)
    if folder is None or not folder.plan.exists():
        return None
    plan = folder.read(folder.plan)
    words = ["regard", "compare", plan["task"]]
    for name, values in plan["vary"].items():
        words += ["--vary", f"{name}={','.join(map(_option_text, values))}"]
    words += ["--seeds", str(plan["seeds"])]
    for name, value in {
        "budget": plan["budget"],
        "equal": plan["equal"],
        "test": plan["test"],
        **plan["options"],
    }.items():
        if value is not None:
            given = value if isinstance(value, list) else [value]
            words += [f"--{name.replace('_', '-')}", *map(_option_text, given)]
    return shlex.join(words)


def _option_text(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def metric_chart(result: ComparisonResult) -> str:
    """The metric of each system with its interval."""
    factor = PER_UNIT.get(result.unit, 1)
    bars = [
        Bar(
            one.label,
            factor * one.estimate.value,
            factor * one.estimate.low,
            factor * one.estimate.high,
        )
        for one in result.systems
    ]
    name = result.metric + (" (%)" if result.unit == "share" else "")
    better = "higher" if result.higher else "lower"
    return interval_chart(f"{name} with 95 % intervals", bars, f"{name}, {better} is better")


def length_chart(result: ComparisonResult) -> str:
    """The metric by length of the input; empty where the task has no such metric."""
    buckets = _buckets(result)
    if not buckets:
        return ""
    factor = PER_UNIT.get(result.unit, 1)
    series = [
        Series(
            one.label,
            [float(i) for i, bucket in enumerate(buckets) if bucket in one.by_length],
            [factor * one.by_length[bucket] for bucket in buckets if bucket in one.by_length],
        )
        for one in result.systems
    ]
    name = result.metric + (" (%)" if result.unit == "share" else "")
    return line_chart(
        f"{name} by length of the input", series, Axis("length", places=buckets), Axis(name)
    )


def _tables(result: ComparisonResult) -> list[tuple[str, Table]]:
    tables = [("Systems, best first", _systems(result))]
    if len(result.systems) > 1:
        tables.append(("Differences", _differences(result)))
    if buckets := _buckets(result):
        rows = [
            [
                one.label,
                *(
                    format_bare_value(one.by_length.get(b, float("nan")), result.unit)
                    for b in buckets
                ),
            ]
            for one in result.systems
        ]
        tables.append(("Quality by length", Table(["length", *buckets], rows)))
    return tables


def _systems(result: ComparisonResult) -> Table:
    name = result.metric + (" (%)" if result.unit == "share" else "")
    columns = ["system", name, "95 % interval", "seeds", "parameters", "items/s"]
    columns += ["processor time", "peak memory", "updates"]
    rows = []
    for one in result.systems:
        value, low, high = (
            format_bare_value(number, result.unit)
            for number in (one.estimate.value, one.estimate.low, one.estimate.high)
        )
        rows.append(
            [
                one.label,
                value,
                f"{low} to {high}",
                str(one.seeds),
                f"{one.parameters:,}",
                _number(one.items_per_second),
                f"{_number(one.processor_seconds)} s",
                f"{_number(one.peak_memory / 1e6)} MB",
                _number(one.updates),
            ]
        )
    return Table(columns, rows)


def _differences(result: ComparisonResult) -> Table:
    shown = sorted(result.pairs, key=lambda pair: pair.corrected)[:MAX_PAIRS]
    rows = [
        [
            f"{pair.first} − {pair.second}",
            format_bare_value(pair.difference.value, result.unit),
            f"{format_bare_value(pair.difference.low, result.unit)} to "
            f"{format_bare_value(pair.difference.high, result.unit)}",
            _p_value(pair.difference.p_value),
            _p_value(pair.corrected),
            "yes" if pair.differs else "not seen",
        ]
        for pair in shown
    ]
    columns = ["difference", result.metric, "95 % interval", "p", "p corrected", "different"]
    return Table(columns, rows)


def _p_value(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _buckets(result: ComparisonResult) -> Sequence[str]:
    return list(dict.fromkeys(bucket for one in result.systems for bucket in one.by_length))


def _notes(result: ComparisonResult) -> list[str]:
    failed = [f"failed: {label}: {reason}" for label, reason in result.failed.items()]
    left_out = [f"not possible: {label}: {why}" for label, why in result.impossible.items()]
    more = len(result.pairs) - MAX_PAIRS
    return [
        *failed,
        *left_out,
        *([f"{more} more differences are in report.json"] if more > 0 else []),
        *([SPEED] if result.systems else []),
    ]


def _number(value: float) -> str:
    return f"{value:,.0f}" if isfinite(value) else "–"
