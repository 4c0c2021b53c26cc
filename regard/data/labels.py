"""Sets of labels: numbered in a stable order, kept as JSON."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from regard.errors import RegardError, unknown
from regard.files import write_text


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
        """The number of a label; one that training never saw is an error."""
        if name in self._numbers:
            return self._numbers[name]
        place = f"{where}: " if where else ""
        raise RegardError(
            f"{place}{unknown('label', name, self.names)} (those of the training data)"
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
    def load(cls, path: Path) -> "Labels":
        """Read what `save` wrote."""
        try:
            names = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise RegardError(f"{path}: labels cannot be read ({error})") from error
        if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
            raise RegardError(f"{path}: expected a JSON array of label names")
        if len(set(names)) < len(names):
            raise RegardError(f"{path}: a label stands there twice")
        return cls(tuple(names))


def _order(name: str) -> tuple[int, float, str]:
    if name == "O":
        return 0, 0.0, name
    try:
        value = float(name)
    except ValueError:
        return 2, 0.0, name
    return (1, value, name) if value == value else (2, 0.0, name)
