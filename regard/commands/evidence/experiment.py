"""`regard experiment`: put a claim about attention to the test."""

import argparse
import os
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.commands.run_options import add_quiet
from regard.devices import add_device
from regard.errors import RegardError, unknown
from regard.verified_files import open_regular


def add(commands: Any, arguments: Sequence[str] | None) -> None:
    """Add `experiment`."""
    parser = commands.add_parser(
        "experiment",
        help="test a claim about attention with numbers",
        description="Test a claim from a lecture or paper on built-in data: print numbers with "
        "intervals over seeds, say whether the claim held, and save pictures.",
        examples=(
            "regard experiment --list",
            "regard experiment permutation",
            "regard experiment all --out experiments",
        ),
    )
    parser.add_argument("name", nargs="?", help="name of an experiment, or all")
    parser.add_argument("--list", action="store_true", help="list the experiments and exit")
    parser.add_argument(
        "--size",
        choices=("tiny", "default", "large"),
        default="default",
        help="how much data and training: tiny takes seconds and proves nothing, default takes "
        "at most 3 minutes, large is as thorough as a paper (default: default)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("experiments"),
        metavar="FOLDER",
        help="where each experiment gets a folder with its results (default: experiments)",
    )
    parser.add_argument(
        "--vectors",
        metavar="FILE",
        help="word vectors for the experiment reweigh: a file with one word and its numbers per "
        "line, or a run folder (default: vectors learned from a small text)",
    )
    add_device(parser)
    add_quiet(parser)
    parser.set_defaults(run=_experiment, parser=parser)


def _experiment(chosen: argparse.Namespace) -> int:
    from regard.experiments.experiment_table import EXPERIMENTS

    if chosen.list:
        _list()
        return 0
    if chosen.name is None:
        raise RegardError("which experiment? name one, or all; see `regard experiment --list`")
    if chosen.name != "all" and chosen.name not in EXPERIMENTS:
        raise RegardError(unknown("experiment", chosen.name, [*EXPERIMENTS, "all"]))
    if chosen.name != "all":
        _run(chosen, chosen.name)
        return 0
    return _run_all(chosen)


def _list() -> None:
    from regard.experiments.experiment_table import EXPERIMENTS
    from regard.show.text_width import terminal_width

    width = max(50, terminal_width(100))
    margin = max(map(len, EXPERIMENTS)) + 2
    print(f"{'name':{margin}}minutes  claim, where it was made, and its topic")
    for one in EXPERIMENTS.values():
        claim = f"{one.claim} ({one.source}; {one.topics})"
        lines = textwrap.wrap(claim, width - margin - 9, break_on_hyphens=False)
        for i, line in enumerate(lines):
            start = f"{one.name:{margin}}{one.minutes:>7g}" if i == 0 else " " * (margin + 7)
            print(f"{start}  {line}")
    print(
        "\nMinutes are approximate, on two cores; A3 and the like are topics of the lectures."
        "\nTo run one: regard experiment NAME"
    )


def _run(chosen: argparse.Namespace, name: str) -> Any:
    from regard.experiments.experiment_results import numbers_table, run_experiment, verdict
    from regard.experiments.experiment_table import EXPERIMENTS
    from regard.show.report_page import terminal_table

    experiment = EXPERIMENTS.row(name)
    print(f"{name}: {experiment.claim} ({experiment.source})", flush=True)
    finding = run_experiment(
        name,
        chosen.out / name,
        chosen.size,
        device=chosen.device,
        vectors=chosen.vectors if chosen.name != "all" or experiment.reads_vectors else None,
    )
    print(terminal_table(numbers_table(finding.numbers)))
    for heading, table in finding.tables.items():
        print(f"\n{heading}\n{terminal_table(table)}\n")
    print(verdict(finding))
    chosen.display.line(f"saved in {chosen.out / name}")
    return finding


def _is_report(path: Path) -> bool:
    try:
        with open_regular(path) as file:
            return b"<title>Experiments</title>" in file.read(4096)
    except (OSError, RegardError):
        return False


def _run_all(chosen: argparse.Namespace) -> int:
    from regard.atomic_files import write_text
    from regard.experiments.experiment_results import report_all
    from regard.experiments.experiment_table import EXPERIMENTS

    report = chosen.out / "report.html"
    if os.path.lexists(report) and not _is_report(report):
        raise RegardError(f"{report}: was not written by Regard: choose another --out")
    found, failed = [], dict[str, str]()
    for name, experiment in EXPERIMENTS.items():
        try:
            found.append((experiment, _run(chosen, name)))
        except (RegardError, ValueError, RuntimeError) as error:
            failed[name] = " ".join(str(error).split())
            print(f"{name} could not be run: {failed[name]}", file=sys.stderr)
        print(flush=True)
    write_text(report, report_all(found, failed))
    chosen.display.line(f"saved in {report}")
    return 1 if failed else 0
