"""What a run is: its options and its data, recorded in each of its tensor files.

Weights fit only the options and the data that they were trained with. So each file of tensors
records them, and using a file with other ones is an error that names what differs. The budget may
change, and files may be moved: of options that name files, only whether they are set is recorded.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.training.config import BUDGET_OPTIONS

FILE_OPTIONS = ("data", "valid", "valid_gold", "alignments", "vectors", "pretrained")
"""Data options that name files whose content a run depends on."""
PARTS = ("task", "data", "model", "training")


def run_identity(config: Mapping[str, Any], data: str | None) -> dict[str, Any]:
    """What tensor files record: the options of a config, and the digest of the prepared data."""
    parts = {name: config[name] for name in PARTS if name in config}
    for part in ("data", "training"):
        if isinstance(parts.get(part), Mapping):
            parts[part] = {
                name: _without_names(name, value)
                for name, value in parts[part].items()
                if name not in BUDGET_OPTIONS
            }
    return {"config": parts, "data": data}


def check_identity(
    about: Mapping[str, Any],
    identity: Mapping[str, Any],
    path: Path,
    defaults: Mapping[str, Any] | None = None,
) -> None:
    """Raise an error if a tensor file is of another run: it names what differs.

    `about` is what the file records. Parts of the config that `identity` lacks are not compared;
    options that the file lacks, because they were added later, have the values of `defaults`.
    """
    recorded, current = about.get("config"), identity.get("config")
    if isinstance(recorded, Mapping) and isinstance(current, Mapping):
        same = {name: value for name, value in recorded.items() if name in current}
        changed = changed_options(current, same, run_identity(defaults or {}, None)["config"])
        if changed:
            raise RegardError(
                f"{path}: was trained with other options than config.json has ({_list(changed)}): "
                f"restore config.json"
            )
    if identity.get("data") is not None and about.get("data") not in (None, identity["data"]):
        raise RegardError(
            f"{path}: was trained with other data than the run has in data/: restore that folder, "
            f"or train a new run with another --out"
        )


def changed_options(
    config: Mapping[str, Any], saved: Mapping[str, Any], defaults: Mapping[str, Any]
) -> list[str]:
    """Each option that differs, with both values; those of the budget may differ.

    >>> changed_options({"training": {"seed": 1}}, {"training": {"seed": 2}}, {})
    ['its seed is 2, not 1']
    >>> changed_options({"data": {"text": "body"}}, {"data": {"text": None}}, {})
    ['its text is the default, not body']
    >>> changed_options({"training": {"seed": 1}}, {"training": {}}, {"training": {"seed": 1}})
    []
    """
    before = _flatten(defaults) | _flatten(saved)
    return [
        f"its {name} is {_value(before.get(name))}, not {_value(value)}"
        for name, value in _flatten(config).items()
        if name not in BUDGET_OPTIONS and before.get(name) != value
    ]


def _value(value: Any) -> Any:
    return "the default" if value is None else value


def unknown_options(saved: Mapping[str, Any], config: Mapping[str, Any]) -> list[str]:
    """Options of a saved config that the complete config of a run does not have."""
    return sorted(_flatten(saved).keys() - _flatten(config).keys() - {"format"})


def _flatten(config: Mapping[str, Any]) -> dict[str, Any]:
    """The options of all parts of a config by name."""
    flat: dict[str, Any] = {}
    for name, value in config.items():
        flat |= value if isinstance(value, dict) else {name: value}
    return flat


def _without_names(name: str, value: Any) -> Any:
    return "files" if name in FILE_OPTIONS and value is not None else value


def _list(changed: list[str]) -> str:
    """The first few of them.

    >>> _list(["its width is 8, not 9", "its seed is 1, not 2"])
    'its width is 8, not 9; its seed is 1, not 2'
    """
    more = f"; and {len(changed) - 3} more" if len(changed) > 3 else ""
    return "; ".join(changed[:3]) + more
