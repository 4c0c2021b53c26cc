"""Encoders: vectors of words in, vectors of words in context out; each says where it looked."""

from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention import masks, normalizers, scores
from regard.attention.normalizers import Normalizer
from regard.attention.scores import Score
from regard.errors import unknown
from regard.layers import Encoder, MultiHead
from regard.layers.recurrent import SEQUENCES, State
from regard.models.output import Weights
from regard.models.stack import Stack

ENCODERS = ("none", "self", "recurrent", "transformer")


@dataclass(frozen=True)
class Context:
    """The states of a sequence, and what sums it up."""

    states: Float[Tensor, "b t m"]
    lengths: Int[Tensor, "b"]
    last: State
    """[b, m] each: the last state of the top layer, or a mean where there is no recurrence."""
    weights: Weights = field(default_factory=dict)
    balance: Float[Tensor, ""] | None = None


class RecurrentContext(nn.Module):
    """A recurrent network in both directions."""

    def __init__(
        self,
        width: int,
        hidden: int,
        *,
        cell: str = "gru",
        layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.network = Encoder(width, hidden, cell=cell, layers=layers, dropout=dropout)
        self.size = self.network.size

    def forward(
        self,
        vectors: Float[Tensor, "b t w"],
        lengths: Int[Tensor, "b"],
        *,
        need_weights: bool = False,
    ) -> Context:
        """Read the sequence; there is no attention here, so there are no weights."""
        states, last = self.network(vectors, lengths)
        return Context(states, lengths, tuple(part[:, -1] for part in last))


class TransformerContext(nn.Module):
    """Transformer blocks in which every word looks at every other."""

    def __init__(self, stack: Stack) -> None:
        super().__init__()
        self.stack = stack
        self.size = stack.width

    def forward(
        self,
        vectors: Float[Tensor, "b t w"],
        lengths: Int[Tensor, "b"],
        *,
        need_weights: bool = False,
    ) -> Context:
        """Read the sequence."""
        passed = self.stack(
            vectors,
            masks.lengths(lengths),
            name="encoder",
            real=real_places(vectors.shape[1], lengths),
            need_weights=need_weights,
        )
        return _summed_up(passed.states, lengths, passed.weights, passed.balance)


class SelfContext(nn.Module):
    """One layer of multi-head self-attention, without a feed-forward network.

    z = norm(x + attend(x)).
    """

    def __init__(
        self,
        width: int,
        *,
        heads: int = 4,
        dropout: float = 0.0,
        score: str | Score = "scaled_dot",
        normalize: str | Normalizer = "softmax",
        max_keys: int = 1024,
        name: str = "encoder.0.self",
    ) -> None:
        """Make the layer; its weights are called `name`."""
        super().__init__()
        self.attention = MultiHead(
            width, heads, score=score, normalize=normalize, dropout=dropout, max_keys=max_keys
        )
        self.norm = nn.LayerNorm(width)
        self.size, self.name = width, name

    def forward(
        self,
        vectors: Float[Tensor, "b t w"],
        lengths: Int[Tensor, "b"],
        *,
        need_weights: bool = False,
    ) -> Context:
        """Let every word look at every other once."""
        looked = self.attention(vectors, mask=masks.lengths(lengths), need_weights=need_weights)
        weights = {} if looked.weights is None else {self.name: looked.weights}
        return _summed_up(self.norm(vectors + looked.output), lengths, weights)


class NoContext(nn.Module):
    """The words as they are: a set, without order."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.size = width

    def forward(
        self,
        vectors: Float[Tensor, "b t w"],
        lengths: Int[Tensor, "b"],
        *,
        need_weights: bool = False,
    ) -> Context:
        """Pass the vectors on."""
        return _summed_up(vectors, lengths, {})


ContextEncoder = RecurrentContext | TransformerContext | SelfContext | NoContext


def encoder(
    kind: str,
    width: int,
    *,
    hidden: int | None = None,
    cell: str = "gru",
    layers: int = 1,
    heads: int = 4,
    feed_forward: int | None = None,
    norm: str = "pre",
    dropout: float = 0.0,
    score: str | Score = "scaled_dot",
    normalize: str | Normalizer = "softmax",
    experts: int = 0,
    top_k: int | None = None,
    max_keys: int = 1024,
) -> ContextEncoder:
    """What gives vectors their context.

    Args:
        kind: none, self, recurrent or transformer.
        width: size of the vectors.
        hidden: size of a recurrent state in each direction; `width` unless said.
        cell: elman, gru or lstm, where it is recurrent.
        layers: how many, where it is recurrent or a transformer.
        heads: of self-attention.
        feed_forward: hidden size of a transformer's feed-forward network.
        norm: of a transformer, pre or post.
        dropout: between recurrent layers, or within blocks.
        score: any score, for self-attention.
        normalize: any normalizer.
        experts: so many in each block instead of one feed-forward network.
        top_k: how many experts see a word.
        max_keys: the longest sequence for the score "location".
    """
    known(cell=cell, score=score, normalize=normalize)
    if kind == "none":
        return NoContext(width)
    if kind == "recurrent":
        return RecurrentContext(width, hidden or width, cell=cell, layers=layers, dropout=dropout)
    if kind == "self":
        return SelfContext(
            width,
            heads=heads,
            dropout=dropout,
            score=score,
            normalize=normalize,
            max_keys=max_keys,
        )
    if kind == "transformer":
        stack = Stack(
            width,
            layers,
            heads=heads,
            hidden=feed_forward,
            norm=norm,
            dropout=dropout,
            score=score,
            normalize=normalize,
            experts=experts,
            top_k=top_k,
            max_keys=max_keys,
        )
        return TransformerContext(stack)
    raise ValueError(unknown("encoder", kind, ENCODERS))


def known(*, cell: str, score: str | Score, normalize: str | Normalizer) -> None:
    """Refuse a name that is in no table, whether this model has a use for it or not."""
    if cell not in SEQUENCES:
        raise ValueError(unknown("cell", cell, SEQUENCES))
    table = [*scores.WEIGHTLESS, *scores.LEARNED]
    if isinstance(score, str) and score not in table:
        raise ValueError(unknown("score", score, table))
    normalizers.named(normalize)


def real_places(length: int, lengths: Int[Tensor, "b"]) -> Bool[Tensor, "b t"]:
    """False at padding."""
    return torch.arange(length, device=lengths.device) < lengths[:, None]


def _summed_up(
    states: Tensor, lengths: Tensor, weights: Weights, balance: Tensor | None = None
) -> Context:
    real = real_places(states.shape[1], lengths)
    states = states.masked_fill(~real[:, :, None], 0.0)
    mean = states.sum(1) / lengths.clamp(min=1)[:, None]
    return Context(states, lengths, (mean,), weights, balance)
