"""N-gram models of running text: interpolated Kneser–Ney with three discounts per length.

Chen and Goodman, 1999, https://doi.org/10.1006/csla.1999.0128
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import safetensors
import safetensors.numpy
from jaxtyping import Float, Int

from regard.errors import RegardError
from regard.verified_files import check_regular

MOST_NGRAMS = 1 << 24
"""Maximum number of n-grams: they take 16 bytes each."""
MAX_FILE = 24 * MOST_NGRAMS
"""With the rows of single words."""
MOST_WORDS = 1 << 25
"""Maximum number of words that are counted."""
USUAL_DISCOUNTS = (0.5, 1.0, 1.5)
"""Discounts where a text is too small to estimate them."""


@dataclass(frozen=True)
class KneserNey:
    """p(w | h) = share(h w) + backoff(h) · p(w | h without its first word).

    Every n-gram has a row: a single word its number, a longer one `vocabulary` plus its place in
    `keys`. A key is the row of all words but the last, times the vocabulary, plus the last word, so
    that keys ascend, and the words that followed a context stand together.
    """

    keys: Int[np.ndarray, "m"]
    shares: Float[np.ndarray, "m"]
    """What is left of the probability of each n-gram given its context after discounting."""
    backoffs: Float[np.ndarray, "r"]
    """The mass that each row, as a context, leaves to shorter contexts; 1 where nothing followed
    it."""
    words: Float[np.ndarray, "v"]
    """Probability of each word without context."""
    longest: int
    """Number of words of the longest n-grams."""

    @classmethod
    def of(cls, text: Int[np.ndarray, "t"], vocabulary: int, longest: int) -> "KneserNey":
        """Estimate it from a text of word numbers.

        Where there are too many n-grams, they are shorter; where there is too much text, its end is
        not counted.
        """
        text = text[:MOST_WORDS].astype(np.int64)
        rows, places, sizes = [text], [np.zeros(0, np.int64)], [vocabulary]
        keys: list[np.ndarray] = []
        for length in range(2, min(longest, len(text)) + 1):
            found = rows[-1][:-1] * vocabulary + text[length - 1 :]
            unique, first, inverse = np.unique(found, return_index=True, return_inverse=True)
            if sum(sizes[1:]) + len(unique) > MOST_NGRAMS:
                break
            rows.append(inverse + sum(sizes))
            places.append(first)
            keys.append(unique)
            sizes.append(len(unique))
        offsets = np.cumsum([0, *sizes])
        total = int(offsets[-1])
        backoffs, shares = np.ones(total), np.zeros(total)
        for length in range(1, len(rows) + 1):
            first_row, size = int(offsets[length - 1]), sizes[length - 1]
            # The longest n-grams count as often as they occur, shorter ones once for each word
            # that stood before them.
            ends = rows[-1] if length == len(rows) else rows[length - 1][places[length] + 1]
            counts = np.bincount(ends - first_row, minlength=size).astype(np.float64)
            discounted = _discounts(counts)[np.minimum(counts, 3).astype(int)]
            if length == 1:
                kept = (counts - discounted) / counts.sum()
                shares[:size] = kept + discounted.sum() / counts.sum() / vocabulary
                continue
            contexts = keys[length - 2] // vocabulary
            sums = np.bincount(contexts, counts, total)
            left = np.bincount(contexts, discounted, total)
            followed = sums > 0
            backoffs[followed] = left[followed] / sums[followed]
            own = slice(first_row, first_row + size)
            shares[own] = (counts - discounted) / np.maximum(sums[contexts], 1)
        return cls(
            np.concatenate([np.zeros(0, np.int64), *keys]),
            shares[vocabulary:].astype(np.float32),
            backoffs.astype(np.float32),
            shares[:vocabulary].astype(np.float32),
            len(rows),
        )

    def save(self, path: Path) -> None:
        """Write it to a file."""
        arrays = {
            "keys": self.keys,
            "shares": self.shares,
            "backoffs": self.backoffs,
            "words": self.words,
        }
        path.write_bytes(safetensors.numpy.save(arrays))

    @classmethod
    def load(cls, path: Path, vocabulary: int, longest: int) -> "KneserNey":
        """Read what `save` wrote, and check it."""
        try:
            check_regular(path, MAX_FILE)
            kept = safetensors.numpy.load_file(path)
            keys, shares, backoffs, words = (
                kept[name] for name in ("keys", "shares", "backoffs", "words")
            )
        except (OSError, KeyError, ValueError, TypeError, safetensors.SafetensorError) as error:
            raise RegardError(f"{path}: the n-gram model cannot be read ({error})") from error
        rows = vocabulary + len(keys)
        fit = (
            keys.shape == shares.shape == (len(keys),)
            and backoffs.shape == (rows,)
            and words.shape == (vocabulary,)
            and keys.dtype == np.int64
            and all(array.dtype == np.float32 for array in (shares, backoffs, words))
        )
        if not fit:
            raise RegardError(
                f"{path}: expected int64 keys [m], and float32 shares [m], backoffs [{vocabulary} "
                f"+ m] and words [{vocabulary}]"
            )
        contexts = keys // vocabulary
        ordered = (keys[1:] > keys[:-1]).all() and (keys >= 0).all()
        earlier = (contexts < vocabulary + np.arange(len(keys))).all()
        within = all(((a >= 0) & (a <= 1.0001)).all() for a in (shares, backoffs, words))
        if not (ordered and earlier and within):
            raise RegardError(f"{path}: expected ascending keys, and shares from 0 to 1")
        return cls(keys, shares, backoffs, words, longest)


def _discounts(counts: Float[np.ndarray, "n"]) -> Float[np.ndarray, "4"]:
    """What is taken from n-grams that count 0, 1, 2, and 3 or more."""
    n1, n2, n3, n4 = (float((counts == number).sum()) for number in (1, 2, 3, 4))
    if min(n1, n2, n3, n4) == 0:
        return np.array([0.0, *USUAL_DISCOUNTS])
    y = n1 / (n1 + 2 * n2)
    estimates = (1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3)
    return np.array([0.0, *(min(max(d, 0.0), k) for k, d in enumerate(estimates, 1))])
