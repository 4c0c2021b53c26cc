"""`regard train`: train a model, or resume its training."""

import argparse
import shlex
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.commands.run_options import add_quiet
from regard.commands.terminal.display import Display
from regard.commands.terminal.training_summary import closing_lines, executable
from regard.devices import add_device
from regard.errors import OptionError, RegardError
from regard.number_format import format_value
from regard.options import add_options, as_toml, check_names, read_config, whole_number

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

    after = [] if arguments is None else list(arguments[arguments.index("train") + 1 :])
    resuming = any(word.split("=")[0] == "--resume" for word in after) and after[0][0:1] == "-"
    if resuming or not after or after[0] in ("-h", "--help"):
        _add_resuming(train)  # not before a task, whose own budget options would be overwritten
    elif after[0].startswith("-"):
        example = f"regard train {next(iter(TASKS))} {after[0]} …"
        raise RegardError(f"{after[0]}: expected a task before its options, as in `{example}`")
    if resuming:
        return
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
    group.add_argument(
        "--seeds",
        type=whole_number(2, 1000),
        metavar="INT",
        help="train this many runs, in FOLDER/seed-1, FOLDER/seed-2, …, and print the mean of "
        "their metrics",
    )
    group.add_argument(
        "--data-cache",
        metavar="FOLDER",
        help="folder of prepared data that runs on the same files share, or none (default: the "
        "user's cache folder; see `regard data cache`)",
    )
    _add_resume(group)
    add_device(group)
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


def _add_resuming(parser: argparse.ArgumentParser) -> None:
    """Add `--resume RUN`, which takes the place of a task and its options."""
    from regard.training.config import BUDGET_OPTIONS, TrainingConfig

    group = parser.add_argument_group("Resuming a run")
    _add_resume(group)
    add_device(group)
    skip = [field.name for field in fields(TrainingConfig) if field.name not in BUDGET_OPTIONS]
    budget = dict.fromkeys(BUDGET_OPTIONS, group)
    add_options(parser, TrainingConfig, {}, skip=skip, common=budget)
    add_quiet(parser)
    parser.set_defaults(run=_resume, parser=parser)


def _add_resume(group: Any) -> None:
    group.add_argument(
        "--resume",
        type=Path,
        metavar="RUN",
        help="resume an interrupted run, or extend a finished one with a larger budget; needs no "
        "other options, not even the task",
    )


def _resume(chosen: argparse.Namespace, given: Mapping[str, Any] | None = None) -> int:
    """Train in an existing run folder with its own options; a budget that is given replaces its.

    Args:
        chosen: the options of the command.
        given: those of the task that were given too; others than its own are refused.
    """
    from regard.tasks.registry import TASKS
    from regard.training.config import BUDGET_OPTIONS
    from regard.training.run import earlier_options
    from regard.training.run_folder import RunFolder

    config = RunFolder(chosen.resume).config()
    parts = [config.get(part) or {} for part in ("data", "model", "training")]
    options = earlier_options(TASKS.row(config["task"]))
    options |= {name: value for part in parts for name, value in part.items()}
    budget = {name: getattr(chosen, name) for name in BUDGET_OPTIONS}
    if any(value is not None for value in budget.values()):
        options |= budget
    options |= given or {}
    return _train_one(chosen, config["task"], options, chosen.resume)


def _train(chosen: argparse.Namespace) -> int:
    from regard.tasks.registry import TASKS
    from regard.training.run import make_configs, next_folder
    from regard.training.run_folder import RunFolder

    spec = TASKS[chosen.task]
    options = _given_options(chosen, spec)
    if chosen.print_config:
        parts = dict(zip(("data", "model", "training"), make_configs(spec, options), strict=True))
        print(as_toml({name: asdict(part) for name, part in parts.items()}), end="")
        return 0
    if chosen.resume is not None:
        for name in ("out", "seeds"):
            if getattr(chosen, name) is not None:
                raise OptionError("resume", f"cannot be combined with --{name}")
        if RunFolder(chosen.resume).config()["task"] != chosen.task:
            raise RegardError(f"{chosen.resume}: is not a {chosen.task} run")
        return _resume(chosen, options)
    if chosen.seeds is None:
        return _train_one(chosen, chosen.task, options, chosen.out)
    first = make_configs(spec, options)[2].seed
    return _train_seeds(chosen, options, chosen.out or next_folder(chosen.task), first)


def _train_seeds(chosen: argparse.Namespace, options: dict[str, Any], out: Path, first: int) -> int:
    """One run per seed, each of which resumes where it was; then their mean."""
    from regard.training.seeds import seed_folders, summarize_seeds, write_seeds

    folders = seed_folders(out, first, chosen.seeds)
    for number, (seed, folder) in enumerate(folders.items(), 1):
        chosen.display.line(f"seed {seed} ({number} of {len(folders)}): {folder}")
        code = _train_one(chosen, chosen.task, options | {"seed": seed}, folder, summary=False)
        if code:
            chosen.display.line("runs of earlier seeds are kept: the same command continues")
            return code
    summary = summarize_seeds(list(folders.values()))
    write_seeds(out, summary)
    for name, value in summary.values.items():
        print(f"{name:12}{summary.name} {format_value(value, summary.unit)}")
    print(f"{'mean':12}{summary}")
    return 0


def _train_one(
    chosen: argparse.Namespace,
    task: str,
    options: dict[str, Any],
    out: Path | None,
    *,
    summary: bool = True,
) -> int:
    """Train or resume one run, and print what came of it."""
    from regard.training.distributed import torchrun_processes
    from regard.training.run import train_run

    processes = torchrun_processes()
    if processes.several and out is None:
        raise OptionError("out", "needed when several processes train one model")
    live: Display = chosen.display
    live.started = False
    if not processes.first:
        live.quiet = True
    with _stop_signals(live) as signals:
        folder, position = train_run(
            task,
            options,
            out,
            report=live.progress,
            log=live.line,
            stop=lambda: bool(signals),
            device=chosen.device,
            data_cache=_data_cache(getattr(chosen, "data_cache", None)),
        )
    if not position.done:
        again = f"{executable()} train --resume {shlex.quote(str(folder.path))}"
        live.line(f"stopped at step {position.step:,}; to resume: {again}")
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
        if summary:
            for line in closing_lines(folder.path, position):
                live.line(line)
            print(folder.path)
    return 0


def _data_cache(name: str | None) -> Path | bool:
    """Where prepared data is shared: True for the default folder, False for nowhere."""
    return True if name is None else name != "none" and Path(name)


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
        "seeds",
        "resume",
        "device",
        "data_cache",
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
