"""Encoders: vectors of words in, vectors of words in context out; each says where it looked."""

from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention import masks
from regard.attention.normalizers import Normalizer
from regard.attention.scores import Score
from regard.layers import Block, Encoder, MultiHead
from regard.layers.recurrent import State
from regard.models.output import Weights, numbered, total


@dataclass(frozen=True)
class Context:
    """The states of a sequence, and what sums it up."""

    states: Float[Tensor, "b t m"]
    lengths: Int[Tensor, "b"]
    last: State
    """[b, m] each: the last state of the top layer, or a mean where there is no recurrence."""
    weights: Weights
    balance: Float[Tensor, ""] | None = None


class ContextEncoder(Protocol):
    """What every encoder offers."""

    size: int

    def __call__(self, vectors: Tensor, lengths: Tensor, *, need_weights: bool = False) -> Context:
        """The vectors in context."""
        ...


class RecurrentContext(nn.Module):
    """A recurrent network in both directions, or in one."""

    def __init__(
        self,
        width: int,
        hidden: int,
        *,
        cell: str = "gru",
        layers: int = 1,
        bidirectional: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.network = Encoder(
            width, hidden, cell=cell, layers=layers, bidirectional=bidirectional, dropout=dropout
        )
        self.size = self.network.size
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        vectors: Float[Tensor, "b t w"],
        lengths: Int[Tensor, "b"],
        *,
        need_weights: bool = False,
    ) -> Context:
        """Read the sequence; there is no attention here, so there are no weights."""
        states, last = self.network(vectors, lengths)
        return Context(self.dropout(states), lengths, tuple(part[:, -1] for part in last), {})


class TransformerContext(nn.Module):
    """Transformer blocks in which every word looks at every other."""

    def __init__(
        self,
        width: int,
        *,
        layers: int = 3,
        heads: int = 4,
        hidden: int | None = None,
        dropout: float = 0.0,
        norm: str = "pre",
        positions: str = "none",
        score: str | Score = "scaled_dot",
        normalize: str | Normalizer = "softmax",
        experts: int = 0,
        top_k: int | None = None,
        max_keys: int = 1024,
    ) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            Block(
                width,
                heads,
                hidden,
                norm=norm,
                dropout=dropout,
                score=score,
                normalize=normalize,
                positions=positions,
                experts=experts,
                top_k=top_k,
                max_keys=max_keys,
            )
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width) if norm == "pre" else nn.Identity()
        self.size = width

    def forward(
        self,
        vectors: Float[Tensor, "b t w"],
        lengths: Int[Tensor, "b"],
        *,
        need_weights: bool = False,
    ) -> Context:
        """Read the sequence."""
        mask, real = masks.lengths(lengths), real_places(vectors, lengths)
        weights: Weights = {}
        balances: list[Tensor | None] = []
        for layer, block in enumerate(self.blocks):
            passed = block(vectors, mask, real=real, need_weights=need_weights)
            vectors = passed.output
            balances.append(passed.balance)
            if need_weights:
                weights |= numbered(passed.weights, f"encoder.{layer}")
        return _summed_up(self.norm(vectors), lengths, real, weights, total(balances))


class SelfContext(nn.Module):
    """One layer of multi-head self-attention, without a feed-forward network: x + attend(x)."""

    def __init__(
        self,
        width: int,
        *,
        heads: int = 4,
        dropout: float = 0.0,
        score: str | Score = "scaled_dot",
        normalize: str | Normalizer = "softmax",
        max_keys: int = 1024,
    ) -> None:
        super().__init__()
        self.attention = MultiHead(
            width, heads, score=score, normalize=normalize, dropout=dropout, max_keys=max_keys
        )
        self.norm = nn.LayerNorm(width)
        self.size = width

    def forward(
        self,
        vectors: Float[Tensor, "b t w"],
        lengths: Int[Tensor, "b"],
        *,
        need_weights: bool = False,
    ) -> Context:
        """Let every word look at every other once."""
        looked = self.attention(vectors, mask=masks.lengths(lengths), need_weights=need_weights)
        weights = {} if looked.weights is None else {"encoder.0.self": looked.weights}
        states = self.norm(vectors + looked.output)
        return _summed_up(states, lengths, real_places(vectors, lengths), weights, None)


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
        return _summed_up(vectors, lengths, real_places(vectors, lengths), {}, None)


def real_places(vectors: Float[Tensor, "b t w"], lengths: Int[Tensor, "b"]) -> Tensor:
    """Bool [b, t], False at padding."""
    return torch.arange(vectors.shape[1], device=vectors.device) < lengths[:, None]


def _summed_up(
    states: Tensor, lengths: Tensor, real: Tensor, weights: Weights, balance: Tensor | None
) -> Context:
    states = states.masked_fill(~real[:, :, None], 0.0)
    mean = states.sum(1) / lengths.clamp(min=1)[:, None]
    return Context(states, lengths, (mean,), weights, balance)
