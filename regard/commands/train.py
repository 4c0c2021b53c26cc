"""`regard train`: train a model, or resume its training."""

import argparse
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.commands.run_options import add_quiet
from regard.commands.terminal.display import Display
from regard.errors import OptionError, RegardError
from regard.options import add_options, as_toml, check_names, read_config

if TYPE_CHECKING:
    from regard.tasks.registry import TaskSpec


COMMON_OPTIONS = (
    "data",
    "valid",
    "source",
    "target",
    "text",
    "label",
    "kind",
    "model",
    "encoder",
    "attention",
    "width",
    "layers",
    "epochs",
    "minutes",
    "learning_rate",
    "seed",
)
"""Options that the help lists first, where a task has them."""


def add(commands: Any, arguments: Sequence[str] | None) -> None:
    """Add `train`; of the task in `arguments` with its options, of the others without."""
    train = commands.add_parser(
        "train",
        help="train a model on your files, or on built-in data",
        description="Train a model on your files, or on built-in data without --data. `regard "
        "train TASK --help` lists the formats and options of a task.",
        examples=(
            "regard train translation --data train.en train.fr --out runs/en-fr",
            "regard train classify --data reviews.csv --minutes 2 --out runs/reviews",
        ),
    )
    if arguments is not None and "train" not in arguments:
        return
    from regard.tasks.registry import TASKS

    tasks = train.add_subparsers(dest="task", required=True, metavar="task")
    wanted = [task for task in TASKS if arguments is None or task in arguments]
    if arguments is not None and wanted:
        TASKS.row(wanted[0])  # names a plug-in that cannot be imported
        wanted = wanted[:1]
    for task, spec in TASKS.items():
        parser = tasks.add_parser(
            task,
            help=spec.summary,
            description=f"{spec.summary[0].upper()}{spec.summary[1:]}.",
            examples=_examples(task, spec),
        )
        if task in wanted:
            _add_training(parser, task)


def _examples(task: str, spec: "TaskSpec") -> tuple[str, str]:
    own = f"regard train {task} {spec.train_example}".strip()
    return f"regard train {task} --minutes 1 --out runs/{task}", own


def _add_training(parser: argparse.ArgumentParser, task: str) -> None:
    from regard.tasks.registry import TASKS
    from regard.training import TrainingConfig

    spec = TASKS[task]
    group = parser.add_argument_group("Common options")
    group.add_argument(
        "--out", type=Path, metavar="FOLDER", help="the run folder (default: runs/TASK-DATE-NUMBER)"
    )
    common = dict.fromkeys(COMMON_OPTIONS, group)
    for config in (spec.data, spec.model, TrainingConfig):
        add_options(parser, config, spec.training_defaults, common=common)
    add_quiet(parser)
    files = parser.add_argument_group("Config files")
    files.add_argument(
        "--config", type=Path, metavar="FILE", help="read options from a TOML or JSON file"
    )
    files.add_argument("--print-config", action="store_true", help="print all options and exit")
    parser.set_defaults(run=_train, parser=parser)


def _train(chosen: argparse.Namespace) -> int:
    from regard.tasks.registry import TASKS
    from regard.training.distributed import torchrun_processes
    from regard.training.run import make_configs, train_run

    spec = TASKS[chosen.task]
    options = _given_options(chosen, spec)
    if chosen.print_config:
        parts = dict(zip(("data", "model", "training"), make_configs(spec, options), strict=True))
        print(as_toml({name: asdict(part) for name, part in parts.items()}), end="")
        return 0
    processes = torchrun_processes()
    if processes.several and chosen.out is None:
        raise OptionError("out", "needed when several processes train one model")
    live: Display = chosen.display
    if not processes.first:
        live.quiet = True
    with _stop_signals(live) as signals:
        folder, position = train_run(
            chosen.task,
            options,
            chosen.out,
            report=live.progress,
            log=live.line,
            stop=lambda: bool(signals),
        )
    if not position.done:
        live.line(f"stopped; the same command with --out {folder.path} resumes the run")
        # In distributed training the signal may have reached another process only.
        return 128 + (signals or [signal.SIGTERM])[0]
    if not live.started:
        live.line(
            f"nothing to do: the run finished after {position.step} updates; a larger --epochs, "
            f"--steps or --minutes extends it"
        )
    if processes.first:
        from regard.inference.learning_curves import draw_curves

        live.line(draw_curves(folder.path))
        print(folder.path)
    return 0


def _given_options(chosen: argparse.Namespace, spec: "TaskSpec") -> dict[str, Any]:
    """The options of the config file and the command line, which wins."""
    from regard.training import TrainingConfig

    options = {} if chosen.config is None else read_config(chosen.config)
    if options.pop("task", chosen.task) != chosen.task:
        raise RegardError(f"{chosen.config}: is the config of another task")
    options.pop("format", None)
    check_names(options, (spec.data, spec.model, TrainingConfig), str(chosen.config))
    of_command = (
        "command",
        "task",
        "run",
        "main",
        "make_parser",
        "parser",
        "out",
        "config",
        "print_config",
        "quiet",
        "display",
    )
    names = vars(chosen).keys() - {*of_command, "print_config"}
    given = {name: getattr(chosen, name) for name in vars(chosen) if name in names}
    return options | {name: value for name, value in given.items() if value is not None}


@contextmanager
def _stop_signals(live: Display) -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM in a list, so that training can stop after an update."""
    signals: list[int] = []

    def interrupt(number: int, frame: object) -> None:
        # Between two updates the state can be saved; before the first update there is none, and a
        # second signal means that the user does not want to wait.
        signals.append(number)
        if not live.started or len(signals) > 1:
            raise KeyboardInterrupt

    handlers = {
        number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield signals
    finally:
        live.close()
        for number, handler in handlers.items():
            signal.signal(number, handler)
