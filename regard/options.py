"""Options from config dataclasses: one name in Python, in a file and on the command line."""

import argparse
import ast
import inspect
import json
import math
import re
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from regard.errors import OptionError, RegardError, nearest_name, unknown
from regard.plugins import Table, import_reference, is_reference, reference_to
from regard.verified_files import MAX_CONFIG, parse_json, read_named

C = TypeVar("C")
COLUMN_OPTIONS = ("source", "target", "text", "label", "condition")
"""Data options that choose columns; a task has those that it reads."""


@dataclass(frozen=True)
class Bounds:
    """The least and the largest value of a number; it stands in the type of a config's field.

    `width: Annotated[int, at_least(1)] = 256`
    """

    low: int | float = -math.inf
    high: int | float = math.inf
    low_open: bool = False
    """Whether the least value itself is excluded."""
    high_open: bool = False

    def __contains__(self, value: int | float) -> bool:
        above = self.low < value if self.low_open else self.low <= value
        below = value < self.high if self.high_open else value <= self.high
        return above and below

    def __str__(self) -> str:
        """As in "expected 1 or more"."""
        low = f"more than {self.low:.15g}" if self.low_open else f"{self.low:.15g} or more"
        high = f"less than {self.high:.20g}" if self.high_open else f"at most {self.high:.15g}"
        if math.isinf(self.low):
            return high
        if math.isinf(self.high):
            return f"a finite number, {low}" if self.high_open else low
        return f"{low} and {high}"


def at_least(low: int | float) -> Bounds:
    """Bounds of a number that has a least value."""
    return Bounds(low)


def more_than(low: int | float) -> Bounds:
    """Bounds of a number above another."""
    return Bounds(low, low_open=True)


def between(low: int | float, high: int | float, *, high_open: bool = False) -> Bounds:
    """Bounds of a number between two others."""
    return Bounds(low, high, high_open=high_open)


PROPORTION = between(0, 1, high_open=True)
"""Bounds of a proportion that is less than all."""


@dataclass(frozen=True)
class OneOf:
    """Names of an open table, where plug-ins add rows; it stands in the type of a config's field.

    `attention: Annotated[str, OneOf("regard.attention.scores:SCORES")] = "additive"`
    """

    table: str
    """A reference to the table, imported when it is needed."""
    extra: tuple[str, ...] = ()
    """Further values that are no rows of the table, such as none."""
    pattern: str | None = None
    """A regular expression of values with arguments, such as top_k(4)."""
    references: bool = True
    """Whether package.module:name is accepted too."""

    def names(self) -> list[str]:
        """All values that can be listed."""
        table: Table[Any] = import_reference(self.table)
        return [*table, *(name for name in self.extra if name not in table)]

    def accepts(self, value: str) -> bool:
        """Whether the value is one of them."""
        if self.references and is_reference(value):
            import_reference(value)  # which says what is missing
            return True
        if self.pattern is not None and re.fullmatch(self.pattern, value):
            return True
        return value in self.names()


def check_fields(config: Any) -> None:
    """Check every field of a config against the bounds and choices in its type.

    A config calls this in its `__post_init__`, so that no wrong one can be made.
    """
    for name, hint in get_type_hints(type(config), include_extras=True).items():
        value = getattr(config, name)
        if value is not None and (problem := value_problem(value, hint)):
            raise OptionError(name, problem)


def value_problem(value: Any, hint: Any) -> str:
    """What is wrong with the value of a field of this type; empty where nothing is."""
    kind, rules = _rules(hint)
    if get_origin(kind) is Literal and value not in get_args(kind):
        return not_a_choice(value, [str(choice) for choice in get_args(kind)])
    for rule in rules:
        if isinstance(rule, Bounds) and value not in rule:
            return f"expected {rule}, got {value}"
        if isinstance(rule, OneOf) and not rule.accepts(value):
            return not_a_choice(value, rule.names())
    return ""


def not_a_choice(value: Any, known: Sequence[str]) -> str:
    """The problem of a value that is not one of some names.

    >>> not_a_choice("gruu", ["elman", "gru", "lstm"])
    "expected elman, gru or lstm, got 'gruu': did you mean 'gru'?"
    """
    listed = " or ".join([", ".join(known[:-1]), *known[-1:]]) if len(known) > 1 else known[0]
    nearest = nearest_name(value, known)
    hint = f": did you mean {nearest!r}?" if nearest else ""
    return f"expected {listed}, got {value!r}{hint}"


def choices(hint: Any) -> list[str]:
    """The values that a field may have, where they can be listed."""
    kind, rules = _rules(hint)
    if get_origin(kind) is Literal:
        return [str(value) for value in get_args(kind)]
    return next((rule.names() for rule in rules if isinstance(rule, OneOf)), [])


