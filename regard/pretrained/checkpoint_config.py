"""The config.json of a pretrained model, read value by value with checks."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.models.model_options import MOST

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
"""Activations by their names in configs."""
MAX_ROWS = 10_000_000
"""Tokens or positions of a model."""


@dataclass(frozen=True)
class CheckpointConfig:
    """The values of a config.json."""

    path: Path
    values: Mapping[str, Any]

    @property
    def family(self) -> str:
        """The kind of architecture."""
        return str(self.values.get("model_type"))

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the model classes that wrote the weights."""
        classes = self.values.get("architectures") or []
        return tuple(map(str, classes)) if isinstance(classes, list) else ()

    def size(self, name: str, default: int | None = None) -> int:
        """A whole number from 1 on."""
        value = self.values.get(name)
        value = default if value is None else value
        most = (
            MAX_ROWS if name in ("vocab_size", "max_position_embeddings", "n_positions") else MOST
        )
        if type(value) is not int or not 1 <= value <= most:
            raise RegardError(
                f"{self.path}: {name}: expected a whole number from 1 to {most:,}, got "
                f"{str(value)[:40]}"
            )
        return value

    def number(self, name: str, default: float) -> float:
        """A finite number."""
        return self.finite(name, self.values.get(name, default))

    def finite(self, name: str, value: Any) -> float:
        """A value of the config, which must be a finite number."""
        if type(value) not in (int, float) or not abs(value) < math.inf or abs(value) > 1e300:
            raise RegardError(f"{self.path}: {name}: expected a number, got {str(value)[:40]}")
        return float(value)

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        value = self.values.get(name, default)
        if not isinstance(value, bool):
            raise RegardError(f"{self.path}: {name}: expected true or false, got {str(value)[:40]}")
        return value

    def head_size(self, width: int, heads: int) -> int:
        """The size of each head."""
        if width % heads:
            raise RegardError(f"{self.path}: {heads} heads do not divide a width of {width}")
        return width // heads

    def activation(self, name: str, default: str = "gelu") -> Any:
        """An activation by Regard's name."""
        value = self.values.get(name, default)
        if not isinstance(value, str) or value not in ACTIVATIONS:
            raise RegardError(
                f"{self.path}: {name} {str(value)[:40]!r} is not supported: expected "
                f"{', '.join(ACTIVATIONS)}"
            )
        return ACTIVATIONS[value]

    def refuse(self, name: str, expected: Any) -> None:
        """Raise an error unless the value is the expected one, or is not given."""
        value = self.values.get(name, expected)
        if value is not None and value != expected:
            raise RegardError(
                f"{self.path}: {name} {str(value)[:40]} is not supported: expected {expected}"
            )

    def labels(self, count: int) -> tuple[str, ...]:
        """The names of the labels in the order of the logits."""
        names = self.values.get("id2label")
        if not isinstance(names, dict):
            return tuple(f"LABEL_{number}" for number in range(count))
        ordered = tuple(str(names.get(str(number), "")) for number in range(count))
        if len(names) != count or "" in ordered or len(set(ordered)) < count:
            raise RegardError(
                f"{self.path}: id2label names {len(names)} labels, the weights have {count}: "
                f"expected one distinct name per label"
            )
        if any("\ud800" <= letter <= "\udfff" for name in ordered for letter in name):
            raise RegardError(f"{self.path}: id2label: a name is not Unicode text")
        return ordered
