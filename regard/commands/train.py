"""`regard train`: a model from files, or from built-in data."""

import argparse
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from regard.commands.progress import Live
from regard.errors import RegardError
from regard.options import add_options, as_toml, check_names, read_config

TASKS = ("translation", "language", "classify", "tag", "algorithm")


def add(commands: Any, arguments: list[str]) -> None:
    """Add the command; the options of the one task that is asked for are enough."""
    train = commands.add_parser("train", help="train a model on your files, or on built-in data")
    tasks = train.add_subparsers(dest="task", required=True, metavar="task")
    for task in TASKS:
        one = tasks.add_parser(task, help=f"train a model for {task}")
        if task in arguments:  # importing all takes time
            _add_training(one, task)


def _add_training(parser: argparse.ArgumentParser, task: str) -> None:
    from regard.tasks.kinds import KINDS
    from regard.training import TrainingConfig

    kind = KINDS[task]
    for config in (kind.data, kind.model, TrainingConfig):
        add_options(parser, config, kind.defaults)
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help="the run's folder (default: runs/TASK-DATE-N)"
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="options from a TOML file")
    parser.add_argument("--print-config", action="store_true", help="print all options and stop")
    parser.set_defaults(run=_train, parser=parser)


def _train(chosen: argparse.Namespace) -> int:
    from regard.inference.runs import configs, train_run
    from regard.tasks.kinds import KINDS
    from regard.training import TrainingConfig
    from regard.training.processes import announced

    given = {} if chosen.config is None else read_config(chosen.config)
    if given.pop("task", chosen.task) != chosen.task:
        raise RegardError(f"{chosen.config}: the config of a run of another task")
    given.pop("format", None)
    kind = KINDS[chosen.task]
    check_names(given, (kind.data, kind.model, TrainingConfig), str(chosen.config))
    own = ("command", "task", "run", "parser", "out", "config", "print_config")
    given |= {k: v for k, v in vars(chosen).items() if k not in own and v is not None}
    if chosen.print_config:
        parts = dict(zip(("data", "model", "training"), configs(chosen.task, given), strict=True))
        print(as_toml({name: asdict(part) for name, part in parts.items()}), end="")
        return 0
    place = announced()
    if place.several and chosen.out is None:
        raise RegardError("option --out: expected where several processes train one model")
    show = Live(sys.stderr, quiet=not place.first)
    signals: list[int] = []

    def interrupt(number: int, frame: object) -> None:
        # between two updates the state can be saved; before the first there is none, and who asks
        # twice wants to go at once
        signals.append(number)
        if not show.begun or len(signals) > 1:
            raise KeyboardInterrupt

    before = {
        number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        folder, position = train_run(
            chosen.task,
            given,
            chosen.out,
            report=show.progress,
            tell=show.line,
            stop=lambda: bool(signals),
        )
    finally:
        show.close()
        for number, handler in before.items():
            signal.signal(number, handler)
    if not position.done:
        show.line(f"stopped; the same command with --out {folder.path} goes on")
        return 128 + (signals or [signal.SIGTERM])[0]  # another process may have got it
    if not show.begun:
        show.line(
            f"nothing to do: done after {position.step} updates; a larger --epochs, --steps or "
            f"--minutes goes on"
        )
    if place.first:
        from regard.inference.drawing_curves import draw_curves

        show.line(draw_curves(folder.path))
        print(folder.path)
    return 0
