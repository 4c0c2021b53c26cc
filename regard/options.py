"""Options from config dataclasses: one name in Python, in a file and on the command line."""

import argparse
import ast
import inspect
import json
import math
import re
import textwrap
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

from regard.errors import RegardError, unknown

C = TypeVar("C")


class Parser(argparse.ArgumentParser):
    """A parser whose mistakes are one line each, with the nearest right name."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        """Raise what the command line prints; argparse would print its usage first."""
        found = message.removeprefix("unrecognized arguments: ")
        if found != message:
            name = found.split()[0]
            known = [option for option in self._option_string_actions if option.startswith("--")]
            raise RegardError(
                unknown("option", name, known).split(" Known:")[0] + f" See {self.prog} --help"
            )
        choice = re.fullmatch(
            r"argument (?:--)?(\w+): invalid choice: '(.*)' \(choose from (.*)\)", message
        )
        if choice:
            what, name, listed = choice.groups()
            known = [one.strip("' ") for one in listed.split(",")]
            raise RegardError(unknown(what, name, known))
        raise RegardError(f"{message}. See {self.prog} --help")


def add_options(parser: argparse.ArgumentParser, config: type, defaults: Mapping[str, Any]) -> None:
    """An option for each field of a config dataclass, with the field's docstring as its help."""
    hints, told = get_type_hints(config), docstrings(config)
    group = parser.add_argument_group(first_line(config))
    for field in fields(config):
        kind, _ = plain_type(hints[field.name])
        default = defaults.get(field.name, _default(field))
        shown = "" if default is None or kind is bool else f" (default: {default})"
        options: dict[str, Any] = {"help": told[field.name] + shown, "default": None}
        if kind is bool:
            options["action"] = argparse.BooleanOptionalAction
            if default is not None:
                options["help"] = f"{told[field.name]} (default: {'yes' if default else 'no'})"
        elif get_origin(kind) is list:
            options |= {"nargs": "+", "metavar": "FILE"}
        else:
            options |= {"type": kind, "metavar": kind.__name__.upper()}
        options["help"] = options["help"].replace("%", "%%")
        group.add_argument("--" + field.name.replace("_", "-"), dest=field.name, **options)


def positive(text: str) -> int:
    """A number of things, for argparse, which turns the error into one line."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 on, got {text!r}")
    return int(text)


def at_least(config: Any, **least: int) -> None:
    """Check that numbers of a config are as large as they must be; those not set pass."""
    for name, low in least.items():
        value = getattr(config, name)
        if value is not None and not value >= low:
            raise RegardError(f"option {name}: expected {low} or more, got {value}")


def share(config: Any, *names: str) -> None:
    """Check that numbers of a config are shares: from 0 on, and less than 1."""
    for name in names:
        if not 0 <= getattr(config, name) < 1:
            value = getattr(config, name)
            raise RegardError(f"option {name}: expected 0 or more and less than 1, got {value}")


def read_config(path: Path) -> dict[str, Any]:
    """The options that a TOML or JSON file holds, flat or in tables."""
    try:
        text = path.read_text("utf-8")
        found = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (OSError, ValueError) as error:
        raise RegardError(f"{path}: cannot be read as a config ({error})") from error
    if not isinstance(found, dict):
        raise RegardError(f"{path}: expected options by name, got a {type(found).__name__}")
    flat: dict[str, Any] = {}
    for name, value in found.items():
        flat |= value if isinstance(value, dict) else {name: value}
    return {name.replace("-", "_"): value for name, value in flat.items()}


def make(config: type[C], given: Mapping[str, Any]) -> C:
    """A config from options by name, each of the right type, or a line that says which is not."""
    hints = get_type_hints(config)
    chosen: dict[str, Any] = {}
    for field in fields(config):  # type: ignore[arg-type]
        if field.name in given:
            chosen[field.name] = _typed(field.name, given[field.name], hints[field.name])
    return config(**chosen)


def check_names(given: Mapping[str, Any], configs: Sequence[type], where: str) -> None:
    """Every name belongs to one of the configs."""
    known = [field.name for config in configs for field in fields(config)]
    for name in given:
        if name not in known:
            raise RegardError(f"{where}: {unknown('option', name, known).split(' Known:')[0]}")


def as_toml(parts: Mapping[str, Mapping[str, Any]]) -> str:
    """Options as a config file; those that are not set are left out."""
    lines = []
    for name, options in parts.items():
        lines.append(f"[{name}]")
        for key, value in options.items():
            if value is not None:
                lines.append(f"{key} = {_as_toml(value)}")
        lines.append("")
    return "\n".join(lines)


def _as_toml(value: Any) -> str:
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def docstrings(config: type) -> dict[str, str]:
    """The docstring below each field."""
    body = ast.parse(textwrap.dedent(inspect.getsource(config))).body[0]
    assert isinstance(body, ast.ClassDef)
    told = {field.name: "" for field in fields(config)}
    for statement, following in zip(body.body, body.body[1:], strict=False):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and isinstance(following, ast.Expr)
            and isinstance(following.value, ast.Constant)
        ):
            told[statement.target.id] = " ".join(str(following.value.value).split())
    return told


def first_line(config: type) -> str:
    """The first line of a class's docstring, without its full stop."""
    return (config.__doc__ or config.__name__).strip().splitlines()[0].rstrip(".")


def plain_type(hint: Any) -> tuple[Any, bool]:
    """The type without None, and whether None was allowed."""
    if get_origin(hint) in (Union, UnionType):
        kinds = [kind for kind in get_args(hint) if kind is not NoneType]
        return kinds[0], True
    return hint, False


def _default(field: Field[Any]) -> Any:
    return None if field.default is MISSING else field.default


def _typed(name: str, value: Any, hint: Any) -> Any:
    kind, optional = plain_type(hint)
    if value is None and optional:
        return None
    if get_origin(kind) is list:
        return [str(part) for part in (value if isinstance(value, list | tuple) else [value])]
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is str and isinstance(value, Path):
        return str(value)
    if type(value) is not kind:
        raise RegardError(
            f"option {name}: expected {kind.__name__}, got {value!r} ({type(value).__name__})"
        )
    return value
