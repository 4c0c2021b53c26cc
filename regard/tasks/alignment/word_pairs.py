"""The words of both sides, and all pairs of them that occur together in some sentence pair.

A table of all pairs of words would be mostly empty: only pairs that occur together get a cell. Cell
0 belongs to padding.
"""

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.atomic_files import write_text, write_whole
from regard.errors import RegardError
from regard.verified_files import MAX_JSON, check_regular, read_json

SIDES = ("target", "source")
"""Direction 0 predicts the target from the source, direction 1 the source from the target."""
LETTERS = 24
"""How many letters of a word are compared."""


class Sizes(NamedTuple):
    """The sizes of a model's tables."""

    cells: int
    words: tuple[int, int]
    """Words of target and source."""
    prefix_cells: int


class WordPairs:
    """Vocabularies and cells of a corpus, in the order of `SIDES`."""

    def __init__(
        self,
        vocabularies: Sequence[Sequence[str]],
        codes: Int[np.ndarray, " cells"],
        prefix_letters: int,
    ) -> None:
        """Make the record; `codes` are the sorted numbers of `encode`, after one for padding."""
        self.words = tuple(tuple(words) for words in vocabularies)
        self.numbers = tuple({word: i for i, word in enumerate(words)} for words in self.words)
        self.codes, self.prefix_letters = codes, prefix_letters

    @classmethod
    def of(
        cls, sides: Sequence[Iterable[Sequence[str]]], prefix_letters: int
    ) -> tuple["WordPairs", list[list[np.ndarray]], list[np.ndarray]]:
        """The word pairs of a corpus, its words by number, and the cells of each sentence pair."""
        texts = [list(side) for side in sides]
        vocabularies = [sorted({word for text in side for word in text}) for side in texts]
        numbers = [{word: i for i, word in enumerate(words)} for words in vocabularies]
        rows = [
            [np.array([known[word] for word in text], np.int64) for text in side]
            for side, known in zip(texts, numbers, strict=True)
        ]
        size = len(vocabularies[1])
        codes = [(t[:, None] * size + s).ravel() for t, s in zip(*rows, strict=True)]
        flat = np.concatenate([np.array([-1]), *codes])
        unique, cells = np.unique(flat, return_inverse=True)
        ends = np.cumsum([1, *(len(code) for code in codes)])
        split = [cells[start:end] for start, end in pairwise(ends)]
        return cls(vocabularies, unique, prefix_letters), rows, split

    @classmethod
    def load(cls, folder: Path, prefix_letters: int) -> "WordPairs":
        """What `save` wrote."""
        vocabularies = [_read_words(folder / f"{side}.json") for side in SIDES]
        path = folder / "cells.npy"
        try:
            check_regular(path)
            # mapped, so that no memory is taken for an array that is larger than the file
            codes = np.load(path, mmap_mode="r", allow_pickle=False)
            if codes.dtype != np.int64 or codes.ndim != 1 or not len(codes) or codes[0] != -1:
                raise ValueError("expected int64 numbers after -1")
            codes = np.array(codes)
            most = len(vocabularies[0]) * len(vocabularies[1])
            if bool((np.diff(codes) <= 0).any()) or int(codes[-1]) >= most:
                raise ValueError(f"expected sorted numbers below {most:,}")
        except (OSError, ValueError, EOFError) as error:
            raise RegardError(f"{path}: cannot be read ({error})") from error
        return cls(vocabularies, codes, prefix_letters)

    def save(self, folder: Path) -> None:
        """Write vocabularies as JSON, and the cells as an array."""
        for side, words in zip(SIDES, self.words, strict=True):
            write_text(folder / f"{side}.json", json.dumps({"words": words}, ensure_ascii=False))
        cells = folder / "cells.npy"
        write_whole(cells, lambda stream: np.save(stream, self.codes, allow_pickle=False))

    @property
    def sizes(self) -> Sizes:
        """The sizes of the tables."""
        words = len(self.words[0]), len(self.words[1])
        return Sizes(len(self.codes), words, len(self.prefix_codes))

    @cached_property
    def words_of_cells(self) -> tuple[np.ndarray, np.ndarray]:
        """Target word and source word of each cell."""
        target, source = np.divmod(np.maximum(self.codes, 0), max(1, len(self.words[1])))
        return target, source

    @cached_property
    def prefixes(self) -> tuple[dict[str, int], dict[str, int]]:
        """The prefixes of each side by number."""
        first, second = (
            {p: i for i, p in enumerate(sorted({w[: self.prefix_letters] for w in words}))}
            for words in self.words
        )
        return first, second

    def prefix_numbers(self, side: int, words: Sequence[str]) -> np.ndarray:
        """The number of the prefix of each word; -1 where it is unknown."""
        known = self.prefixes[side]
        return np.array([known.get(w[: self.prefix_letters], -1) for w in words], np.int64)

    @cached_property
    def prefixes_of_cells(self) -> tuple[np.ndarray, np.ndarray]:
        """Target prefix and source prefix of each cell."""
        first, second = (
            self.prefix_numbers(side, self.words[side])[self.words_of_cells[side]]
            for side in (0, 1)
        )
        return first, second

    @cached_property
    def _prefix_index(self) -> tuple[np.ndarray, np.ndarray]:
        target, source = self.prefixes_of_cells
        unique, cells = np.unique(target * len(self.prefixes[1]) + source, return_inverse=True)
        return unique, cells

    @property
    def prefix_codes(self) -> np.ndarray:
        """The sorted codes of pairs of prefixes."""
        return self._prefix_index[0]

    @property
    def prefix_cells(self) -> np.ndarray:
        """The number of the pair of prefixes of each cell."""
        return self._prefix_index[1]

    @cached_property
    def similar(self) -> Float[Tensor, " cells"]:
        """How similar the words of each cell are."""
        target, source = (spell(words) for words in self.words)
        return torch.from_numpy(similarity(target, source, *self.words_of_cells))

    def find_cells(self, codes: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """The cell of each code; 0 where the words never occurred together."""
        return find_sorted(self.codes, codes, missing=0)


def _read_words(path: Path) -> list[str]:
    try:
        state = read_json(path, MAX_JSON)
    except OSError as error:
        raise RegardError(f"{path}: cannot be read ({error.strerror or error})") from error
    words = state.get("words") if isinstance(state, dict) else None
    if (
        not isinstance(words, list)
        or not all(isinstance(word, str) and word for word in words)
        or len(set(words)) < len(words)
    ):
        raise RegardError(f"{path}: expected distinct words")
    return words


def find_sorted(known: np.ndarray, wanted: np.ndarray, missing: int) -> np.ndarray:
    """The places of numbers in a sorted array; `missing` where there is none.

    >>> find_sorted(np.array([2, 5, 9]), np.array([9, 2, 3]), -1)
    array([ 2,  0, -1])
    """
    unique, where = np.unique(wanted, return_inverse=True)  # neighbours are found faster
    places = np.searchsorted(known, unique).clip(max=max(0, len(known) - 1))
    found = known[places] == unique if len(known) else np.zeros(len(unique), bool)
    return np.where(found, places, missing)[where]


def spell(words: Sequence[str]) -> np.ndarray:
    """The first letters of each word as numbers, [n, letters + 1]; the last is the length."""
    table = np.zeros((len(words), LETTERS + 1), np.int32)
    for row, word in zip(table, words, strict=True):
        row[: min(LETTERS, len(word))] = [ord(letter) for letter in word[:LETTERS]]
        row[-1] = len(word)
    return table


def similarity(
    one: np.ndarray, other: np.ndarray, first: np.ndarray, second: np.ndarray
) -> np.ndarray:
    """The square of the share of the longer word that both begin with, by their numbers.

    >>> words, others = spell(["nation"]), spell(["nations", "house"])
    >>> similarity(words, others, np.array([0, 0]), np.array([0, 1])).round(3)
    array([0.735, 0.   ], dtype=float32)
    """
    shared = np.zeros(len(first), np.float32)
    alike = np.arange(len(first))
    for letter in range(LETTERS):
        left = one[first[alike], letter]
        alike = alike[(left == other[second[alike], letter]) & (left != 0)]
        if not len(alike):
            break
        shared[alike] += 1
    longest = np.maximum(one[first, -1], other[second, -1]).clip(min=1)
    result: np.ndarray = np.square(shared / longest.astype(np.float32))
    return result
