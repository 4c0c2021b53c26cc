"""What training ends with: the best weights, why it stopped, what it left on disk, what is next."""

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.data.data_report import format_row
from regard.number_format import format_count, format_duration

if TYPE_CHECKING:
    from regard.training.state import Position
    from regard.training.stored_runs.run_summary import RunSummary

FEW_UPDATES = 1000
"""Updates after which a run on small data may not have learned all that it can."""
MAX_EXAMPLE = 60
"""Characters of a text that is short enough for an example."""


def closing_lines(folder: Path, position: "Position") -> list[str]:
    """The summary of a run whose training is finished."""
    from regard.training.stored_runs.run_packing import prune_run
    from regard.training.stored_runs.run_summary import summarize_run

    run = summarize_run(folder)
    extending = sum(prune_run(folder, dry_run=True).values())
    rows = [
        ("best", _best(run)),
        ("stopped", _why_stopped(run, position)),
        ("kept", _kept(run)),
        ("size", _size(run, extending)),
        ("hint", hint(run) or _more_epochs(run, position)),
    ]
    lines = [format_row(name, text) for name, text in rows if text]
    return [*lines, *next_lines(next_commands(run))]


def next_lines(commands: list[str]) -> list[str]:
    """Commands to type next, one per line."""
    return [format_row("" if i else "next", command) for i, command in enumerate(commands)]


def next_commands(run: "RunSummary") -> list[str]:
    """What can be done with a run, as commands that work as they are."""
    regard, path = executable(), shlex.quote(str(run.path))
    text = _example(run.best or {})
    show = [f"{regard} show {path} --text {shlex.quote(text)}"] if text else []
    if _aligns(run):
        return [
            *show,
            *_alignment_commands(run, f"{regard} align {path}"),
            f"{regard} serve {path}",
        ]
    predict = f"{regard} predict {path}" + (f" {shlex.quote(text)}" if text else "")
    return [*show, predict, f"{regard} serve {path}"]


def _aligns(run: "RunSummary") -> bool:
    from regard.tasks.registry import TASKS

    return run.task in TASKS and TASKS.row(run.task).aligner is not None


def _alignment_commands(run: "RunSummary", align: str) -> list[str]:
    """What an aligner is for: the links of its own pairs, if they are in files, and its words."""
    files = (run.config.get("data") or {}).get("data")
    named = [str(name) for name in files] if isinstance(files, list) else []
    links = [f"{align} --data {shlex.join(named)} --output links.pharaoh"] if named else []
    return [*links, f"{align} --lexicon --output words.tsv"]


def executable() -> str:
    """How the user can call this command: by its name, by its path, or through Python."""
    script = Path(sys.executable).parent / "regard"
    known = shutil.which("regard")
    if known is not None and (not script.exists() or os.path.samefile(known, script)):
        return "regard"
    if not script.exists():
        return f"{shlex.quote(sys.executable)} -m regard"
    relative = os.path.relpath(script)
    return shlex.quote(str(script) if relative.startswith("..") else relative)


def _example(best: Any) -> str:
    """A short text of the last validation."""
    samples = best.get("samples")
    given = [str(one.get("given", "")) for one in samples] if isinstance(samples, list) else []
    short = [text for text in given if text.isprintable() and 0 < len(text) <= MAX_EXAMPLE]
    return short[0] if short and not short[0].startswith("-") else ""


def _best(run: "RunSummary") -> str:
    line = run.best or {}
    metric = run.metric(interval=True)
    if not metric or "step" not in line:
        return ""
    loss = line.get("validation_loss")
    at = "average" if "averaged" in line else f"step {format_count(line['step'])}"
    text = f"{at}: {metric}" + (f", validation loss {loss:.3f}" if loss is not None else "")
    return text + (f", the best of {run.validations} validations" if run.validations > 1 else "")


def hint(run: "RunSummary") -> str:
    """What to try where a classifier is no better than one that always gives the same answer."""
    best, labels = run.best or {}, run.data.get("labels")
    accuracy = (best.get("metrics") or {}).get("accuracy")
    if best.get("main") != "accuracy" or not isinstance(accuracy, dict) or not labels:
        return ""
    label, count = max(labels.items(), key=lambda item: item[1])
    share = count / sum(labels.values())
    if accuracy.get("low") is None or accuracy["low"] > share:
        return ""
    return (
        f"not surely better than always answering {label!r} ({100 * share:.1f} % of the data): "
        "train longer, for example with --patience 30 --epochs 100, or on more data"
    )


def _more_epochs(run: "RunSummary", position: "Position") -> str:
    """How to go on where few updates were made, and the last of them were still an improvement."""
    last = (run.best or {}).get("step") == position.step
    if position.ended != "epochs" or position.step > FEW_UPDATES or not last:
        return ""
    more = 3 * (position.epoch + 1)
    command = f"{executable()} train --resume {shlex.quote(str(run.path))} --epochs {more}"
    return f"the last epoch was the best, so that more of them may help: {command}"


def _kept(run: "RunSummary") -> str:
    from regard.training.metrics_log import describe_weights

    return describe_weights(run.best) if run.best is not None else ""


def _why_stopped(run: "RunSummary", position: "Position") -> str:
    training = run.config.get("training") or {}
    reasons = {
        "patience": f"{training.get('patience')} validations without improvement",
        "epochs": "all epochs are done",
        "steps": "all updates are done",
        "minutes": "the time is up",
    }
    done = (
        f"{format_count(position.step)} updates, epoch {position.epoch + 1}, "
        f"{format_duration(position.seconds)}"
    )
    reason = reasons.get(position.ended, "")
    return f"{reason} ({done})" if reason else done


def _size(run: "RunSummary", extending: int) -> str:
    from regard.training.stored_runs.model_card import format_size

    rest = f", {format_size(extending)} of it only to extend the run" if extending else ""
    return f"{format_size(run.size)}{rest}" + (" (`prune` frees that)" if extending else "")
