"""How often n-grams of words occur in texts, and in the texts with each label."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import safetensors
import safetensors.numpy
from jaxtyping import Float, Int

from regard.data.tokenizers.tokenizer import SPECIAL
from regard.errors import RegardError
from regard.verified_files import check_regular

CHUNK = 10_000
"""Texts that are counted at once."""
MOST_NUMBERS = 1 << 24
"""Maximum size of the table of counts: of more n-grams, the most frequent ones are kept."""
MOST_TIMES = 2.0**53
"""More often than any n-gram occurs; sums of larger numbers could be infinite."""
MAX_FILE = 16 * MOST_NUMBERS
Counted = Iterable[tuple[np.ndarray, np.ndarray]]
"""Texts as words, and the numbers of their labels."""


@dataclass(frozen=True)
class NGramCounts:
    """Counts of n-grams, each of which is one number: its words w are the digits, Σ wᵢ vⁿ⁻ⁱ."""

    keys: Int[np.ndarray, "n"]
    """The n-grams, in ascending order."""
    counts: Float[np.ndarray, "n c"]
    """How often each occurs in texts with each label, and (in the last column) in all texts."""
    longest: int
    """Number of words of the longest n-grams that were counted."""

    @classmethod
    def of(cls, texts: Counted, vocabulary: int, longest: int, labels: int) -> "NGramCounts":
        """Count the n-grams of one to `longest` words of the `vocabulary`."""
        columns = labels + 1
        if vocabulary**longest * columns >= 1 << 63:
            raise RegardError(
                f"n-grams of {longest} words out of {vocabulary:,} cannot be numbered: choose "
                "a smaller word_ngrams or vocabulary"
            )
        cells, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
        rows = iter(texts)
        while chunk := list(islice(rows, CHUNK)):
            new = _cells(chunk, vocabulary, longest, columns)
            cells, places = np.unique(np.concatenate([cells, new]), return_inverse=True)
            ones = np.ones(len(new), np.int64)
            added = np.bincount(places, np.concatenate([counts, ones]), len(cells))
            counts = added.astype(np.int64)
        keys, rows_of_cells = np.unique(cells // columns, return_inverse=True)
        total = np.zeros(len(keys), np.int64)
        whole = cells % columns == labels
        total[rows_of_cells[whole]] = counts[whole]
        kept = np.sort(np.argsort(-total, kind="stable")[: MOST_NUMBERS // columns])
        place = np.full(len(keys), -1)
        place[kept] = np.arange(len(kept))
        chosen = place[rows_of_cells] >= 0
        table = np.zeros((len(kept), columns), np.float32)
        table[place[rows_of_cells[chosen]], cells[chosen] % columns] = counts[chosen]
        return cls(keys[kept], table, longest)

    def save(self, path: Path) -> None:
        """Write them to a file."""
        path.write_bytes(safetensors.numpy.save({"keys": self.keys, "counts": self.counts}))

    @classmethod
    def load(cls, path: Path, longest: int, labels: int) -> "NGramCounts":
        """Read what `save` wrote."""
        try:
            check_regular(path, MAX_FILE)
            kept = safetensors.numpy.load_file(path)
            keys, counts = kept["keys"], kept["counts"]
        except (OSError, KeyError, ValueError, TypeError, safetensors.SafetensorError) as error:
            raise RegardError(f"{path}: the counts of n-grams cannot be read ({error})") from error
        shapes_fit = keys.ndim == 1 and counts.shape == (len(keys), labels + 1)
        if not shapes_fit or keys.dtype != np.int64 or counts.dtype != np.float32:
            raise RegardError(
                f"{path}: expected int64 keys [n] and float32 counts [n, {labels + 1}]"
            )
        others = counts[:, -1:]
        within = (counts >= 0) & (counts <= others) & (others <= MOST_TIMES)
        if (keys[1:] <= keys[:-1]).any() or (keys < 0).any() or not within.all():
            raise RegardError(f"{path}: expected ascending keys and counts that fit together")
        return cls(keys, counts, longest)


def _cells(
    texts: Sequence[tuple[np.ndarray, np.ndarray]], vocabulary: int, longest: int, columns: int
) -> Int[np.ndarray, "m"]:
    """One number per occurrence of an n-gram and label: its key times `columns`, plus the label."""
    found = []
    for words, labels in texts:
        column = np.append(labels, columns - 1).astype(np.int64)
        keys = np.concatenate(list(ngram_keys(words, vocabulary, longest)))
        found.append((keys[:, None] * columns + column).ravel())
    return np.concatenate(found)


def ngram_keys(
    words: Int[np.ndarray, "t"], vocabulary: int, longest: int
) -> Iterable[Int[np.ndarray, "m"]]:
    """The numbers of the n-grams of a text, by their length; none with an unknown word.

    >>> list(ngram_keys(np.array([7, 8, 7]), 10, 2))
    [array([7, 8, 7]), array([78, 87])]
    """
    words = words.astype(np.int64)
    known = words >= len(SPECIAL)
    for n in range(1, longest + 1):
        size = max(0, len(words) - n + 1)
        keys, whole = np.zeros(size, np.int64), np.ones(size, bool)
        for i in range(n):
            keys = keys * vocabulary + words[i : i + size]
            whole &= known[i : i + size]
        yield keys[whole]
