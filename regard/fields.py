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
    >>> document.at("looks").items(9)[0].at("layer").whole()
    Traceback (most recent call last):
    regard.errors.RegardError: trace.json: looks[0].layer: expected a whole number, got 'one'
    """

    value: Any
    file: str
    path: str = ""

    def wrong(self, expected: str) -> RegardError:
        """The error that this value is, which the caller raises."""
        seen = repr(self.value) if isinstance(self.value, str | int | float) else _kind(self.value)
        seen = seen if len(seen) <= 60 else seen[:57] + "…"
        return RegardError(
            f"{self.file}: {self.path or 'document'}: expected {expected}, got {seen}"
        )

    def only(self, *names: str) -> "Field":
        """Itself, an object with no names but these."""
        if not isinstance(self.value, Mapping):
            raise self.wrong("an object")
        for name in self.value:
            if name not in names:
                path = self.path or "document"
                raise RegardError(f"{self.file}: {path}: {unknown('field', name[:60], names)}")
        return self

    def at(self, name: str) -> "Field":
        """A value that must be there."""
        if name not in self.value:
            raise RegardError(f"{self.file}: {self.path or 'document'}: has no {name!r}")
        return self.get(name)

    def get(self, name: str) -> "Field":
        """A value that may be there, or None."""
        return Field(self.value.get(name), self.file, f"{self.path}.{name}".lstrip("."))

    def __bool__(self) -> bool:
        return self.value is not None

    def items(self, most: int) -> list["Field"]:
        """The members of a list of bounded length."""
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        if len(self.value) > most:
            raise RegardError(
                f"{self.file}: {self.path}: expected at most {most} members, got {len(self.value)}"
            )
        return [Field(v, self.file, f"{self.path}[{i}]") for i, v in enumerate(self.value)]

    def entries(self, most: int) -> Iterator[tuple[str, "Field"]]:
        """The names and values of an object of bounded size."""
        if not isinstance(self.value, Mapping):
            raise self.wrong("an object")
        if len(self.value) > most:
            raise RegardError(
                f"{self.file}: {self.path}: expected at most {most} names, got {len(self.value)}"
            )
        return ((name, self.get(name)) for name in self.value)

    def text(self) -> str:
        """A string."""
        if not isinstance(self.value, str):
            raise self.wrong("a string")
        return self.value

    def whole(self, least: int = 0, most: int = 2**53) -> int:
        """A whole number between two bounds."""
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self.wrong("a whole number")
        if not least <= self.value <= most:
            raise self.wrong(f"a whole number from {least} to {most}")
        return self.value

    def number(self) -> float:
        """A finite number."""
        if not isinstance(self.value, int | float) or isinstance(self.value, bool):
            raise self.wrong("a number")
        try:
            found = float(self.value)
        except OverflowError:
            found = math.inf
        if not math.isfinite(found):
            raise self.wrong("a finite number")
        return found

    def truth(self) -> bool:
        """True or false."""
        if not isinstance(self.value, bool):
            raise self.wrong("true or false")
        return self.value


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    return "a list" if isinstance(value, list) else "an object"
