"""The test sentences of a comparison, which no system sees in training."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from itertools import chain
from typing import Any

from regard.compare.comparison_folder import ComparisonFolder
from regard.data import Summary, resolve
from regard.data.split import split_by_hash, split_key, split_running_text, write_split
from regard.errors import RegardError
from regard.options import make
from regard.tasks.registry import TaskSpec

SHARE = 0.1
"""The share of the data that is held out for the test, and again for validation."""
COLUMNS = ("source", "target", "text", "label", "condition")
"""Options that name columns of files; the files of a split have columns of the usual names."""


def hold_out_test(
    spec: TaskSpec,
    options: Mapping[str, Any],
    test: list[str] | None,
    folder: ComparisonFolder,
    log: Callable[[str], None],
) -> tuple[dict[str, Any], list[str] | None]:
    """Options of the training data, and the files of the test data.

    Without files for the test, a tenth of the data is held out once for all systems and seeds,
    and another tenth for validation if there is no validation data. Built-in data has a test
    split of its own.
    """
    given = dict(options)
    if given.get("data") is None or test is not None:
        return given, test
    if not folder.data.exists():
        data: Any = make(spec.data, given)
        examples: list[Any] = list(spec.read(data, resolve(given["data"]), Summary()))
        valid = 0.0 if given.get("valid") else SHARE
        if spec.running_text(data):
            assigned: Any = split_running_text(examples, valid, SHARE)
        else:
            keys = (split_key(example) for example in examples)
            assigned = split_by_hash(keys, valid, SHARE).assign(examples)
        if given.get("valid"):
            held = spec.read(data, resolve(given["valid"]), Summary())
            assigned = chain(assigned, (("valid", example) for example in held))
        counts = write_split(folder.data, assigned, "jsonl")
        held_out = ", ".join(f"{count:,} in {path.stem}" for path, count in counts.items())
        log(f"no --test: the data was split ({held_out})")
    folder.seal_or_verify(folder.data)
    files = {path.stem: [str(path)] for path in sorted(folder.data.iterdir())}
    for split in ("train", "valid", "test"):
        if split not in files:
            raise RegardError(
                f"too few examples: none is left for {split}: expected more of them, or files "
                "for --valid and --test"
            )
    known = {field.name for field in fields(spec.data)}
    if given.get("condition") is not None and "condition" in known:
        given["condition"] = "label"
    given = {name: value for name, value in given.items() if name not in COLUMNS[:4]}
    given["data"] = files["train"]
    given["valid"] = files["valid"]
    return given, files["test"]
