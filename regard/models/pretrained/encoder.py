"""The encoder of the BERT family in Regard's own blocks, with heads for texts and for words.

x = norm(word + position), projected to the width of the model; then post-norm transformer blocks.
The first and the last token, which the model calls [CLS] and [SEP], are added here: a text comes
without them, so that they are never erased, dropped or tagged.

Devlin et al., 2019, https://arxiv.org/abs/1810.04805
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention import masks
from regard.attention.positions import Learned
from regard.layers.dropout import Dropout
from regard.models.encoders import Context, real_positions
from regard.models.layer_options import LayerOptions
from regard.models.pretrained.architecture import EncoderArchitecture
from regard.models.transformer_stack import TransformerStack

FIRST, LAST = 2, 3
"""The tokens around a text: <bos> and <eos> in every tokenizer."""
ACTIVATIONS = {
    "gelu": nn.GELU,
    "gelu_tanh": lambda: nn.GELU("tanh"),
    "relu": nn.ReLU,
    "silu": nn.SiLU,
    "tanh": nn.Tanh,
}


class WordTable(nn.Module):
    """One vector per token; those of several tokens of a word are put side by side."""

    def __init__(self, vocabulary: int, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocabulary, size))
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, ids: Int[Tensor, "b t *p"]) -> Float[Tensor, "b t _"]:
        """Vectors of the tokens [b, t, e], or of the tokens of each word [b, t, p · e]."""
        return F.embedding(ids, self.weight).flatten(2)


class FramedEmbedding(nn.Module):
    """Vectors of a text between its first and its last token, with their positions."""

    def __init__(self, architecture: EncoderArchitecture, dropout: float) -> None:
        super().__init__()
        size, width = architecture.word_size, architecture.width
        self.words = WordTable(architecture.vocabulary, size)
        self.places = Learned(architecture.positions, size)
        self.norm = nn.LayerNorm(size, architecture.epsilon)
        self.project = None if size == width else nn.Linear(size, width)
        self.dropout = Dropout(dropout)

    def forward(
        self, vectors: Float[Tensor, "b t e"], lengths: Int[Tensor, "b"]
    ) -> Float[Tensor, "b n w"]:
        """From vectors of the words to what the first block reads; n = t + 2."""
        first, last = self.words.weight[FIRST], self.words.weight[LAST]
        framed = F.pad(vectors, (0, 0, 1, 1))
        place = torch.arange(framed.shape[1], device=lengths.device)
        framed = torch.where((place == 0)[:, None], first, framed)
        framed = torch.where((place == lengths[:, None] + 1)[:, :, None], last, framed)
        placed: Tensor = self.dropout(self.norm(framed + self.places(framed.shape[1])))
        return placed if self.project is None else self.project(placed)


class PretrainedEncoder(nn.Module):
    """The blocks of an encoder."""

    def __init__(self, architecture: EncoderArchitecture, dropout: float) -> None:
        super().__init__()
        self.size = architecture.width
        self.stack = TransformerStack(
            LayerOptions(
                architecture.width,
                layers=architecture.layers,
                heads=architecture.heads,
                feed_forward=architecture.feed_forward,
                norm="post",
                dropout=dropout,
                max_keys=architecture.positions,
            )
        )
        for block in self.stack:
            block.feed_forward[1] = ACTIVATIONS[architecture.activation]()  # type: ignore[operator]
            for norm in (block.own_norm, block.feed_norm):
                norm.eps = architecture.epsilon

    def forward(
        self,
        vectors: Float[Tensor, "b t w"],
        lengths: Int[Tensor, "b"],
        *,
        need_weights: bool = False,
    ) -> Context:
        """Encode the sequences, in which every token attends to every other."""
        passed = self.stack(
            vectors,
            masks.lengths(lengths),
            name="encoder",
            real=real_positions(vectors.shape[1], lengths),
            need_weights=need_weights,
        )
        return Context.from_states(passed.states, lengths, passed.weights)


class PlacedTokens(NamedTuple):
    """The tokens of words one after another, and where each word begins."""

    vectors: Float[Tensor, "b n e"]
    lengths: Int[Tensor, "b"]
    starts: Int[Tensor, "b t"]


def place_tokens(vectors: Float[Tensor, "b t _"], tokens: Int[Tensor, "b t p"]) -> PlacedTokens:
    """From the tokens of each word, padded with 0, to one sequence of tokens.

    Args:
        vectors: those of the tokens of a word side by side, [b, t, p · e].
        tokens: their numbers.
    """
    batch, _, most = tokens.shape
    flat = vectors.unflatten(-1, (most, -1)).flatten(1, 2)
    real = (tokens != 0).flatten(1)
    # a stable sort moves the tokens to the front and keeps their order
    order = (~real).to(torch.uint8).argsort(dim=1, stable=True)
    lengths = real.sum(1)
    order = order[:, : max(1, int(lengths.max()))]
    placed = flat.gather(1, order[:, :, None].expand(batch, order.shape[1], flat.shape[-1]))
    counts = (tokens != 0).sum(2)
    return PlacedTokens(placed, lengths, counts.cumsum(1) - counts)


def new_decision(size: int, labels: int) -> nn.Linear:
    """A linear layer with small initial weights, as is usual on top of pretrained states."""
    layer = nn.Linear(size, labels)
    nn.init.normal_(layer.weight, std=0.02)
    nn.init.zeros_(layer.bias)
    return layer
