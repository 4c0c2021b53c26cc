"""The model card of a run, its README.md, and what differs between two runs."""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

from regard.atomic_files import write_text
from regard.errors import RegardError, printable
from regard.number_format import format_count, format_duration
from regard.tasks.registry import TASKS
from regard.training.config import TrainingConfig
from regard.training.metrics_log import describe_weights
from regard.training.run_folder import RunFolder
from regard.training.stored_runs.run_summary import RunSummary, summarize_run
from regard.verified_files import MAX_CONFIG, read_bytes

CARD = "README.md"
OWN_WORDS = "<!-- Written by Regard when training ends; without this line it is kept as it is. -->"
"""The last line of a card that nobody has made their own."""
MAX_LABELS = 20
"""Labels that a card lists."""


def card_rows(run: RunSummary) -> list[tuple[str, str]]:
    """What a run is, as rows of a name and a value."""
    options = {part: changed_options(run, part) for part in ("model", "training")}
    imported = run.status == "imported"
    rows = [
        ("task", run.task),
        ("status", run.status),
        ("data", "" if imported else _data(run)),
        ("labels", _labels(run.data.get("labels"))),
        ("vocabulary", _counts(run.data.get("vocabularies"), "tokens")),
        ("pretrained", _pretrained(run)),
        ("model", "" if imported else _options(options["model"])),
        ("parameters", "" if run.parameters is None else format_count(run.parameters)),
        ("training", "" if imported else _training(run, options["training"])),
        ("validation", _metrics(run)),
        ("weights", _weights(run)),
        ("written", format_date(run.modified)),
        ("size", _sizes(run)),
    ]
    return [(name, value) for name, value in rows if value]


def model_card(run: RunSummary) -> str:
    """The card as a Markdown page."""
    rows = [row for row in card_rows(run) if row[0] not in ("status", "size")]
    summary = ""
    with suppress(RegardError):  # a task of a plug-in that is not installed here
        summary = f": {TASKS.row(run.task).summary}"
    name = printable(run.path.resolve().name)
    how = "imported into" if run.status == "imported" else "trained with"
    table = "\n".join(f"| {key} | {value.replace('|', '·')} |" for key, value in rows)
    return (
        f"# {name}\n\nA model {how} [Regard](https://github.com/regard-attention/regard)"
        f"{summary}.\n\n| | |\n| --- | --- |\n{table}\n\n"
        f"{_limits(run)}\n\n"
        f"```sh\nregard predict {name}\nregard show {name} --text …\nregard serve {name}\n```\n"
    )


def card_file(run: RunSummary) -> str:
    """The content of README.md: the card, and the line that says who has written it."""
    return f"{model_card(run)}\n{OWN_WORDS}\n"


def write_card(folder: RunFolder) -> None:
    """Write README.md into a run folder, unless it holds a text of the user's own."""
    before = _read_card(folder)
    card = card_file(summarize_run(folder.path))
    if before is None or (_is_ours(before) and before != card):
        write_text(folder.path / CARD, card)


def own_card(folder: RunFolder) -> str | None:
    """The README.md of a run folder, if it is a text of the user's own."""
    text = _read_card(folder)
    return None if text is None or _is_ours(text) else text


def _read_card(folder: RunFolder) -> str | None:
    """The README.md of a run folder; None without one, empty if it cannot be read."""
    try:
        return read_bytes(folder.path / CARD, MAX_CONFIG).decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    except (OSError, RegardError):
        return ""


def _is_ours(card: str) -> bool:
    return card.rstrip().endswith(OWN_WORDS)


def _limits(run: RunSummary) -> str:
    """What a reader of the card has to know about the model."""
    if run.status == "imported":
        return (
            "It was trained elsewhere: what it is good for, and where it fails, is in the "
            "description that it came with."
        )
    return (
        "The metrics are those of the validation data. What the model is good for, and where it "
        "fails, depends on the data above."
    )


def changed_options(run: RunSummary, part: str) -> dict[str, Any]:
    """The options of one part of the config that differ from the defaults of the task."""
    given = run.config.get(part)
    if not isinstance(given, dict):
        return {}
    try:
        spec = TASKS.row(run.task)
    except RegardError:
        return dict(given)
    config = {"data": spec.data, "model": spec.model, "training": TrainingConfig}[part]
    defaults = {field.name: field.default for field in fields(config)}
    defaults |= dict(spec.training_defaults)
    kept = {name: value for name, value in given.items() if value is not None}
    return {name: value for name, value in kept.items() if defaults.get(name) != value}


