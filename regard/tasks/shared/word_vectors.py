"""Word vectors from a file: copied into the run, put into the model's table, frozen or not."""

from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch

from regard.data.tokenizers.tokenizer import SPECIAL, Tokenizer
from regard.data.tokenizers.vectors import SavedVectors, read_vectors
from regard.errors import OptionError, RegardError
from regard.models.embedding import Embedding
from regard.tasks.shared.vector_options import VectorOptions

FILE = "vectors.safetensors"
C = TypeVar("C")


def copy_vectors(data: VectorOptions, tokenizer: Tokenizer, folder: Path) -> str:
    """Copy the vectors of the words that the tokenizer knows; a note on how many there are."""
    if data.vectors is None:
        return ""
    read = read_vectors(data.vectors, tokenizer.vocabulary())
    read.known[: len(SPECIAL)] = False
    count, words = int(read.known.sum()), tokenizer.size - len(SPECIAL)
    if not count:
        raise RegardError(
            f"{data.vectors}: has none of the {words:,} words of the data: is it of another "
            f"language?"
        )
    read.save(folder / FILE)
    size = read.matrix.shape[1]
    return f"{count:,} of {words:,} words have vectors of {size} numbers in {data.vectors}"


def load_vectors(data: VectorOptions, folder: Path) -> SavedVectors | None:
    """What `copy_vectors` wrote into a run folder."""
    return None if data.vectors is None else SavedVectors.load(folder / FILE)


def with_word_size(config: C, kept: SavedVectors | None) -> C:
    """The config with word vectors of the size in the file."""
    known: Any = config
    if kept is None or known.word_size == kept.size:
        return config
    if known.word_size is not None:
        raise OptionError(
            "word_size",
            f"the vectors in the file have {kept.size} numbers, not "
            f"{known.word_size}: leave it out, or give --word-size {kept.size}",
        )
    resized: C = replace(known, word_size=kept.size)
    return resized


def fill_embedding(embedding: Any, kept: SavedVectors | None, freeze: bool) -> None:
    """Copy the vectors into a model's embedding."""
    if kept is not None and isinstance(embedding, Embedding):
        size = embedding.words.num_embeddings
        if len(kept.words) and not 0 <= kept.words.min() <= kept.words.max() < size:
            raise RegardError(f"{FILE}: has vectors of words beyond the {size} of the vocabulary")
        words, vectors = torch.from_numpy(kept.words), torch.from_numpy(kept.vectors)
        embedding.load(words, vectors, frozen=freeze)
