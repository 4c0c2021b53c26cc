"""Open tables: names of built-in parts, and of those that other packages add.

A table has one row per name. A row is an object, or a reference "package.module:attribute" that is
imported when the row is first used. Another package adds rows by declaring entry points in the
table's group:

    [project.entry-points."regard.scores"]
    distance = "my_package.scores:Distance"

A plug-in that cannot be imported is named in a warning when somebody asks for it, and breaks
nothing else.
"""

import warnings
from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from regard.errors import RegardError, unknown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


class PluginWarning(UserWarning):
    """A plug-in of another package cannot be used."""


class Table(Mapping[str, T], Generic[T]):
    """What stands behind each name: built-in rows first, then those of installed plug-ins."""

    def __init__(self, what: str, group: str, rows: Mapping[str, T | str]) -> None:
        """Make a table.

        Args:
            what: what a row is, for messages: "score".
            group: the entry-point group of plug-ins: "regard.scores".
            rows: the built-in rows, in the order in which they are listed.
        """
        self.what, self.group = what, group
        self._rows: dict[str, T | str] = dict(rows)
        self._plugins: dict[str, Any] | None = None
        self._broken: set[str] = set()

    def __getitem__(self, name: str) -> T:
        """The row of this name; KeyError where there is none, or where its plug-in is broken."""
        if name in self._rows:
            row = self._rows[name]
            if isinstance(row, str):
                row = self._rows[name] = import_reference(row)
            return row
        plugin = self._installed().get(name)
        if plugin is None or name in self._broken:
            raise KeyError(name)
        try:
            self._rows[name] = plugin.load()
        except Exception as error:
            self._broken.add(name)
            warnings.warn(
                f"plug-in {name!r} ({plugin.value}, group {self.group}) is skipped: "
                f"{type(error).__name__}: {error}",
                PluginWarning,
                stacklevel=2,
            )
            raise KeyError(name) from error
        return self[name]

    def __iter__(self) -> Iterator[str]:
        """Names, without importing what stands behind them."""
        yield from self._rows
        yield from (
            name
            for name in self._installed()
            if name not in self._rows and name not in self._broken
        )

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        """Whether there is such a row, without importing it."""
        return name in self._rows or (name in self._installed() and name not in self._broken)

    def items(self) -> ItemsView[str, T]:
        """All rows that can be used; a broken plug-in is named in a warning and left out."""
        rows: dict[str, T] = {}
        for name in list(self):
            try:
                rows[name] = self[name]
            except KeyError:
                continue
        return rows.items()

    def values(self) -> ValuesView[T]:
        """All rows that can be used."""
        return dict(self.items()).values()

    def row(self, name: str) -> T:
        """The row of this name, or an error that names the nearest one."""
        try:
            return self[name]
        except KeyError:
            raise RegardError(unknown(self.what, name, self)) from None

    def resolve(self, name: str) -> T:
        """What a name or a reference "package.module:attribute" stands for.

        ValueError where there is nothing, since names are arguments of functions too.
        """
        try:
            return import_reference(name) if is_reference(name) else self.row(name)
        except RegardError as error:
            raise ValueError(str(error)) from error

    def register(self, name: str, row: T) -> None:
        """Add a row in this process; what a plug-in does for every process."""
        self._rows[name] = row

    def _installed(self) -> "Mapping[str, EntryPoint]":
        if self._plugins is None:
            self._plugins = {point.name: point for point in entry_points(group=self.group)}
        return self._plugins


def entry_points(group: str) -> "Iterable[EntryPoint]":
    """The entry points of a group, of all installed packages."""
    points: Iterable[EntryPoint] = _all_entry_points().select(group=group)
    return points


@cache
def _all_entry_points() -> Any:
    from importlib import metadata  # takes as long as the rest of a short command

    return metadata.entry_points()


def is_reference(name: str) -> bool:
    """Whether a name has the form of a reference.

    >>> is_reference("my_package.scores:distance"), is_reference("scaled_dot")
    (True, False)
    """
    module, colon, attribute = name.partition(":")
    parts = [*module.split("."), *attribute.split(".")]
    return bool(colon) and all(part.isidentifier() for part in parts)


def reference_to(value: Any) -> str:
    """The reference of a function or class, by which it is found again.

    ValueError, which says why, where there is none: a lambda, a function inside another one, or
    something that a notebook or the main script defines.

    >>> reference_to(import_reference)
    'regard.plugins:import_reference'
    """
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        raise ValueError(f"{value!r:.60} has no name to import it by: expected a function or class")
    move = "move it to the top of a module (a .py file) and import it from there"
    if "<" in name:
        kind = "a lambda" if name.endswith("<lambda>") else "defined inside a function"
        raise ValueError(f"{name} is {kind}, which cannot be found again: {move}")
    if module == "__main__":
        raise ValueError(
            f"{name} is defined in the notebook or script that runs, where a saved run does not "
            f"find it again: {move}"
        )
    reference = f"{module}:{name}"
    try:
        found = import_reference(reference)
    except RegardError as error:
        raise ValueError(str(error)) from error
    if found is not value:
        raise ValueError(f"{reference} is another object than this one: {move}")
    return reference


def import_reference(reference: str) -> Any:
    """What "package.module:attribute" names.

    >>> import_reference("math:sqrt")(9.0)
    3.0
    """
    module, _, attributes = reference.partition(":")
    try:
        found: Any = import_module(module)
        for attribute in attributes.split("."):
            found = getattr(found, attribute)
    except (ImportError, AttributeError) as error:
        raise RegardError(
            f"{reference}: cannot be imported ({error}): expected package.module:name of something "
            "that is installed or on PYTHONPATH"
        ) from error
    return found