def differences(one: RunSummary, other: RunSummary) -> list[tuple[str, str, str]]:
    """What differs between two runs: name, value of the one, value of the other."""
    rows: list[tuple[str, str, str]] = []
    if one.task != other.task:
        rows.append(("task", one.task, other.task))
    for part in ("data", "model", "training"):
        left, right = (run.config.get(part) or {} for run in (one, other))
        for name in dict.fromkeys((*left, *right)):
            if left.get(name) != right.get(name):
                rows.append((name, _value(left.get(name)), _value(right.get(name))))
    names = dict.fromkeys(name for run in (one, other) for name in _metric_names(run))
    metrics = []
    for name in names:
        sides = [run.metric_and_value(name) for run in (one, other)]
        metrics.append((sides[0][0] or sides[1][0], sides[0][1], sides[1][1]))
    sizes = [
        ("parameters", _count(one.parameters), _count(other.parameters)),
        ("steps", _count(one.position.get("step")), _count(other.position.get("step"))),
        ("status", one.status, other.status),
    ]
    return rows + [row for row in (*metrics, *sizes) if row[1] != row[2]]


def format_size(size: int) -> str:
    """A number of bytes as people write it.

    >>> format_size(194_000_000), format_size(12_984), format_size(0)
    ('194 MB', '13 kB', '0 B')
    """
    for unit, bytes_per_unit in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= bytes_per_unit:
            value = size / bytes_per_unit
            return f"{value:.1f} {unit}" if value < 10 and unit != "kB" else f"{value:.0f} {unit}"
    return f"{size} B"


def format_date(seconds: float) -> str:
    """A time as date and time of the day."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def _data(run: RunSummary) -> str:
    sizes = run.data.get("sizes")
    counts = ""
    if isinstance(sizes, Mapping):
        counts = ", ".join(f"{format_count(int(n))} {name}" for name, n in sizes.items())
    return f"{run.files} ({counts})" if counts else run.files


def _pretrained(run: RunSummary) -> str:
    """Name and architecture of the pretrained model that it is, or began with."""
    source = (run.config.get("data") or {}).get("pretrained")
    if not isinstance(source, str):
        return ""
    sizes = run.architecture
    known = [f"{sizes[part]} {part}" for part in ("layers", "heads") if part in sizes]
    known += [f"width {sizes['width']}"] if "width" in sizes else []
    described = ", ".join([str(sizes.get("family", "")), *known]).strip(", ")
    return f"{Path(source).name} ({described})" if described else Path(source).name


def _labels(labels: Any) -> str:
    if not isinstance(labels, Mapping) or not labels:
        return ""
    listed = [
        f"{label} ({format_count(int(count))})" if count else str(label)
        for label, count in labels.items()
    ]
    more = f" and {len(listed) - MAX_LABELS} more" if len(listed) > MAX_LABELS else ""
    return ", ".join(listed[:MAX_LABELS]) + more


def _counts(counts: Any, what: str) -> str:
    if not isinstance(counts, Mapping):
        return ""
    return ", ".join(f"{name} {format_count(int(n))} {what}" for name, n in counts.items())


def _options(options: Mapping[str, Any]) -> str:
    named = (f"{name.replace('_', '-')} {_value(value)}" for name, value in options.items())
    return ", ".join(named) or "defaults"


def _training(run: RunSummary, options: Mapping[str, Any]) -> str:
    position = run.position
    done = []
    if isinstance(position.get("step"), int):
        done.append(f"{format_count(position['step'])} updates")
    if isinstance(position.get("epoch"), int):
        done.append(f"epoch {position['epoch'] + 1}")
    if isinstance(position.get("seconds"), int | float):
        done.append(format_duration(position["seconds"]))
    return "; ".join(part for part in (", ".join(done), _options(options)) if part)


def _metric_names(run: RunSummary) -> list[str]:
    return list((run.best or {}).get("metrics") or {})


def _metrics(run: RunSummary) -> str:
    shown = (run.metric(name, interval=True) for name in _metric_names(run))
    return ", ".join(text for text in shown if text)


def _weights(run: RunSummary) -> str:
    line = run.best or {}
    known = isinstance(line.get("step"), int) or isinstance(line.get("averaged"), list)
    return describe_weights(line) if known else ""


def _sizes(run: RunSummary) -> str:
    parts = ", ".join(f"{name} {format_size(n)}" for name, n in run.bytes.items() if n)
    return f"{format_size(run.size)} ({parts})"


def _value(value: Any) -> str:
    """The value of an option as people write it.

    >>> _value(False), _value(None), _value(["a", "b"])
    ('no', '–', 'a b')
    """
    if isinstance(value, list):
        return " ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "–" if value is None else str(value)


def _count(number: Any) -> str:
    return format_count(number) if isinstance(number, int) else "–"
