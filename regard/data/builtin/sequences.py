"""Algorithms to be learned from examples: copy, reverse, sort and recall, made as they are needed.

Copy and associative recall are the tasks of Graves, Wayne and Danihelka 2014
(https://arxiv.org/abs/1410.5401).
"""

from collections.abc import Iterator
from random import Random

from regard.data.builtin.parts import Made, Sizes, distinct
from regard.data.examples import Pair
from regard.errors import RegardError, unknown

KINDS = ("copy", "reverse", "sort", "recall")
SYMBOLS = 20
"""How many numbers there are, from 0; the keys of recall are letters."""

LENGTHS = (1, 10)
"""The shortest and longest sequence of training (pairs, for recall)."""

_KEYS = "abcdefghijklmnopqrstuvwxyz"


def sequence(kind: str, length: int, random: Random, symbols: int = SYMBOLS) -> Pair:
    """One problem and its answer, symbols between spaces; recall gives pairs and asks for one key.

    >>> sequence("sort", 4, Random(0))
    Pair(source='12 13 1 8', target='1 8 12 13', where='')
    >>> sequence("recall", 2, Random(0))
    Pair(source='m 13 y 1 ? y', target='1', where='')
    """
    if kind == "recall":
        return _recall(length, random, symbols)
    drawn = [random.randrange(symbols) for _ in range(length)]
    if kind == "copy":
        answer = drawn
    elif kind == "reverse":
        answer = drawn[::-1]
    elif kind == "sort":
        answer = sorted(drawn)
    else:
        raise RegardError(unknown("algorithm", kind, KINDS))
    return Pair(_spell(drawn), _spell(answer))


def _recall(length: int, random: Random, symbols: int) -> Pair:
    if length > len(_KEYS):
        raise RegardError(f"recall of {length} pairs: expected {len(_KEYS)} or fewer, one a letter")
    keys = random.sample(_KEYS, length)
    values = [str(random.randrange(symbols)) for _ in keys]
    asked = random.randrange(length)
    shown = " ".join(f"{key} {value}" for key, value in zip(keys, values, strict=True))
    return Pair(f"{shown} ? {keys[asked]}", values[asked])


def _spell(numbers: list[int]) -> str:
    return " ".join(map(str, numbers))


def endless(
    kind: str, lengths: tuple[int, int] = LENGTHS, seed: int = 0, symbols: int = SYMBOLS
) -> Iterator[Pair]:
    """Problems without end, their lengths drawn evenly between two bounds, both included."""
    shortest, longest = lengths
    if not 1 <= shortest <= longest:
        raise RegardError(
            f"lengths from {shortest} to {longest}: expected 1 or more, shortest first"
        )
    random = Random(f"{kind} {seed}")
    while True:
        yield sequence(kind, random.randint(shortest, longest), random, symbols)


def problems(
    sizes: Sizes, seed: int, kind: str = "copy", lengths: tuple[int, int] = LENGTHS
) -> Made:
    """Distinct problems; half of the test is longer than training, up to twice as long."""
    seen: set[str] = set()
    longest = 2 * lengths[1]
    if kind == "recall":
        longest = min(longest, len(_KEYS))
    trained = endless(kind, lengths, seed)
    beyond = endless(kind, (min(lengths[1] + 1, longest), longest), seed)
    longer = sizes.test // 2
    for part, count, drawn in (
        ("train", sizes.train, trained),
        ("valid", sizes.valid, trained),
        ("test", sizes.test - longer, trained),
        ("test", longer, beyond),
    ):
        for pair in distinct(drawn.__next__, _source, count, seen):
            yield part, pair


def _source(pair: Pair) -> str:
    return pair.source
