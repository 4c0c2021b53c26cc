"""What the spelling of a word tells: features of its characters, and vectors of its n-grams."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.layers.dropout import Dropout
from regard.models.embedding import Embedding

BUCKETS = 40_009
"""Rows that all n-grams share; a prime."""
SIZES = (2, 3, 4, 5)
"""Letters of an n-gram, the borders of the word counted."""
FACTOR, MODULUS = 1_000_003, 2**31 - 1
"""Of the hash; a product of both fits 64 bits."""


class CharacterFeatures(nn.Module):
    """Features of how a word is written: convolutions over its characters, and their maximum.

    Ma and Hovy, 2016, https://arxiv.org/abs/1603.01354
    """

    def __init__(self, characters: int, width: int, features: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.table = Embedding(characters, width, dropout=dropout)
        self.convolution = nn.Conv1d(width, features, kernel_size=3, padding=1)

    def forward(self, characters: Int[Tensor, "b t c"]) -> Float[Tensor, "b t f"]:
        """One vector a word; id 0 pads words and sentences."""
        batch, length, letters = characters.shape
        flat = characters.reshape(batch * length, letters)
        features = self.convolution(self.table(flat).mT)
        # padding beyond the word is closed, so that its width does not matter
        features = features.masked_fill((flat == 0)[:, None], float("-inf")).amax(-1)
        features = features.masked_fill((flat == 0).all(-1, keepdim=True), 0.0)
        described: Tensor = features.relu().view(batch, length, -1)
        return described


class Ngrams(nn.Module):
    """x = Σ_g z_g / √n over the n-grams g of a word, which find their vectors z by a hash.

    Words that were never seen share vectors with those that are spelt alike.

    Bojanowski et al., 2017, https://arxiv.org/abs/1607.04606
    """

    def __init__(self, width: int, *, forget: float = 0.0, dropout: float = 0.0) -> None:
        """Make the table.

        Args:
            width: size of the vectors.
            forget: share of a word's n-grams left out in training, so that no single one decides.
            dropout: share of the features dropped in training.
        """
        super().__init__()
        self.table = nn.Embedding(BUCKETS + 1, width, padding_idx=0)
        nn.init.normal_(self.table.weight, std=0.5)
        with torch.no_grad():
            self.table.weight[0].zero_()
        self.forget = forget
        self.dropout = Dropout(dropout)

    def forward(self, characters: Int[Tensor, "b t c"]) -> Float[Tensor, "b t w"]:
        """One vector a word; id 0 pads words and sentences."""
        rows = ngrams(characters.flatten(0, 1))
        if self.training and self.forget:
            rows = rows.masked_fill(torch.rand(rows.shape) < self.forget, 0)
        summed = nn.functional.embedding_bag(rows, self.table.weight, mode="sum", padding_idx=0)
        number = (rows > 0).sum(-1, keepdim=True).clamp(min=1)
        dropped: Tensor = self.dropout(summed / number.sqrt())
        return dropped.view(*characters.shape[:2], -1)


def ngrams(words: Int[Tensor, "n c"]) -> Int[Tensor, "n g"]:
    """The rows of the n-grams of words that are padded with 0; 0 where there is none.

    Letters move up by two: 1 stands before a word, 2 after it.
    """
    real = words > 0
    spelt = nn.functional.pad(words + 2 * real, (1, 1))
    spelt[:, 0] = real[:, 0]
    spelt[:, 1:] += 2 * ((spelt[:, 1:] == 0) & (spelt[:, :-1] > 0))
    found = []
    for size in SIZES:
        windows = spelt.unfold(1, size, 1) if spelt.shape[1] >= size else spelt[:, :0, None]
        row = torch.full_like(windows[..., 0], size)
        for letter in windows.unbind(-1):
            row = (row * FACTOR + letter) % MODULUS
        found.append((1 + row % BUCKETS) * (windows[..., -1] > 0))
    return torch.cat(found, 1)
