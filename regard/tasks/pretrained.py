"""Word vectors from a file: copied into the run, put into the model's table, frozen or not."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch

from regard.data.tokenizer import SPECIAL, Tokenizer
from regard.data.vectors import KeptVectors, read_vectors
from regard.errors import RegardError
from regard.models.embedding import Embedding

FILE = "vectors.safetensors"
C = TypeVar("C")


@runtime_checkable
class WithVectors(Protocol):
    """Data options that may name a file of word vectors."""

    @property
    def vectors(self) -> str | None:
        """The file."""
        ...

    @property
    def freeze(self) -> bool:
        """Whether the table of words stays as it is."""
        ...


def check_vectors(data: WithVectors, tokenizer: str = "word") -> None:
    """The options that go with word vectors, before anything is read."""
    if data.freeze and data.vectors is None:
        raise RegardError("option freeze: expected with vectors, which was not given")
    if data.vectors is not None and tokenizer != "word":
        raise RegardError(f"option vectors: expected with tokenizer word, got {tokenizer}")


def copy_vectors(data: WithVectors, tokenizer: Tokenizer, folder: Path) -> str:
    """Keep the vectors of the words that the tokenizer knows; how many were found, in words."""
    if data.vectors is None:
        return ""
    read = read_vectors(data.vectors, tokenizer.vocabulary())
    read.found[: len(SPECIAL)] = False
    count, words = int(read.found.sum()), tokenizer.size - len(SPECIAL)
    if not count:
        raise RegardError(
            f"{data.vectors}: has none of the {words:,} words of the data: is it of another "
            f"language?"
        )
    read.save(folder / FILE)
    size = read.matrix.shape[1]
    return f"{count:,} of {words:,} words have vectors of {size} numbers in {data.vectors}"


def kept_vectors(data: WithVectors, folder: Path) -> KeptVectors | None:
    """What `copy_vectors` kept in a run."""
    return None if data.vectors is None else KeptVectors.load(folder / FILE)


def sized(config: C, kept: KeptVectors | None) -> C:
    """The config of a model whose table has vectors of the size in the file."""
    known: Any = config
    if kept is None or known.word_size == kept.size:
        return config
    if known.word_size is not None:
        raise RegardError(
            f"option word_size: the vectors in the file have {kept.size} numbers, not "
            f"{known.word_size}: leave it out, or give --word-size {kept.size}"
        )
    made: C = replace(known, word_size=kept.size)
    return made


def fill(table: Any, kept: KeptVectors | None, freeze: bool) -> None:
    """Put the vectors into a model's table of words."""
    if kept is not None and isinstance(table, Embedding):
        words, vectors = torch.from_numpy(kept.words), torch.from_numpy(kept.vectors)
        table.load(words, vectors, frozen=freeze)
