"""Sets of labels: numbered in a stable order, saved as JSON."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from regard.atomic_files import write_text
from regard.errors import RegardError, unknown
from regard.verified_files import read_json


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels with their numbers.

    >>> labels = Labels.of(["spam", "10", "ham", "9", "spam"])
    >>> labels.names, labels.number("ham")
    (('9', '10', 'ham', 'spam'), 2)
    """

    names: tuple[str, ...]
    _numbers: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_numbers", {name: i for i, name in enumerate(self.names)})
        if len(self._numbers) < len(self.names):
            raise ValueError(f"labels are not distinct: {self.names}")

    @classmethod
    def of(cls, names: Iterable[str]) -> "Labels":
        """The distinct labels in order: O first, then numbers by value, then words."""
        return cls(tuple(sorted(set(names), key=_order)))

    def number(self, name: str, where: str = "") -> int:
        """The number of a label; a label that is not in the training data is an error."""
        if name in self._numbers:
            return self._numbers[name]
        place = f"{where}: " if where else ""
        raise RegardError(
            f"{place}{unknown('label', name, self.names)} (the labels of the training data)"
        )

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self._numbers

    def save(self, path: Path) -> None:
        """Write the names, in order, as a JSON array."""
        write_text(path, json.dumps(list(self.names), ensure_ascii=False, indent=1) + "\n")

    @classmethod
    def load(cls, path: Path, least: int = 0) -> "Labels":
        """Read what `save` wrote, at least so many names."""
        try:
            names = read_json(path)
        except OSError as error:
            raise RegardError(f"{path}: the labels cannot be read ({error})") from error
        if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
            raise RegardError(f"{path}: expected a JSON array of label names")
        if len(names) < least:
            raise RegardError(f"{path}: has {len(names)} labels: expected {least} or more")
        if len(set(names)) < len(names):
            twice = Counter(names).most_common(1)[0][0]
            raise RegardError(f"{path}: label {twice!r} is listed twice: expected distinct labels")
        return cls(tuple(names))


def _order(name: str) -> tuple[int, float, str]:
    if name == "O":
        return 0, 0.0, name
    try:
        value = float(name)
    except ValueError:
        return 2, 0.0, name
    # "nan" parses as a number but cannot be sorted as one.
    return (1, value, name) if value == value else (2, 0.0, name)
