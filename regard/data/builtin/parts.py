"""A built-in corpus in its parts: sizes, distinct examples, and the records that hold them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from regard.data.examples import Example, Pair
from regard.errors import RegardError

E = TypeVar("E")

SMALLEST = 100
"""The fewest training examples of a built-in corpus: fewer would not show every word once."""

MOST_HELD_OUT = 2_000
"""The most examples of a validation or test part."""

PATIENCE = 50_000
"""So many draws in a row without a new example mean that there are no more."""

Made = Iterator[tuple[str, Example]]
"""Examples, each with the part that it belongs to, part after part."""


@dataclass(frozen=True, slots=True)
class AlignedPair(Pair):
    """A sentence pair with its gold links between words counted from 0, source first."""

    links: tuple[tuple[int, int], ...] = ()


class Sizes(NamedTuple):
    """How many examples each part has."""

    train: int
    valid: int
    test: int


@dataclass(frozen=True, slots=True)
class Splits:
    """A corpus: ``pairs`` are minimal pairs, two after two, where the task has them."""

    train: list[Example] = field(default_factory=list)
    valid: list[Example] = field(default_factory=list)
    test: list[Example] = field(default_factory=list)
    pairs: list[Example] = field(default_factory=list)


def sizes(size: int) -> Sizes:
    """``size`` examples to train on, and a tenth of it (2,000 at most) to validate and to test."""
    if size < SMALLEST:
        raise RegardError(
            f"a built-in corpus of {size} examples: expected {SMALLEST} or more, "
            "so that training shows every word of the test"
        )
    held_out = min(size // 10, MOST_HELD_OUT)
    return Sizes(size, held_out, held_out)


def distinct(
    draw: Callable[[], E | None], key: Callable[[E], str], count: int, seen: set[str]
) -> Iterator[E]:
    """``count`` examples whose keys are new; a draw of None is one that does not fit."""
    found = 0
    failures = 0
    while found < count:
        example = draw()
        if example is None or (name := key(example)) in seen:
            failures += 1
            if failures > PATIENCE:
                raise RegardError(
                    f"the built-in corpus has no more than {found} examples of this kind, "
                    f"{count} were asked for: ask for a smaller size"
                )
            continue
        failures = 0
        seen.add(name)
        found += 1
        yield example
