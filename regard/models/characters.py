"""Features of the spelling of a word: convolutions over its characters, vectors of its n-grams."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.layers.dropout import Dropout
from regard.models.embedding import Embedding

BUCKETS = 40_009
"""Number of rows that all n-grams share, a prime."""
SIZES = (2, 3, 4, 5)
"""Numbers of characters of an n-gram, including the marks of the word's start and end."""
FACTOR, MODULUS = 1_000_003, 2**31 - 1
"""Factor and modulus of the hash; their product fits into 64 bits."""


class CharacterFeatures(nn.Module):
    """Convolutions over the characters of a word, and their maximum.

    Ma and Hovy, 2016, https://arxiv.org/abs/1603.01354
    """

    def __init__(self, characters: int, width: int, features: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.table = Embedding(characters, width, dropout=dropout)
        self.convolution = nn.Conv1d(width, features, kernel_size=3, padding=1)

    def forward(self, characters: Int[Tensor, "b t c"]) -> Float[Tensor, "b t f"]:
        """One vector per word; id 0 pads words and sentences."""
        batch, length, letters = characters.shape
        flat = characters.reshape(batch * length, letters)
        features = self.convolution(self.table(flat).mT)
        # padding behind the word is masked, so that its width does not matter
        features = features.masked_fill((flat == 0)[:, None], float("-inf")).amax(-1)
        features = features.masked_fill((flat == 0).all(-1, keepdim=True), 0.0)
        described: Tensor = features.relu().view(batch, length, -1)
        return described


class NgramVectors(nn.Module):
    """x = Σ_g z_g / √n over the n-grams g of a word, whose vectors z are found by a hash.

    Unknown words share vectors with words of similar spelling.

    Bojanowski et al., 2017, https://arxiv.org/abs/1607.04606
    """

    def __init__(self, width: int, *, word_dropout: float = 0.0, dropout: float = 0.0) -> None:
        """Make the table.

        Args:
            width: size of the vectors.
            word_dropout: probability that an n-gram is left out in training.
            dropout: proportion of the features dropped in training.
        """
        super().__init__()
        self.table = nn.Embedding(BUCKETS + 1, width, padding_idx=0)
        nn.init.normal_(self.table.weight, std=0.5)
        with torch.no_grad():
            self.table.weight[0].zero_()
        self.word_dropout = word_dropout
        self.dropout = Dropout(dropout)

    def forward(self, characters: Int[Tensor, "b t c"]) -> Float[Tensor, "b t w"]:
        """One vector per word; id 0 pads words and sentences."""
        rows = ngram_rows(characters.flatten(0, 1))
        if self.training and self.word_dropout:
            rows = rows.masked_fill(
                torch.rand(rows.shape, device=rows.device) < self.word_dropout, 0
            )
        summed = nn.functional.embedding_bag(rows, self.table.weight, mode="sum", padding_idx=0)
        number = (rows > 0).sum(-1, keepdim=True).clamp(min=1)
        dropped: Tensor = self.dropout(summed / number.sqrt())
        return dropped.view(*characters.shape[:2], -1)


def ngram_rows(words: Int[Tensor, "n c"]) -> Int[Tensor, "n g"]:
    """Table rows of the n-grams of words that are padded with 0; 0 where there is none.

    Character ids are raised by two: 1 marks the start of a word, 2 its end.
    """
    real = words > 0
    marked = nn.functional.pad(words + 2 * real, (1, 1))
    marked[:, 0] = real[:, 0]
    marked[:, 1:] += 2 * ((marked[:, 1:] == 0) & (marked[:, :-1] > 0))
    rows = []
    for size in SIZES:
        windows = marked.unfold(1, size, 1) if marked.shape[1] >= size else marked[:, :0, None]
        row = torch.full_like(windows[..., 0], size)
        for letter in windows.unbind(-1):
            row = (row * FACTOR + letter) % MODULUS
        rows.append((1 + row % BUCKETS) * (windows[..., -1] > 0))
    return torch.cat(rows, 1)
