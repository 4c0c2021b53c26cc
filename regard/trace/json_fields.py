"""Reading plain JSON values strictly: every error says where it is and what was expected."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from regard.errors import RegardError, unknown


@dataclass(frozen=True)
class Field:
    """A value of a document, with the path that leads to it.

    >>> document = Field({"looks": [{"layer": "one"}]}, "trace.json")
    >>> document.required("looks").items(9)[0].required("layer").integer()
    Traceback (most recent call last):
    regard.errors.RegardError: trace.json: looks[0].layer: expected a whole number, got 'one'
    """

    value: Any
    file: str
    path: str = ""

    def wrong(self, expected: str) -> RegardError:
        """The error for a value that is not what was expected; the caller raises it."""
        seen = (
            repr(self.value)
            if isinstance(self.value, str | int | float)
            else _type_name(self.value)
        )
        seen = seen if len(seen) <= 60 else seen[:57] + "…"
        return RegardError(
            f"{self.file}: {self.path or 'document'}: expected {expected}, got {seen}"
        )

    def check_names(self, *names: str) -> None:
        """Raise unless this is an object with no other names than these."""
        if not isinstance(self.value, Mapping):
            raise self.wrong("an object")
        for name in self.value:
            if name not in names:
                path = self.path or "document"
                raise RegardError(f"{self.file}: {path}: {unknown('field', name[:60], names)}")

    def required(self, name: str) -> "Field":
        """A member that must be there."""
        if name not in self.value:
            raise RegardError(f"{self.file}: {self.path or 'document'}: has no {name!r}")
        return self.optional(name)

    def optional(self, name: str) -> "Field":
        """A member that may be missing: then its value is None, and it counts as false."""
        return Field(self.value.get(name), self.file, f"{self.path}.{name}".lstrip("."))

    def __bool__(self) -> bool:
        return self.value is not None

    def items(self, limit: int) -> list["Field"]:
        """The members of a list of bounded length."""
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        if len(self.value) > limit:
            raise RegardError(
                f"{self.file}: {self.path}: expected at most {limit} members, got {len(self.value)}"
            )
        return [Field(v, self.file, f"{self.path}[{i}]") for i, v in enumerate(self.value)]

    def entries(self, limit: int) -> Iterator[tuple[str, "Field"]]:
        """The names and values of an object of bounded size."""
        if not isinstance(self.value, Mapping):
            raise self.wrong("an object")
        if len(self.value) > limit:
            raise RegardError(
                f"{self.file}: {self.path}: expected at most {limit} names, got {len(self.value)}"
            )
        return ((name, self.optional(name)) for name in self.value)

    def string(self) -> str:
        """A string."""
        if not isinstance(self.value, str):
            raise self.wrong("a string")
        return self.value

    def integer(self, low: int = 0, high: int = 2**53) -> int:
        """A whole number between two bounds."""
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self.wrong("a whole number")
        if not low <= self.value <= high:
            raise self.wrong(f"a whole number from {low} to {high}")
        return self.value

    def number(self) -> float:
        """A finite number."""
        if not isinstance(self.value, int | float) or isinstance(self.value, bool):
            raise self.wrong("a number")
        try:
            number = float(self.value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self.wrong("a finite number")
        return number

    def boolean(self) -> bool:
        """True or false."""
        if not isinstance(self.value, bool):
            raise self.wrong("true or false")
        return self.value


def _type_name(value: Any) -> str:
    if value is None:
        return "nothing"
    return "a list" if isinstance(value, list) else "an object"
