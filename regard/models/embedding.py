"""Words as vectors, with or without positions."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.positions import Learned, sinusoids
from regard.errors import unknown

POSITIONS = ("none", "sinusoids", "learned")


class Embedding(nn.Module):
    """A vector a word, scaled by √width where positions are added, as in the transformer."""

    def __init__(
        self,
        vocabulary: int,
        width: int,
        *,
        positions: str = "none",
        dropout: float = 0.0,
        max_length: int = 1024,
        padding: int = 0,
    ) -> None:
        """Make the table.

        Args:
            vocabulary: how many words there are.
            width: size of their vectors.
            positions: none, sinusoids or learned.
            dropout: share of the features dropped in training.
            max_length: the longest text, for learned positions.
            padding: the word whose vector is zero and stays so.
        """
        super().__init__()
        if positions not in POSITIONS:
            raise ValueError(unknown("positions", positions, POSITIONS))
        self.words = nn.Embedding(vocabulary, width, padding_idx=padding)
        nn.init.normal_(self.words.weight, std=width**-0.5)
        with torch.no_grad():
            self.words.weight[padding].zero_()
        self.width, self.positions = width, positions
        self.learned = Learned(max_length, width) if positions == "learned" else None
        self.dropout = nn.Dropout(dropout)

    def forward(self, ids: Int[Tensor, "b t"], offset: int = 0) -> Float[Tensor, "b t w"]:
        """Vectors of the words; `offset` is the position of the first."""
        vectors: Tensor = self.words(ids)
        length = ids.shape[-1]
        if self.positions != "none":
            vectors = vectors * self.width**0.5
        if self.learned is not None:
            vectors = vectors + self.learned(length, offset)
        elif self.positions == "sinusoids":
            vectors = vectors + sinusoids(
                length, self.width, offset=offset, dtype=vectors.dtype, device=vectors.device
            )
        return self.dropout(vectors)


class Unembedding(nn.Module):
    """From vectors back to words: a number for each, by the same table or by one of its own."""

    def __init__(self, width: int, vocabulary: int, tied: Embedding | None = None) -> None:
        super().__init__()
        if tied is not None and tied.width != width:
            raise ValueError(
                f"tied embeddings need vectors of one size; got words of size {tied.width} and "
                f"states of size {width}"
            )
        self.weight = nn.Parameter(torch.empty(vocabulary, width)) if tied is None else None
        self.tied = [tied] if tied is not None else []
        """In a list, so that the table has one name in the state dict."""
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        if self.weight is not None:
            nn.init.normal_(self.weight, std=width**-0.5)

    def forward(self, states: Float[Tensor, "*n w"]) -> Float[Tensor, "*n v"]:
        """Logits."""
        table = self.tied[0].words.weight if self.weight is None else self.weight
        return nn.functional.linear(states, table, self.bias)
