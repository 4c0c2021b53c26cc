"""`regard compare`: train a grid of systems under an equal budget, and test which differ."""

import argparse
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from regard.commands.run_options import add_quiet
from regard.commands.train import COMMON_OPTIONS
from regard.devices import add_device
from regard.errors import OptionError
from regard.options import add_options, positive

RESERVED = ("seed", "epochs", "steps", "minutes")
"""Training options that a comparison sets itself."""


def add(commands: Any, arguments: Sequence[str] | None) -> None:
    """Add `compare`; of the task in `arguments` with its options, of the others without."""
    compare = commands.add_parser(
        "compare",
        help="train variants of a model under an equal budget, and test which differ",
        description="Train every combination of the varied options with several seeds under an "
        "equal budget, and report which differences the test can detect. The same command with the "
        "same --out resumes.",
        examples=(
            "regard compare classify --vary pooling=sum,fixed,self --seeds 5 --budget epochs=3",
            "regard compare translation --data pairs.tsv --vary attention=none,additive,dot "
            "--budget 5m --equal parameters",
        ),
    )
    if arguments is not None and "compare" not in arguments:
        return
    from regard.tasks.registry import TASKS

    tasks = compare.add_subparsers(dest="task", required=True, metavar="task")
    wanted = [task for task in TASKS if arguments is None or task in arguments]
    if arguments is not None and wanted:
        TASKS.row(wanted[0])  # names a plug-in that cannot be imported
        wanted = wanted[:1]
    for task, spec in TASKS.items():
        parser = tasks.add_parser(
            task,
            help=spec.summary,
            description=f"Compare models that {spec.summary}.",
            examples=(
                f"regard compare {task} --vary width=32,64 --seeds 3 --budget 1m",
                f"regard compare {task} --vary dropout=0,0.3 --budget epochs=5 --jobs 2",
            ),
        )
        if task in wanted:
            _add_comparison(parser, task)


def _add_comparison(parser: argparse.ArgumentParser, task: str) -> None:
    from regard.tasks.registry import TASKS
    from regard.training import TrainingConfig

    spec = TASKS[task]
    group = parser.add_argument_group("Comparison")
    group.add_argument(
        "--vary",
        action="append",
        required=True,
        metavar="OPTION=A,B",
        help="an option of the task and its values; may be given several times",
    )
    group.add_argument(
        "--seeds", type=positive, default=3, metavar="INT", help="seeds per system (default: 3)"
    )
    group.add_argument(
        "--budget",
        metavar="LIMIT",
        help="budget of each training run: a time such as 90s or 5m, or epochs=…, steps=… or "
        "tokens=… (default: the default epochs of the task)",
    )
    group.add_argument(
        "--equal",
        choices=("parameters",),
        help="parameters: choose widths that give all systems the same size within 1 %%",
    )
    group.add_argument(
        "--test", nargs="+", metavar="FILE", help="test data (default: a tenth of the data)"
    )
    group.add_argument("--out", type=Path, metavar="FOLDER", help="folder of the comparison")
    group.add_argument(
        "--jobs",
        type=positive,
        metavar="INT",
        help="training runs in parallel (default: one per core)",
    )
    group.add_argument(
        "--on",
        choices=("processes", "ray"),
        default="processes",
        help="worker processes of this machine, or a Ray cluster (default: processes)",
    )
    group.add_argument("--ray-address", metavar="HOST:PORT", help="address of a Ray cluster")
    group.add_argument("--json", action="store_true", help="print the result as JSON")
    add_device(group)
    add_quiet(parser)
    own = {action.dest for action in parser._actions}
    common = dict.fromkeys(COMMON_OPTIONS, parser.add_argument_group("Common options"))
    for config in (spec.data, spec.model, TrainingConfig):
        skip = {field.name for field in fields(config)} & {*RESERVED, *own}
        add_options(parser, config, spec.training_defaults, skip=skip, common=common)
    parser.set_defaults(run=_compare, parser=parser)


def _compare(chosen: argparse.Namespace) -> int:
    import json

    from regard.compare.comparison import compare
    from regard.compare.comparison_report import terminal_report
    from regard.compare.grid import parse_vary
    from regard.tasks.registry import TASKS
    from regard.training import TrainingConfig

    spec = TASKS[chosen.task]
    if chosen.ray_address is not None and chosen.on != "ray":
        raise OptionError("ray_address", "needs --on ray")
    names = [f.name for config in (spec.data, spec.model, TrainingConfig) for f in fields(config)]
    options = {name: getattr(chosen, name, None) for name in names if name not in RESERVED}
    try:
        result = compare(
            chosen.task,
            vary=parse_vary(spec, chosen.vary),
            seeds=chosen.seeds,
            budget=chosen.budget,
            equal=chosen.equal,
            test=chosen.test,
            out=chosen.out,
            jobs=chosen.jobs,
            on=chosen.on,
            ray_address=chosen.ray_address,
            device=chosen.device,
            log=chosen.display.line,
            **{name: value for name, value in options.items() if value is not None},
        )
    except KeyboardInterrupt:
        chosen.display.line("stopped; the same command with the same --out resumes")
        raise
    print(
        json.dumps(result.record(), ensure_ascii=False) if chosen.json else terminal_report(result)
    )
    chosen.display.line(f"saved in {result.folder}: report.html, report.md and report.json")
    return 1 if result.failed else 0
