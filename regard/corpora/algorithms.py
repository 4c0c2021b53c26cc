"""Algorithms to learn from examples: copy, reverse, sort and recall, generated on demand.

Copy and associative recall are the tasks of Graves, Wayne and Danihelka 2014
(https://arxiv.org/abs/1410.5401).
"""

from collections.abc import Iterator
from random import Random

from regard.corpora.built_in_corpus import (
    BuiltInCorpus,
    SplitExamples,
    SplitSizes,
    sample_distinct,
)
from regard.data.examples import Pair
from regard.errors import RegardError, unknown

ALGORITHMS = ("copy", "reverse", "sort", "recall")
SYMBOLS = 20
"""How many numbers there are, counted from 0; the keys of recall are letters."""

LENGTHS = (1, 10)
"""The shortest and longest sequence of training (pairs, for recall)."""

_KEYS = "abcdefghijklmnopqrstuvwxyz"


def make_problem(kind: str, length: int, random: Random, symbols: int = SYMBOLS) -> Pair:
    """A problem and its answer, symbols separated by spaces; recall lists pairs and queries a key.

    >>> make_problem("sort", 4, Random(0))
    Pair(source='12 13 1 8', target='1 8 12 13', where='')
    >>> make_problem("recall", 2, Random(0))
    Pair(source='m 13 y 1 ? y', target='1', where='')
    """
    if kind == "recall":
        return _recall(length, random, symbols)
    numbers = [random.randrange(symbols) for _ in range(length)]
    if kind == "copy":
        answer = numbers
    elif kind == "reverse":
        answer = numbers[::-1]
    elif kind == "sort":
        answer = sorted(numbers)
    else:
        raise RegardError(unknown("algorithm", kind, ALGORITHMS))
    return Pair(_join(numbers), _join(answer))


def _recall(length: int, random: Random, symbols: int) -> Pair:
    if length > len(_KEYS):
        raise RegardError(
            f"recall of {length} pairs: expected at most {len(_KEYS)}, one per letter"
        )
    keys = random.sample(_KEYS, length)
    values = [str(random.randrange(symbols)) for _ in keys]
    queried = random.randrange(length)
    shown = " ".join(f"{key} {value}" for key, value in zip(keys, values, strict=True))
    return Pair(f"{shown} ? {keys[queried]}", values[queried])


def _join(numbers: list[int]) -> str:
    return " ".join(map(str, numbers))


def endless_problems(
    kind: str, lengths: tuple[int, int] = LENGTHS, seed: int = 0, symbols: int = SYMBOLS
) -> Iterator[Pair]:
    """An endless stream of problems, their lengths uniform between two bounds (inclusive)."""
    shortest, longest = lengths
    if not 1 <= shortest <= longest:
        raise RegardError(
            f"lengths from {shortest} to {longest}: expected 1 <= shortest <= longest"
        )
    random = Random(f"{kind} {seed}")
    while True:
        yield make_problem(kind, random.randint(shortest, longest), random, symbols)


def sample_problems(
    sizes: SplitSizes, seed: int, kind: str = "copy", lengths: tuple[int, int] = LENGTHS
) -> SplitExamples:
    """Distinct problems; half of the test is longer than training, up to twice as long."""
    seen: set[str] = set()
    longest = 2 * lengths[1]
    if kind == "recall":
        longest = min(longest, len(_KEYS))
    trained = endless_problems(kind, lengths, seed)
    beyond = endless_problems(kind, (min(lengths[1] + 1, longest), longest), seed)
    longer = sizes.test // 2
    for split, count, stream in (
        ("train", sizes.train, trained),
        ("valid", sizes.valid, trained),
        ("test", sizes.test - longer, trained),
        ("test", longer, beyond),
    ):
        for pair in sample_distinct(stream.__next__, _source, count, seen):
            yield split, pair


def _source(pair: Pair) -> str:
    return pair.source


def _line(pair: Pair) -> tuple[str]:
    return (f"{pair.source}\t{pair.target}",)


CORPUS = BuiltInCorpus(
    sample_problems,
    size=10_000,
    suffixes=(".tsv",),
    lines=_line,
    header="source\ttarget\n",
    options={"kind": ALGORITHMS},
)
