"""What a built-in corpus is: how it is sampled, into which splits, and which files it becomes."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

from regard.data.examples import Example
from regard.errors import RegardError

E = TypeVar("E")

SMALLEST_SIZE = 100
"""The fewest training examples of a built-in corpus: fewer would not show every word once."""

LARGEST_HELD_OUT_SIZE = 2_000
"""The most examples of a validation or test split."""

MAX_FAILURES = 50_000
"""After so many samples in a row without a new example, there are taken to be no more."""

SplitExamples = Iterator[tuple[str, Example]]
"""Pairs of the name of a split and one of its examples, split after split."""


class SplitSizes(NamedTuple):
    """How many examples each split has."""

    train: int
    valid: int
    test: int


@dataclass(frozen=True)
class BuiltInCorpus:
    """A row of `CORPORA`: what samples the examples of a corpus, and the files that hold them."""

    sample: Callable[..., SplitExamples]
    """The examples, from the sizes of the splits, a seed and the options of this corpus."""
    size: int
    """The default number of training examples."""
    suffixes: tuple[str, ...]
    """Endings of the files of each split, such as `.en` and `.fr`."""
    lines: Callable[[Any], tuple[str, ...]]
    """What each of these files holds for one example."""
    header: str = ""
    """The column names, if the last of these files is a table."""
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Options of `sample` with their allowed values, the default first."""


@dataclass(frozen=True, slots=True)
class CorpusSplits:
    """The examples of a corpus by split; `pairs` are minimal pairs, where a corpus has them."""

    train: list[Example] = field(default_factory=list)
    valid: list[Example] = field(default_factory=list)
    test: list[Example] = field(default_factory=list)
    pairs: list[Example] = field(default_factory=list)


def split_sizes(size: int) -> SplitSizes:
    """``size`` training examples, and a tenth of it (at most 2,000) for validation and for test."""
    if size < SMALLEST_SIZE:
        raise RegardError(
            f"a built-in corpus of {size} examples: expected {SMALLEST_SIZE} or more, "
            "so that every word of the test occurs in training"
        )
    held_out = min(size // 10, LARGEST_HELD_OUT_SIZE)
    return SplitSizes(size, held_out, held_out)


def is_held_out(first: str, second: str) -> bool:
    """Whether training never combines two words: one combination in eight, whatever the seed."""
    return crc32(f"{first} {second}".encode()) % 8 == 0


def sample_distinct(
    sample: Callable[[], E | None], key: Callable[[E], str], count: int, seen: set[str]
) -> Iterator[E]:
    """Sample until there are ``count`` examples with new keys, which are added to ``seen``.

    ``sample`` returns None for an example that does not fit.
    """
    accepted = 0
    failures = 0
    while accepted < count:
        example = sample()
        if example is None or (name := key(example)) in seen:
            failures += 1
            if failures > MAX_FAILURES:
                raise RegardError(
                    f"the built-in corpus has only {accepted} different examples for a split of "
                    f"{count}: choose a smaller size"
                )
            continue
        failures = 0
        seen.add(name)
        accepted += 1
        yield example
