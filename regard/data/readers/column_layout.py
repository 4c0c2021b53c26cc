"""How the columns of a file were understood: which column plays which role."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.data.readers.columns import Role


@dataclass(frozen=True, slots=True)
class Column:
    """One column that is read: what for, its number from 1, its name.

    >>> print(Column("text", 2, "comment"), Column("label", 3), Column("text", name="quote"))
    text = column 2 "comment" label = column 3 text = "quote"
    """

    role: str
    number: int | None = None
    """None where columns have names but no order, as in JSON."""
    name: str | None = None
    """None where the file has no header."""

    def __str__(self) -> str:
        place = [] if self.number is None else [f"column {self.number}"]
        name = [] if self.name is None else [f'"{_shorten(self.name)}"']
        return f"{self.role} = {' '.join(place + name)}"


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of one file that are read."""

    form: str
    """The format: tsv, csv, jsonl, parquet, hub, memory, conll, fasttext or text."""
    columns: tuple[Column, ...]
    chosen: bool = False
    """Whether the user chose every one of these columns."""

    @property
    def without_header(self) -> bool:
        """Whether this is a table that could have a header and has none."""
        return self.form in ("tsv", "csv") and not any(c.name for c in self.columns)

    def __str__(self) -> str:
        """As in `text = column 1, label = column 2 (no header)`."""
        return ", ".join(map(str, self.columns)) + " (no header)" * self.without_header


def table_layout(
    form: str, roles: Sequence[Role], indices: Sequence[int], names: Sequence[str] | None
) -> Layout:
    """The layout of a table: the index of each role's column, and all names if there are any."""
    numbered = form in ("tsv", "csv") or names is None
    columns = tuple(
        Column(role.option, index + 1 if numbered else None, names[index] if names else None)
        for role, index in zip(roles, indices, strict=True)
    )
    return Layout(form, columns, all(role.chosen is not None for role in roles))


def _shorten(name: str, most: int = 40) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
