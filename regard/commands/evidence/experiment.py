"""`regard experiment`: put a claim about attention to the test."""

import argparse
import os
import sys
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
        help="put a claim about attention to the test",
        description="Run an experiment on built-in data: numbers with intervals over seeds, "
        "pictures, and whether the claim held.",
        examples=(
            "regard experiment --list",
            "regard experiment permutation",
            "regard experiment all --out experiments",
        ),
    )
    parser.add_argument("name", nargs="?", help="the experiment, or all")
    parser.add_argument("--list", action="store_true", help="list the experiments and exit")
    parser.add_argument(
        "--size",
        choices=("tiny", "default", "large"),
        default="default",
        help="tiny takes seconds and shows little; large is the serious version "
        "(default: default, at most 3 minutes)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("experiments"),
        metavar="FOLDER",
        help="results go into a folder of the experiment's name in it (default: experiments)",
    )
    parser.add_argument(
        "--vectors",
        metavar="FILE",
        help="word vectors for reweigh: a word and its numbers per line, or a run "
        "(default: vectors made from a small text)",
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
        raise RegardError("name an experiment, or all; `regard experiment --list` shows them")
    if chosen.name != "all" and chosen.name not in EXPERIMENTS:
        raise RegardError(unknown("experiment", chosen.name, [*EXPERIMENTS, "all"]))
    if chosen.name != "all":
        _run(chosen, chosen.name)
        return 0
    return _run_all(chosen)


def _list() -> None:
    from regard.experiments.experiment_table import EXPERIMENTS

    for one in EXPERIMENTS.values():
        print(f"{one.name} ({one.minutes:g} min; {one.row}: {one.topics})\n  {one.claim}")


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
