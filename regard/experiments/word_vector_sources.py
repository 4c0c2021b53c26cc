"""Word vectors for experiments: from counts in a text, from a file, or from a run of our own."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from regard.data.tokenizers.tokenizer import Tokenizer
from regard.data.tokenizers.vectors import read_vectors
from regard.errors import RegardError
from regard.inference.load_run import load
from regard.models.embedding import Embedding


def word_vectors(texts: list[list[str]], size: int = 12) -> dict[str, np.ndarray]:
    """Vectors from how often words occur in the same sentence, more often than by chance.

    Positive pointwise mutual information, and a singular value decomposition (Levy and Goldberg,
    2014, https://papers.nips.cc/paper/5477).
    """
    names = sorted({word for text in texts for word in text})
    number = {word: i for i, word in enumerate(names)}
    counts = np.zeros((len(names), len(names)))
    for text in texts:
        ids = [number[word] for word in text]
        for i in ids:
            for j in ids:
                counts[i, j] += i != j
    expected = np.outer(counts.sum(1), counts.sum(0)) / counts.sum()
    information = np.log(np.maximum(counts, 1e-9) / np.maximum(expected, 1e-9)).clip(min=0)
    left, values, _ = np.linalg.svd(information)
    size = min(size, len(names))
    vectors = left[:, :size] * np.sqrt(values[:size])
    return dict(zip(names, vectors, strict=True))


def vectors_of(source: str, words: Sequence[str]) -> dict[str, np.ndarray]:
    """The vectors of those words that a file of word vectors or a run (a folder) knows."""
    if source.startswith("example:") or Path(source).is_dir():
        return _embedding(source, words)
    found = read_vectors(source, words)
    return {
        word: vector.astype(np.float64)
        for word, vector, has_one in zip(words, found.matrix, found.known, strict=True)
        if has_one
    }


def _embedding(source: str, words: Sequence[str]) -> dict[str, np.ndarray]:
    """The input vectors of a trained model; of the source language, if it has two."""
    run = load(source, "cpu")
    tokenizers = [part for part in vars(run.task).values() if isinstance(part, Tokenizer)]
    tables = [part for part in run.model.modules() if isinstance(part, Embedding)]
    if not tokenizers or not tables or tables[0].words.num_embeddings != tokenizers[0].size:
        raise RegardError(f"{source}: its model has no table of word vectors")
    table = tables[0].words.weight.detach().double().numpy()
    number = {word: i for i, word in enumerate(tokenizers[0].vocabulary())}
    return {word: table[number[word]] for word in words if word in number}
