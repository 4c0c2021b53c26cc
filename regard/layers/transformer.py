"""The transformer block: self-attention, optionally attention to a source, and feed-forward.

Each part is added to its input, with a layer norm before it ("pre") or after the sum ("post").

Vaswani et al., 2017, https://arxiv.org/abs/1706.03762; norm before: Xiong et al., 2020,
https://arxiv.org/abs/2002.04745
"""

from typing import NamedTuple

import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.masks import Mask
from regard.attention.normalizers import Normalizer
from regard.attention.scores import Score
from regard.errors import unknown
from regard.layers.dropout import Dropout
from regard.layers.expected_size import expect_size
from regard.layers.experts import Experts
from regard.layers.multihead import Cache, MultiHead

NORMS = ("pre", "post")


class BlockCache(NamedTuple):
    """Keys and values so far, of the sequence itself and of the source."""

    own: Cache
    source: Cache | None


class BlockOutput(NamedTuple):
    """The vectors after the block, attention weights by name, and what the next step needs."""

    output: Float[Tensor, "*b q w"]
    weights: dict[str, Tensor]
    """"self" and "source" [*b, h, q, k] when requested; "experts" [*b, q, e] if there are any."""
    cache: BlockCache
    balance: Float[Tensor, ""] | None
    """The load-balancing loss of the experts."""


class Block(nn.Module):
    """One layer of a transformer, encoder or decoder, with or without attention to a source.

    pre: x ← x + part(norm(x)); post: x ← norm(x + part(x)).
    """

    def __init__(
        self,
        width: int,
        heads: int,
        hidden: int | None = None,
        *,
        source_width: int | None = None,
        norm: str = "pre",
        dropout: float = 0.0,
        score: str | Score = "scaled_dot",
        normalize: str | Normalizer = "softmax",
        positions: str = "none",
        key_heads: int | None = None,
        experts: int = 0,
        top_k: int | None = None,
        max_keys: int = 512,
    ) -> None:
        """Make the block.

        Args:
            width: size of the vectors.
            heads: number of heads.
            hidden: hidden size of the feed-forward network (default: 4 · width).
            source_width: size of the vectors of a source to attend to; None for no such part.
            norm: layer norm "pre" each part or "post" its sum.
            dropout: on weights, hidden layer (not that of experts) and the output of each part, in
                training.
            score: any score, for both attentions.
            normalize: any normalizer.
            positions: "rotary" or "linear", for the attention to the sequence itself.
            key_heads: fewer key heads than query heads.
            experts: number of feed-forward networks, mixed by a gate; 0 for a single one.
            top_k: how many experts process a vector (default: all).
            max_keys: the longest sequence for the score "location".
        """
        super().__init__()
        if norm not in NORMS:
            raise ValueError(unknown("norm", norm, NORMS))
        if top_k is not None and not experts:
            raise ValueError(f"top_k={top_k} chooses among experts, but there are none: experts=0")
        hidden = 4 * width if hidden is None else hidden
        self.width, self.norm_first = width, norm == "pre"

        def attention(key_width: int, positions: str) -> MultiHead:
            return MultiHead(
                width,
                heads,
                key_width=key_width,
                key_heads=key_heads,
                score=score,
                normalize=normalize,
                positions=positions,
                dropout=dropout,
                max_keys=max_keys,
            )

        self.own = attention(width, positions)
        self.own_norm = nn.LayerNorm(width)
        self.source = None if source_width is None else attention(source_width, "none")
        self.source_norm = nn.Identity() if source_width is None else nn.LayerNorm(width)
        self.feed_forward = (
            Experts(width, hidden, experts, top_k=top_k, activation=F.gelu)
            if experts
            else feed_forward(width, hidden, dropout)
        )
        self.feed_norm = nn.LayerNorm(width)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        states: Float[Tensor, "*b q w"],
        mask: Mask | Tensor | None = None,
        *,
        source: Float[Tensor, "*b k s"] | None = None,
        source_mask: Mask | Tensor | None = None,
        cache: BlockCache | None = None,
        real: Bool[Tensor, "*b q"] | None = None,
        need_weights: bool = True,
    ) -> BlockOutput:
        """Pass the block.

        Args:
            states: the vectors; with a cache, those of the new positions alone.
            mask: which positions of the sequence each one may attend to.
            source: vectors of the source; with a cache they are already in it.
            source_mask: which positions of the source may be attended to.
            cache: what an earlier call returned.
            real: False at padding, which then reaches no expert and does not count in the balance.
            need_weights: whether weights are returned; the output is the same without.
        """
        expect_size("the sequence", states, self.width)
        weights: dict[str, Tensor | None] = {}
        own = self.own(
            self._before(states, self.own_norm),
            mask=mask,
            cache=None if cache is None else cache.own,
            need_weights=need_weights,
        )
        weights["self"] = own.weights
        states = self._after(states, own.output, self.own_norm)
        remembered = self._remember(source, cache)
        if self.source is not None and remembered is not None:
            before = self._before(states, self.source_norm)
            read = self.source.read(before, remembered, source_mask, need_weights=need_weights)
            weights["source"] = read.weights
            states = self._after(states, read.output, self.source_norm)
        before, balance = self._before(states, self.feed_norm), None
        if isinstance(self.feed_forward, Experts):
            fed, weights["experts"], balance = self.feed_forward(before, real)
        else:
            fed = self.feed_forward(before)
        return BlockOutput(
            self._after(states, fed, self.feed_norm),
            {name: look for name, look in weights.items() if look is not None},
            BlockCache(own.cache, remembered),
            balance,
        )

    def _remember(self, source: Tensor | None, cache: BlockCache | None) -> Cache | None:
        """Keys and values of the source, from the cache if they are there."""
        if self.source is None:
            if source is not None:
                raise ValueError(
                    "this block has no attention to a source: make it with source_width="
                )
            return None
        if cache is not None and cache.source is not None:
            return cache.source
        if source is None:
            raise ValueError(
                "this block attends to a source: pass source=, or a cache= that holds it"
            )
        return self.source.remember(source)

    def _before(self, states: Tensor, norm: nn.Module) -> Tensor:
        return norm(states) if self.norm_first else states

    def _after(self, states: Tensor, change: Tensor, norm: nn.Module) -> Tensor:
        total: Tensor = states + self.dropout(change)
        return total if self.norm_first else norm(total)


def feed_forward(width: int, hidden: int, dropout: float) -> nn.Sequential:
    """W₂ gelu(W₁ x), at each position independently."""
    return nn.Sequential(
        nn.Linear(width, hidden), nn.GELU(), Dropout(dropout), nn.Linear(hidden, width)
    )
