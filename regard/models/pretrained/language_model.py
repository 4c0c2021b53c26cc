"""A pretrained language model in Regard's own blocks: GPT-2, Llama and their like.

GPT-2 is a pre-norm transformer with learned positions. Llama normalizes by the root mean square
(Zhang and Sennrich, 2019, https://arxiv.org/abs/1910.07467), turns queries and keys by their
positions, shares key heads among query heads, and has gated feed-forward networks (Shazeer, 2020,
https://arxiv.org/abs/2002.05202).
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.positions import Learned, Rotation
from regard.layers import MultiHead
from regard.layers.dropout import Dropout
from regard.models.causal_networks import TransformerNetwork
from regard.models.language import LanguageModel
from regard.models.layer_options import LayerOptions
from regard.models.pretrained.architecture import Activation, DecoderArchitecture
from regard.models.pretrained.encoder import ACTIVATIONS, WordTable

BEGIN, END = 2, 3
"""`<bos>` and `<eos>` in every tokenizer."""


class PlacedWords(nn.Module):
    """Vectors of words, with those of their positions where these are learned."""

    def __init__(self, architecture: DecoderArchitecture, dropout: float) -> None:
        super().__init__()
        width = architecture.width
        self.words = WordTable(architecture.vocabulary, width)
        learned = architecture.places == "learned"
        self.places = Learned(architecture.positions, width) if learned else None
        self.dropout = Dropout(dropout)

    def forward(self, ids: Int[Tensor, "b t"], offset: int = 0) -> Float[Tensor, "b t w"]:
        """Vectors of the words; `offset` is the position of the first."""
        vectors: Tensor = self.words(ids)
        if self.places is not None:
            vectors = vectors + self.places(ids.shape[1], offset)
        dropped: Tensor = self.dropout(vectors)
        return dropped


class TokenLogits(nn.Module):
    """A logit for each token; tokens that the model does not have get minus infinity."""

    absent: Tensor

    def __init__(self, architecture: DecoderArchitecture, tied: WordTable) -> None:
        super().__init__()
        rows = architecture.vocabulary
        own = None if architecture.tied else nn.Parameter(torch.empty(rows, architecture.width))
        self.weight = own
        if own is not None:
            nn.init.normal_(own, std=0.02)
        # in a list, so that the table has one name in the state dict
        self.tied = [tied]
        present = torch.ones(rows, dtype=torch.bool)
        present[:BEGIN] = torch.tensor([architecture.has_padding, architecture.has_unknown])
        present[BEGIN] = architecture.has_begin
        absent = torch.zeros(rows).masked_fill_(~present, float("-inf"))
        self.register_buffer("absent", absent, persistent=False)

    def forward(
        self, states: Float[Tensor, "*n w"], among: Int[Tensor, "some"] | None = None
    ) -> Float[Tensor, "*n v"]:
        """Logits of all tokens, or of some."""
        table = self.tied[0].weight if self.weight is None else self.weight
        if among is not None:
            return F.linear(states, table[among], self.absent[among])
        return F.linear(states, table, self.absent)


class GatedFeedForward(nn.Module):
    """W₂ (f(W_g x) · W₁ x), at each position independently."""

    def __init__(
        self, width: int, hidden: int, activation: Activation, dropout: float, *, bias: bool
    ) -> None:
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias)
        self.inner = nn.Linear(width, hidden, bias)
        self.outer = nn.Linear(hidden, width, bias)
        self.activation = ACTIVATIONS[activation]()  # type: ignore[operator]
        self.dropout = Dropout(dropout)

    def forward(self, states: Float[Tensor, "*b w"]) -> Float[Tensor, "*b w"]:
        """The states after the network."""
        hidden = self.activation(self.gate(states)) * self.inner(states)
        outer: Tensor = self.outer(self.dropout(hidden))
        return outer


class PretrainedLanguageModel(LanguageModel):
    """A language model whose parts are those of a pretrained one."""

    def __init__(self, architecture: DecoderArchitecture, dropout: float) -> None:
        """Build it with initial weights."""
        nn.Module.__init__(self)
        self.architecture = architecture
        self.start_token = BEGIN if architecture.begins else END  # type: ignore[misc]
        self.positions = architecture.positions  # type: ignore[misc]
        inputs = PlacedWords(architecture, dropout)
        self.embedding = inputs  # type: ignore[assignment]
        self.body = _blocks(architecture, dropout)
        self.label = self.vector = self.narrow = self.ngrams = None
        self.words = TokenLogits(architecture, inputs.words)  # type: ignore[assignment]


def _blocks(architecture: DecoderArchitecture, dropout: float) -> TransformerNetwork:
    network = TransformerNetwork(
        LayerOptions(
            architecture.width,
            layers=architecture.layers,
            heads=1,  # each attention is replaced
            feed_forward=1 if architecture.gated else architecture.feed_forward,
            dropout=dropout,
            max_keys=architecture.positions,
        )
    )
    for block in network.stack:
        block.own = _attention(architecture, dropout)
        if architecture.gated:
            block.feed_forward = GatedFeedForward(  # type: ignore[assignment]
                architecture.width,
                architecture.feed_forward,
                architecture.activation,
                dropout,
                bias=architecture.feed_bias,
            )
        else:
            block.feed_forward[1] = ACTIVATIONS[architecture.activation]()  # type: ignore[operator]
        for name in ("own_norm", "feed_norm"):
            setattr(block, name, _norm(architecture))
    network.stack.norm = _norm(architecture)  # type: ignore[assignment]
    return network


def _attention(architecture: DecoderArchitecture, dropout: float) -> MultiHead:
    width, heads, size = architecture.width, architecture.heads, architecture.head_size
    attention = MultiHead(
        width,
        heads,
        head_size=size,
        key_heads=architecture.key_heads,
        positions="rotary" if architecture.places == "rotary" else "none",
        rotation=Rotation(
            architecture.rotary_base,
            architecture.rotary_factor,
            architecture.rotary_first_length,
            architecture.rotary_slow,
            architecture.rotary_fast,
        ),
        dropout=dropout,
        bias=architecture.query_bias,
    )
    if architecture.output_bias != architecture.query_bias:
        attention.output = nn.Linear(heads * size, width, architecture.output_bias)
    return attention


def _norm(architecture: DecoderArchitecture) -> nn.LayerNorm | nn.RMSNorm:
    kind = nn.LayerNorm if architecture.norm == "layer" else nn.RMSNorm
    return kind(architecture.width, architecture.epsilon)
