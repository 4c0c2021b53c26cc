"""A corpus in three parts, by a hash of the source: equal sources are never parted."""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from regard.data.examples import Example, Labelled, Line, Pair
from regard.errors import RegardError

PARTS = ("train", "valid", "test")


@dataclass(frozen=True, slots=True)
class Split:
    """Where the parts end: keys hash to 0…2^64, the lowest are `test`, then `valid`, then `train`.

    Nothing but the key and the seed decides, so that a corpus read again, in another order or with
    lines added, falls apart in the same way.
    """

    test: int
    valid: int
    seed: int = 0

    def part(self, key: str) -> str:
        """The part that an example with this key belongs to."""
        place = place_of(key, self.seed)
        return "test" if place < self.test else "valid" if place < self.valid else "train"


def split_by(
    keys: Iterable[str],
    valid: float = 0.05,
    test: float = 0.0,
    most: int = 2000,
    seed: int = 0,
) -> Split:
    """Set aside shares of the distinct keys for `valid` and `test`: at least one key each (unless
    the share is 0), and at most `most`.

    >>> split = split_by([str(i) for i in range(1000)], valid=0.1, test=0.1)
    >>> parts = [split.part(str(i)) for i in range(1000)]
    >>> parts.count("valid"), parts.count("test"), parts.count("train")
    (100, 100, 800)
    """
    if not (0 <= valid < 1 and 0 <= test < 1 and valid + test < 1):
        raise RegardError(f"shares of {valid} for valid and {test} for test leave none to train on")
    places = np.unique(np.fromiter((place_of(key, seed) for key in keys), np.uint64))
    aside = [
        min(max(round(share * len(places)), 1), most) if share else 0 for share in (test, valid)
    ]
    if sum(aside) >= len(places):
        raise RegardError(
            f"{len(places)} different examples cannot be split in {1 + sum(n > 0 for n in aside)} "
            "parts: more are needed"
        )
    edges = [int(places[n]) for n in (aside[0], aside[0] + aside[1])]
    return Split(edges[0] if aside[0] else 0, edges[1] if sum(aside) else 0, seed)


def key_of(example: Example) -> str:
    """What must stay together: the source sentence, the text, the words."""
    if isinstance(example, Pair):
        return example.source
    if isinstance(example, (Labelled, Line)):
        return example.text if isinstance(example.text, str) else example.where
    return " ".join(example.words) if isinstance(example.words, tuple) else example.where


def place_of(key: str, seed: int = 0) -> int:
    """A number in 0…2^64 that the key alone decides, for each seed another."""
    salted = blake2b(key.encode(), digest_size=8, salt=(seed % 2**64).to_bytes(8, "little"))
    return int.from_bytes(salted.digest(), "little")
