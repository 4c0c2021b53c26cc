"""The first layer of a model, for words or for vectors, and its last, which predicts words."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.positions import Learned, sinusoids
from regard.errors import unknown
from regard.layers.dropout import Dropout

POSITIONS = ("none", "sinusoids", "learned")


class PositionEncoding(nn.Module):
    """Adds an encoding of its position to each vector."""

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
    """One vector per word, scaled by √size as in the transformer.

    The table may be shared with the last layer, which needs short rows; the scale gives the output
    features of variance one, without which the gates of recurrent models hardly move.
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
            vocabulary: number of words.
            width: size of the output vectors.
            size: size of the vectors in the table; a linear layer projects them to `width` if the
                sizes differ.
            positions: none, sinusoids or learned.
            dropout: proportion of the features dropped in training.
            max_length: maximum length of a text, for learned positions.
            padding: the word whose vector is initialized to zero and gets no gradient as an input.
        """
        super().__init__()
        self.width, self.size = width, width if size is None else size
        self.words = nn.Embedding(vocabulary, self.size, padding_idx=padding)
        nn.init.normal_(self.words.weight, std=self.size**-0.5)
        with torch.no_grad():
            self.words.weight[padding].zero_()
        self.project = None if self.size == width else nn.Linear(self.size, width)
        self.places = PositionEncoding(positions, width, max_length)
        self.scale = self.size**0.5
        self.dropout = Dropout(dropout)
        self.lazy = False
        """Whether an update of the optimizer changes only the rows of words in its batch."""
        self.sparse = False
        """Whether the gradient of `bag` has only those rows; training sets it where it can."""

    def bag(
        self, ids: Int[Tensor, "b t"], lengths: Int[Tensor, "b"], kind: str
    ) -> Float[Tensor, "b w"]:
        """The sum or mean of the vectors of each text, without a vector per word and position.

        The same as `forward` without positions and dropout, then pooling; an empty text has zeros.
        """
        real = torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]
        pooled: Tensor = nn.functional.embedding_bag(
            ids[real], self.words.weight, lengths.cumsum(0) - lengths, mode=kind, sparse=self.sparse
        )
        pooled = pooled * self.scale
        if self.project is None:
            return pooled
        count = lengths if kind == "sum" else (lengths > 0)
        shift = self.project.bias * count[:, None].to(pooled.dtype)
        return nn.functional.linear(pooled, self.project.weight) + shift

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
        """Set the vectors of these words; the others keep theirs.

        Args:
            ids: the words.
            vectors: their vectors, of the table's size.
            frozen: exclude the whole table from training, loaded vectors or not.
        """
        if vectors.shape != (len(ids), self.size):
            raise ValueError(
                f"vectors of shape {list(vectors.shape)} for {len(ids)} words of size {self.size}: "
                f"expected [{len(ids)}, {self.size}]"
            )
        table = self.words.weight
        table[ids.to(table.device)] = vectors.to(table) / self.scale
        self.words.requires_grad_(not frozen)


class VectorInputs(nn.Module):
    """Input vectors (frames, features), projected to the width of the model."""

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
        self.places = PositionEncoding(positions, width, max_length)
        self.dropout = Dropout(dropout)

    def forward(self, vectors: Float[Tensor, "b t f"]) -> Float[Tensor, "b t w"]:
        """The vectors, projected."""
        projected: Tensor = self.dropout(self.places(self.project(vectors)))
        return projected


def input_layer(
    words: int | None,
    features: int | None,
    width: int,
    *,
    size: int | None = None,
    positions: str = "none",
    dropout: float = 0.0,
    max_length: int = 1024,
) -> Embedding | VectorInputs:
    """The first layer: a table of word vectors, or a projection of vectors."""
    if words is not None and features is None:
        return Embedding(
            words, width, size=size, positions=positions, dropout=dropout, max_length=max_length
        )
    if features is not None and words is None:
        return VectorInputs(
            features, width, positions=positions, dropout=dropout, max_length=max_length
        )
    raise ValueError(f"give either words or features; got {words} and {features}")


class Unembedding(nn.Module):
    """The last layer: a logit for each word, by the table of the first layer or by its own.

    Press and Wolf, 2017, https://arxiv.org/abs/1608.05859
    """

    def __init__(self, width: int, vocabulary: int, tied: Embedding | None = None) -> None:
        super().__init__()
        if tied is not None and tied.size != width:
            raise ValueError(
                f"tied embeddings need vectors of the same size; got words of size {tied.size} and "
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
