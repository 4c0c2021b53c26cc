"""Options of pretrained word vectors."""

from typing import Protocol, runtime_checkable

from regard.errors import OptionError


@runtime_checkable
class VectorOptions(Protocol):
    """Data options that may name a file of word vectors."""

    @property
    def vectors(self) -> str | None:
        """File of word vectors."""
        ...

    @property
    def freeze(self) -> bool:
        """Whether word vectors are kept fixed."""
        ...


def check_vectors(data: VectorOptions, tokenizer: str = "word") -> None:
    """Check the options of word vectors, before anything is read."""
    if data.freeze and data.vectors is None:
        raise OptionError("freeze", "requires vectors, which was not given")
    if data.vectors is not None and tokenizer != "word":
        raise OptionError("vectors", f"requires tokenizer word, got {tokenizer}")
