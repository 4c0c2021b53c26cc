"""Options that depend on the task of a run: declared once, as a dataclass of the task."""

import argparse
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.argument_parser import Parser
from regard.errors import OptionError, RegardError
from regard.examples import example_path
from regard.options import COLUMN_OPTIONS, add_options
from regard.verified_files import MEBIBYTE, read_json

if TYPE_CHECKING:
    from regard.inference import Run
    from regard.tasks.registry import TaskSpec


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Add `--quiet` to a command that may take long."""
    parser.add_argument(
        "--quiet", action="store_true", help="print no progress and no notes, only results"
    )


def add_run_options(
    parser: argparse.ArgumentParser,
    arguments: Sequence[str] | None,
    attribute: str,
    capability: str | None = None,
) -> None:
    """Add the options of a command that the tasks of its runs declare.

    The tasks are those of the run folders among the arguments; where there is none, as in a call
    for help, those of all tasks. Importing only what is needed keeps commands quick.

    Args:
        parser: of the command.
        arguments: of the whole command line; None for the options of all tasks.
        attribute: `predict_options` or `evaluate_options` of `TaskSpec`.
        capability: of `TaskSpec`, which the command needs; other tasks are left out of its help.
    """
    names = _tasks_of(arguments or [])
    known: set[str] = set()
    for spec in _specs(names):
        config = getattr(spec, attribute)
        suits = capability is None or getattr(spec, capability) is not None
        if config is not None and suits:
            add_options(parser, config, {}, skip=known)
            known |= {field.name for field in fields(config)}
    if isinstance(parser, Parser) and names:
        parser.explain_unknown = lambda option: _check_other_tasks(option, names, attribute)


def add_column_options(
    parser: argparse.ArgumentParser, arguments: Sequence[str] | None, skip: Iterable[str] = ()
) -> None:
    """Add the options with which the tasks of the runs choose columns, as in their training.

    Those in `skip` are left out: the command has them already.
    """
    group = parser.add_argument_group("Columns of the data (default: as in training)")
    known = set(skip)
    for spec in _specs(_tasks_of(arguments or [])):
        columns = set(column_options(spec)) - known
        skip = {field.name for field in fields(spec.data)} - columns
        add_options(parser, spec.data, {}, skip=skip, common=dict.fromkeys(columns, group))
        known |= columns


def column_options(spec: "TaskSpec") -> list[str]:
    """The data options of a task that choose columns."""
    return [field.name for field in fields(spec.data) if field.name in COLUMN_OPTIONS]


def load_run(folder: Path, device: str) -> "Run":
    """A trained run on a device; a folder that is none is an error before torch is imported."""
    from regard.training import RunFolder

    RunFolder(folder).config()
    from regard.inference import load

    return load(folder, device)


def refuse_text_before_run(folder: Path, texts: Sequence[str]) -> None:
    """Raise an error if a text stands where the run folder should, and the run after it."""
    for text in texts:
        if not example_path(folder).exists() and (example_path(text) / "config.json").is_file():
            raise RegardError(
                f"{folder}: no such run folder: expected the run before the text, as in "
                f"{shlex.join([text, str(folder)])}"
            )


def given_options(run: "Run", chosen: argparse.Namespace, attribute: str) -> dict[str, Any]:
    """The options of the run's own task that were given."""
    config = getattr(run.spec, attribute)
    names = [] if config is None else [field.name for field in fields(config)]
    return _given(chosen, names)


def given_columns(run: "Run", chosen: argparse.Namespace) -> dict[str, Any]:
    """The columns that were chosen; one that the run's own task does not read is refused."""
    columns = _given(chosen, COLUMN_OPTIONS)
    for name in columns.keys() - set(column_options(run.spec)):
        raise RegardError(f"--{name} does not apply to {run.name} runs")
    return columns


def _given(chosen: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    options = {name: getattr(chosen, name, None) for name in names}
    return {name: value for name, value in options.items() if value is not None}


def _tasks_of(arguments: Sequence[str]) -> list[str]:
    """The tasks of the run folders among the arguments."""
    tasks = []
    for argument in arguments:
        try:
            config = read_json(example_path(argument) / "config.json", MEBIBYTE)
            tasks.append(str(config["task"]))
        except (OSError, ValueError, KeyError, TypeError, RegardError):
            continue
    return tasks


def _specs(names: Iterable[str]) -> "list[TaskSpec]":
    from regard.tasks.registry import TASKS

    installed = [name for name in dict.fromkeys(names) if name in TASKS]
    return [TASKS.row(name) for name in installed] or list(TASKS.values())


def _check_other_tasks(option: str, names: Sequence[str], attribute: str) -> None:
    """Raise an error if an unknown option is one of another task."""
    field_name = option.split("=")[0].removeprefix("--").removeprefix("no-").replace("-", "_")
    for spec in _specs([]):
        config = getattr(spec, attribute)
        known = [] if config is None else [field.name for field in fields(config)]
        if field_name in known + column_options(spec) * (attribute == "evaluate_options"):
            tasks = " or ".join(dict.fromkeys(names))
            raise RegardError(f"{option} does not apply to {tasks} runs")


def one_text(chosen: argparse.Namespace, run: Path) -> str | None:
    """The text of a command that takes one, as an argument or with `--text`."""
    refuse_text_before_run(run, chosen.texts)
    given: str | None = chosen.text
    if not chosen.texts:
        return given
    if given is not None:
        raise OptionError("text", "cannot be combined with a text on the command line")
    if len(chosen.texts) > 1:
        words = " ".join(chosen.texts)
        raise RegardError(f'expected one text, in quotation marks, such as "{words}"')
    return str(chosen.texts[0])