def _rules(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type without None, and the rules that it is annotated with."""
    rules: tuple[Any, ...] = ()
    while True:
        if get_origin(hint) is Annotated:
            rules = (*rules, *hint.__metadata__)
            hint = get_args(hint)[0]
        elif get_origin(hint) in (Union, UnionType):
            hint = next(kind for kind in get_args(hint) if kind is not NoneType)
        else:
            return hint, rules


NAMES_OF_TYPES = {"int": "a whole number", "float": "a number"}
"""What a value of a type is called in messages."""
METAVARS = {"str": "NAME", "int": "INT", "float": "NUMBER"}
"""What a value of a type is called in help texts."""


def add_options(
    parser: argparse.ArgumentParser,
    config: type,
    defaults: Mapping[str, Any],
    skip: Collection[str] = (),
    common: Mapping[str, Any] | None = None,
) -> None:
    """An option for each field of a config dataclass, with the field's docstring as its help.

    Args:
        parser: gets the options.
        config: the dataclass.
        defaults: defaults that differ from those of the fields, for the help.
        skip: fields without an option.
        common: other groups of options, by the names of the fields that belong there.
    """
    hints, help_texts = get_type_hints(config, include_extras=True), docstrings(config)
    own_group = parser.add_argument_group(first_line(config))
    for field in fields(config):
        if field.name in skip:
            continue
        group = (common or {}).get(field.name, own_group)
        hint = hints[field.name]
        kind, _ = plain_type(hint)
        default = defaults.get(field.name, _default(field))
        shown = "" if default is None or kind is bool else f" (default: {default})"
        options: dict[str, Any] = {"help": help_texts[field.name] + shown, "default": None}
        if kind is bool:
            options["action"] = argparse.BooleanOptionalAction
            if default is not None:
                options["help"] = (
                    f"{help_texts[field.name]} (default: {'yes' if default else 'no'})"
                )
        elif get_origin(kind) is list:
            options |= {"nargs": "+", "metavar": "FILE"}
        elif listed := choices(hint):
            options |= {"type": parse_field(hint), "metavar": "{" + ",".join(listed) + "}"}
        else:
            options |= {"type": parse_field(hint), "metavar": METAVARS.get(kind.__name__, "VALUE")}
        options["help"] = options["help"].replace("%", "%%")
        group.add_argument("--" + field.name.replace("_", "-"), dest=field.name, **options)


def parse_field(hint: Any) -> Callable[[str], Any]:
    """What reads the value of a field from the command line, for argparse, and checks it."""
    kind, _ = plain_type(hint)

    def parse(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            expected = NAMES_OF_TYPES.get(kind.__name__, kind.__name__)
            shown = text if len(text) < 30 else text[:29] + "…"
            raise argparse.ArgumentTypeError(f"expected {expected}, got {shown!r}") from None
        if problem := value_problem(value, hint):
            raise argparse.ArgumentTypeError(problem)
        return value

    return parse


def whole_number(low: int = 1, high: int = 10**9) -> Callable[[str], int]:
    """A type for argparse: a whole number with bounds, which the error names.

    >>> whole_number(1, 10)("7")
    7
    """

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:  # no number, or one of thousands of digits
            value = low - 1
        if not low <= value <= high:
            shown = text if len(text) < 30 else text[:29] + "…"
            raise argparse.ArgumentTypeError(
                f"expected a whole number from {low:,} to {high:,}, got {shown!r}"
            )
        return value

    return parse


def positive(text: str) -> int:
    """A number of things, for argparse, which turns the error into one line."""
    return whole_number(1)(text)


def random_seed(text: str) -> int:
    """A random seed, for argparse."""
    return whole_number(0, 2**63 - 1)(text)


def read_config(path: Path) -> dict[str, Any]:
    """The options that a TOML or JSON file holds, flat or in tables."""
    import tomllib

    try:
        text = read_named(path, MAX_CONFIG)
        found = parse_json(text) if path.suffix == ".json" else tomllib.loads(text)
    except RecursionError:
        raise RegardError(f"{path}: cannot be read as a config (nested too deeply)") from None
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
            raise RegardError(f"{where}: {unknown('option', name, known, listed=False)}")


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
    texts = {field.name: "" for field in fields(config)}
    for statement, following in zip(body.body, body.body[1:], strict=False):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and isinstance(following, ast.Expr)
            and isinstance(following.value, ast.Constant)
        ):
            texts[statement.target.id] = " ".join(str(following.value.value).split())
    return texts


def first_line(config: type) -> str:
    """The first line of a class's docstring, without its full stop."""
    return (config.__doc__ or config.__name__).strip().splitlines()[0].rstrip(".")


def plain_type(hint: Any) -> tuple[Any, bool]:
    """The type of a field's values without None, and whether None was allowed."""
    optional = get_origin(hint) in (Union, UnionType) or (
        get_origin(hint) is Annotated and plain_type(get_args(hint)[0])[1]
    )
    kind, _ = _rules(hint)
    if get_origin(kind) is Literal:
        kind = type(get_args(kind)[0])
    return kind, optional


def _default(field: Field[Any]) -> Any:
    return None if field.default is MISSING else field.default


def _typed(name: str, value: Any, hint: Any) -> Any:
    kind, optional = plain_type(hint)
    if value is None and optional:
        return None
    if get_origin(kind) is list:
        parts = value if isinstance(value, list | tuple) else [value]
        return [part if isinstance(part, str) else str(part) for part in parts]
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is str and isinstance(value, Path):
        return str(value)
    if kind is str and callable(value):
        try:
            value = reference_to(value)
        except ValueError as error:
            raise OptionError(name, str(error)) from error
    if type(value) is not kind:
        raise OptionError(name, f"expected {kind.__name__}, got {value!r} ({type(value).__name__})")
    if problem := value_problem(value, hint):
        raise OptionError(name, problem)
    return value
