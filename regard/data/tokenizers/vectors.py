"""Word vectors from a file: GloVe text (`.txt`), word2vec and fastText text (`.vec`), or gzip."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import safetensors
import safetensors.numpy
import torch

from regard.atomic_files import write_whole
from regard.data.readers.lines import lines
from regard.data.readers.sources import resolve
from regard.data.tensor_writing import save_tensors
from regard.errors import RegardError
from regard.verified_files import check_regular


@dataclass(frozen=True)
class WordVectors:
    """Vectors [n, d] for n words in order (zeros where unknown), and which of them have one."""

    matrix: np.ndarray
    known: np.ndarray

    @property
    def coverage(self) -> float:
        """The share of words that have a vector."""
        return float(self.known.mean()) if len(self.known) else 0.0

    def save(self, path: Path) -> None:
        """Save the known vectors, with the numbers of their words."""
        numbers = np.flatnonzero(self.known)
        kept = {"words": numbers, "vectors": self.matrix[numbers]}
        tensors = {name: torch.from_numpy(array) for name, array in kept.items()}
        write_whole(path, lambda stream: save_tensors(stream, tensors))


@dataclass(frozen=True)
class SavedVectors:
    """Vectors [n, d] of n words, by the numbers of the words."""

    words: np.ndarray
    vectors: np.ndarray

    @property
    def size(self) -> int:
        """How many numbers a vector has."""
        return int(self.vectors.shape[1])

    @classmethod
    def load(cls, path: Path) -> "SavedVectors":
        """Read what `WordVectors.save` wrote."""
        try:
            check_regular(path)
            kept = safetensors.numpy.load_file(path)
            words, vectors = kept["words"], kept["vectors"]
        except (OSError, KeyError, ValueError, TypeError, safetensors.SafetensorError) as error:
            raise RegardError(f"{path}: the word vectors cannot be read ({error})") from error
        shapes_fit = words.ndim == 1 and vectors.ndim == 2 and len(words) == len(vectors)
        if not shapes_fit or words.dtype != np.int64 or vectors.dtype != np.float32:
            raise RegardError(f"{path}: expected int64 words [n] and float32 vectors [n, d]")
        if not np.isfinite(vectors).all():
            raise RegardError(f"{path}: holds NaN or infinite values")
        return cls(words, vectors)


def read_vectors(path: str | Path, words: Sequence[str]) -> WordVectors:
    """The vectors of `words`: as spelled, else in lower case.

    Pennington et al. 2014 (https://aclanthology.org/D14-1162) and Mikolov et al. 2013 wrote one
    word and its numbers per line; the latter begins with a line of two counts.
    """
    (source,) = resolve(path)
    wanted = set(words) | {word.lower() for word in words}
    vectors: dict[str, np.ndarray] = {}
    width = 0
    for number, line in lines(source):
        where = f"{source.name}:{number}"
        if line is None:
            raise RegardError(f"{where}: line of more than 1 MiB: is this a file of word vectors?")
        text = line.strip(" ")
        if not text or (number == 1 and _counts(text)):
            continue
        separator = "\t" if " " not in text and "\t" in text else " "
        if not width:
            width = len(text.split(separator)) - 1
        # GloVe has words that contain spaces, so the numbers are counted from the right.
        word, *numbers = text.rsplit(separator, width)
        if len(numbers) != width or not width or not word:
            raise RegardError(
                f"{where}: {len(numbers)} numbers after the word: expected {width}, as before"
            )
        if word in wanted and word not in vectors:
            vectors[word] = _numbers(numbers, where)
    if not width:
        raise RegardError(
            f"{source.name}: no vectors: expected a word and its numbers on each line"
        )
    return _matrix(words, vectors, width)


def _counts(text: str) -> bool:
    parts = text.split()
    return len(parts) == 2 and all(part.isdecimal() for part in parts)


def _numbers(parts: list[str], where: str) -> np.ndarray:
    try:
        values = np.array(parts, dtype=np.float32)
    except ValueError as error:
        raise RegardError(f"{where}: not a number ({str(error).rpartition(': ')[2]})") from error
    if not np.isfinite(values).all():
        raise RegardError(f"{where}: not a finite number")
    return values


def _matrix(words: Sequence[str], vectors: dict[str, np.ndarray], width: int) -> WordVectors:
    matrix = np.zeros((len(words), width), dtype=np.float32)
    known = np.zeros(len(words), dtype=bool)
    for i, word in enumerate(words):
        vector = vectors.get(word, vectors.get(word.lower()))
        if vector is not None:
            matrix[i], known[i] = vector, True
    return WordVectors(matrix, known)
