"""Words, or vectors that stand for themselves, as a model's first layer; and words as its last."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.positions import Learned, sinusoids
from regard.errors import unknown
from regard.layers.dropout import Dropout

POSITIONS = ("none", "sinusoids", "learned")


class Places(nn.Module):
    """Adds to each vector what tells its position."""

    def __init__(self, kind: str, width: int, max_length: int = 1024) -> None:
        super().__init__()
        if kind not in POSITIONS:
            raise ValueError(unknown("positions", kind, POSITIONS))
        self.kind = kind
        self.learned = Learned(max_length, width) if kind == "learned" else None

    def forward(self, vectors: Float[Tensor, "b t w"], offset: int = 0) -> Float[Tensor, "b t w"]:
        """The vectors at the positions from `offset` on."""
        length, width = vectors.shape[-2:]
        if self.learned is not None:
            placed: Tensor = vectors + self.learned(length, offset)
            return placed
        if self.kind == "none":
            return vectors
        return vectors + sinusoids(
            length, width, offset=offset, dtype=vectors.dtype, device=vectors.device
        )


class Embedding(nn.Module):
    """A vector a word, scaled by √size as in the transformer.

    The table can serve as the last layer too, which wants short rows, while what comes out has
    features of variance one, in recurrent models as well: their gates hardly move otherwise.
    """

    def __init__(
        self,
        vocabulary: int,
        width: int,
        *,
        size: int | None = None,
        positions: str = "none",
        dropout: float = 0.0,
        max_length: int = 1024,
        padding: int = 0,
    ) -> None:
        """Make the table.

        Args:
            vocabulary: how many words there are.
            width: size of the vectors that come out.
            size: size of the vectors in the table; a linear layer brings them to `width` if they
                differ.
            positions: none, sinusoids or learned.
            dropout: share of the features dropped in training.
            max_length: the longest text, for learned positions.
            padding: the word whose vector begins at zero and learns nothing as an input.
        """
        super().__init__()
        self.width, self.size = width, width if size is None else size
        self.words = nn.Embedding(vocabulary, self.size, padding_idx=padding)
        nn.init.normal_(self.words.weight, std=self.size**-0.5)
        with torch.no_grad():
            self.words.weight[padding].zero_()
        self.project = None if self.size == width else nn.Linear(self.size, width)
        self.places = Places(positions, width, max_length)
        self.scale = self.size**0.5
        self.dropout = Dropout(dropout)

    def forward(self, ids: Int[Tensor, "b t"], offset: int = 0) -> Float[Tensor, "b t w"]:
        """Vectors of the words; `offset` is the position of the first."""
        vectors: Tensor = self.words(ids) * self.scale
        if self.project is not None:
            vectors = self.project(vectors)
        dropped: Tensor = self.dropout(self.places(vectors, offset))
        return dropped

    @torch.no_grad()
    def load(
        self, ids: Int[Tensor, "n"], vectors: Float[Tensor, "n d"], *, frozen: bool = False
    ) -> None:
        """Give these words these vectors; the others keep theirs.

        Args:
            ids: the words.
            vectors: their vectors, of the table's size.
            frozen: no vector of the table learns from now on, loaded or not.
        """
        if vectors.shape != (len(ids), self.size):
            raise ValueError(
                f"vectors of shape {list(vectors.shape)} for {len(ids)} words of size {self.size}: "
                f"expected [{len(ids)}, {self.size}]"
            )
        table = self.words.weight
        table[ids.to(table.device)] = vectors.to(table) / self.scale
        self.words.requires_grad_(not frozen)


class Vectors(nn.Module):
    """Vectors that come as they are (frames, features), brought to the model's width."""

    def __init__(
        self,
        features: int,
        width: int,
        *,
        positions: str = "none",
        dropout: float = 0.0,
        max_length: int = 1024,
    ) -> None:
        super().__init__()
        self.project = nn.Linear(features, width)
        self.places = Places(positions, width, max_length)
        self.dropout = Dropout(dropout)

    def forward(self, vectors: Float[Tensor, "b t f"]) -> Float[Tensor, "b t w"]:
        """The vectors, projected."""
        projected: Tensor = self.dropout(self.places(self.project(vectors)))
        return projected


def inputs(
    words: int | None,
    features: int | None,
    width: int,
    *,
    size: int | None = None,
    positions: str = "none",
    dropout: float = 0.0,
    max_length: int = 1024,
) -> Embedding | Vectors:
    """The first layer: a table of so many words, or a projection of so many features."""
    if words is not None and features is None:
        return Embedding(
            words, width, size=size, positions=positions, dropout=dropout, max_length=max_length
        )
    if features is not None and words is None:
        return Vectors(features, width, positions=positions, dropout=dropout, max_length=max_length)
    raise ValueError(f"give either words or features; got {words} and {features}")


class Unembedding(nn.Module):
    """From vectors back to words: a number for each, by the same table or by one of its own.

    Press and Wolf, 2017, https://arxiv.org/abs/1608.05859
    """

    def __init__(self, width: int, vocabulary: int, tied: Embedding | None = None) -> None:
        super().__init__()
        if tied is not None and tied.size != width:
            raise ValueError(
                f"tied embeddings need vectors of one size; got words of size {tied.size} and "
                f"states of size {width}"
            )
        self.weight = nn.Parameter(torch.empty(vocabulary, width)) if tied is None else None
        # in a list, so that the table has one name in the state dict
        self.tied = [tied] if tied is not None else []
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        if self.weight is not None:
            nn.init.normal_(self.weight, std=width**-0.5)

    def forward(
        self, states: Float[Tensor, "*n w"], among: Int[Tensor, "some"] | None = None
    ) -> Float[Tensor, "*n v"]:
        """Logits of all words, or of some."""
        table = self.tied[0].words.weight if self.weight is None else self.weight
        if among is not None:
            return nn.functional.linear(states, table[among], self.bias[among])
        return nn.functional.linear(states, table, self.bias)
