"""Progress of long computations: silent by default, shown by whoever asks for it.

Code that takes long wraps what it iterates over in `track`. Whoever wants to show progress (a
terminal, a notebook) sets a reporter with `reporting`: a function that is called with the same
`Stage` when it begins, after every item, and when it ends. Stages may be nested.

>>> def show(stage: Stage) -> None:
...     print(stage.label, stage.done, "of", stage.total, "ended" if stage.ended else "")
>>> with reporting(show):
...     total = sum(track([3, 4], "adding"))
adding 0 of 2
adding 1 of 2
adding 2 of 2
adding 2 of 2 ended
"""

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(eq=False)
class Stage:
    """One part of a computation, and how far it is."""

    label: str
    """What is being done, as in "translating"."""
    total: int | None = None
    """Number of items, if it is known."""
    unit: str = ""
    """What the items are, in the plural: "lines"; empty if that says nothing to a user."""
    done: int = 0
    """Number of items that are done."""
    ended: bool = False
    """Whether it is over, also where an error ended it."""

    def advance(self, items: int = 1) -> None:
        """Report that further items are done."""
        self.done += items
        _report(self)


Reporter = Callable[[Stage], None]
_reporter: ContextVar[Reporter | None] = ContextVar("reporter", default=None)


@contextmanager
def reporting(reporter: Reporter | None) -> Iterator[None]:
    """Call `reporter` for all stages within; None keeps them silent."""
    token = _reporter.set(reporter)
    try:
        yield
    finally:
        _reporter.reset(token)


@contextmanager
def stage(label: str, total: int | None = None, unit: str = "") -> Iterator[Stage]:
    """A stage that its own code advances; of one step if it never does."""
    begun = Stage(label, total, unit)
    _report(begun)
    try:
        yield begun
    finally:
        begun.ended = True
        _report(begun)


def track(
    items: Iterable[T],
    label: str,
    total: int | None = None,
    unit: str = "",
    weight: Callable[[T], int] | None = None,
) -> Iterator[T]:
    """The items one by one; each one counts as done when the next is requested.

    Args:
        items: what is iterated over.
        label: what is being done with them.
        total: their number (default: their length, if they have one).
        unit: what they are, in the plural.
        weight: how much an item counts (default: 1 each).
    """
    if total is None and weight is None and isinstance(items, Sized):
        total = len(items)
    with stage(label, total, unit) as begun:
        for item in items:
            yield item
            begun.advance(1 if weight is None else weight(item))


def _report(current: Stage) -> None:
    reporter = _reporter.get()
    if reporter is not None:
        reporter(current)
