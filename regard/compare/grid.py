"""The grid of a comparison: every combination of the varied options, with every seed."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import Any, get_origin, get_type_hints

from regard.compare.cell_budget import RESERVED, Budget
from regard.errors import OptionError, RegardError, unknown
from regard.options import parse_field, plain_type, value_problem
from regard.tasks.registry import TaskSpec
from regard.training.config import TrainingConfig
from regard.training.run import make_configs
from regard.verified_files import json_digest

MAX_CELLS = 1000
"""Trainings that one comparison may have."""
YES_OR_NO = {"yes": True, "true": True, "no": False, "false": False}


@dataclass(frozen=True)
class System:
    """One combination of the varied options, which is trained with several seeds."""

    varied: Mapping[str, Any]
    options: Mapping[str, Any]
    """All options of its training but the seed."""

    @property
    def label(self) -> str:
        """The varied options as people read them.

        >>> System({"model": "recurrent", "input_feeding": False}, {}).label
        'model recurrent, input-feeding no'
        """
        shown = {True: "yes", False: "no"}
        parts = [
            f"{name.replace('_', '-')} {shown[value] if isinstance(value, bool) else value}"
            for name, value in self.varied.items()
        ]
        return ", ".join(parts)

    @property
    def slug(self) -> str:
        """A name for files that no other system has."""
        words = re.sub(r"[^A-Za-z0-9_.]+", "-", self.label).strip("-")[:60]
        return f"{words}-{json_digest(dict(self.varied))[:6]}"


@dataclass(frozen=True)
class Cell:
    """One training: a system with a seed."""

    system: System
    seed: int

    @property
    def name(self) -> str:
        """The name of its files."""
        return f"{self.system.slug}-seed-{self.seed}"

    @property
    def label(self) -> str:
        """What it is, for messages."""
        return f"{self.system.label}, seed {self.seed}"


@dataclass(frozen=True)
class Grid:
    """The systems of a comparison, and combinations that no model can have."""

    systems: tuple[System, ...]
    impossible: Mapping[str, str]
    """The reason by the label of the combination."""


def parse_vary(spec: TaskSpec, words: Sequence[str]) -> dict[str, list[Any]]:
    """The varied options from the command line, each as option=value,value.

    A wrong name or value is an error that names the nearest right one.
    """
    vary: dict[str, list[Any]] = {}
    for word in words:
        name, equals, listed = word.partition("=")
        name = name.strip().removeprefix("--").replace("-", "_")
        if not equals or not listed:
            raise OptionError(
                "vary", f"expected option=value,value, as in attention=dot,additive, got {word!r}"
            )
        hint = _hint(spec, name)
        values = [_parse(name, value.strip(), hint) for value in _split(listed)]
        vary[name] = [*vary.get(name, []), *values]
    return vary


def make_grid(
    spec: TaskSpec, fixed: Mapping[str, Any], vary: Mapping[str, Sequence[Any]], budget: Budget
) -> Grid:
    """All combinations; those that do not fit together are kept apart with the reason."""
    if not vary:
        raise OptionError("vary", "nothing varies: expected option=value,value")
    for name, values in vary.items():
        _check_values(spec, name, values)
        if name in fixed:
            raise OptionError(name, f"is varied, so it cannot be {fixed[name]!r} everywhere")
    systems, impossible = list[System](), dict[str, str]()
    if (count := _product(len(values) for values in vary.values())) > MAX_CELLS:
        raise OptionError("vary", f"{count:,} combinations: at most {MAX_CELLS:,} can be trained")
    for values in product(*vary.values()):
        varied = dict(zip(vary, values, strict=True))
        options = {**fixed, **varied}
        system = System(varied, {**options, **budget.options(spec, options)})
        try:
            make_configs(spec, system.options)
        except (RegardError, ValueError) as error:
            impossible[system.label] = str(error)
        else:
            systems.append(system)
    if not systems:
        raise RegardError(f"no combination can be trained: {next(iter(impossible.values()))}")
    return Grid(tuple(systems), impossible)


def make_cells(systems: Sequence[System], seeds: int) -> list[Cell]:
    """Every system with the first seed, then with the second …: a table appears early."""
    cells = [Cell(system, seed) for seed in range(1, seeds + 1) for system in systems]
    if len(cells) > MAX_CELLS:
        raise OptionError(
            "seeds", f"{len(cells):,} trainings: at most {MAX_CELLS:,}; vary less, or fewer seeds"
        )
    return cells


def _hint(spec: TaskSpec, name: str) -> Any:
    hints = {
        field.name: get_type_hints(config, include_extras=True)[field.name]
        for config in (spec.data, spec.model, TrainingConfig)
        for field in fields(config)
    }
    if name in RESERVED:
        raise OptionError("vary", f"{name} cannot vary: {RESERVED[name]}")
    if name not in hints:
        raise OptionError("vary", unknown("option", name, hints, listed=False))
    if get_origin(plain_type(hints[name])[0]) is list:
        raise OptionError("vary", f"{name} cannot vary: all systems need the same data")
    return hints[name]


def _parse(name: str, text: str, hint: Any) -> Any:
    kind, _ = plain_type(hint)
    if kind is bool:
        if text.lower() not in YES_OR_NO:
            raise OptionError(name, f"expected yes or no, got {text!r}")
        return YES_OR_NO[text.lower()]
    try:
        return parse_field(hint)(text)
    except Exception as error:
        raise OptionError(name, str(error)) from None


def _check_values(spec: TaskSpec, name: str, values: Sequence[Any]) -> None:
    hint = _hint(spec, name)
    if isinstance(values, str) or len(values) < 2:
        raise OptionError("vary", f"{name}: expected two values or more, got {values!r}")
    if len({repr(value) for value in values}) < len(values):
        raise OptionError("vary", f"{name}: a value occurs twice")
    for value in values:
        if value is not None and (problem := value_problem(value, hint)):
            raise OptionError(name, problem)


def _split(listed: str) -> list[str]:
    """Values between commas, but not between those inside brackets, as in top_k(4)."""
    return [part for part in re.split(r",(?![^(]*\))", listed) if part.strip()]


def _product(counts: Any) -> int:
    total = 1
    for count in counts:
        total *= count
    return total
