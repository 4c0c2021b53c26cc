"""Transformer blocks, one on the other: the body of encoders, decoders and language models."""

from collections.abc import Iterator
from typing import NamedTuple, cast

from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.masks import Mask
from regard.attention.normalizers import Normalizer
from regard.attention.scores import Score
from regard.layers import Block, BlockCache, Cache
from regard.models.output import Weights, total

Caches = tuple[Cache, ...]
"""Keys and values of each layer."""


class Stacked(NamedTuple):
    """The vectors after all blocks, where each looked, and what the next step needs."""

    states: Float[Tensor, "b t w"]
    weights: Weights
    balance: Float[Tensor, ""] | None
    caches: Caches


class Stack(nn.Module):
    """Blocks, and a last layer norm where the blocks have theirs before each part."""

    def __init__(
        self,
        width: int,
        layers: int,
        *,
        source_width: int | None = None,
        heads: int = 4,
        hidden: int | None = None,
        norm: str = "pre",
        dropout: float = 0.0,
        score: str | Score = "scaled_dot",
        normalize: str | Normalizer = "softmax",
        experts: int = 0,
        top_k: int | None = None,
        max_keys: int = 1024,
    ) -> None:
        """Make the blocks; the arguments are those of `regard.layers.Block`."""
        super().__init__()
        self.width = width
        self.blocks = nn.ModuleList(
            Block(
                width,
                heads,
                hidden,
                source_width=source_width,
                norm=norm,
                dropout=dropout,
                score=score,
                normalize=normalize,
                experts=experts,
                top_k=top_k,
                max_keys=max_keys,
            )
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width) if norm == "pre" else nn.Identity()

    def forward(
        self,
        states: Float[Tensor, "b t w"],
        mask: Mask | None = None,
        *,
        name: str,
        own: Caches | None = None,
        source: Caches | None = None,
        source_mask: Mask | None = None,
        real: Bool[Tensor, "b t"] | None = None,
        need_weights: bool = False,
    ) -> Stacked:
        """Pass all blocks.

        Args:
            states: the vectors; with `own`, those of the new positions alone.
            mask: who may look at whom within the sequence.
            name: where this stack stands; its weights are called name.layer.part.
            own: what was remembered of earlier positions.
            source: what was remembered of a source.
            source_mask: who may look where in the source.
            real: False at padding, which reaches no expert.
            need_weights: whether weights are returned.
        """
        weights: Weights = {}
        balances: list[Tensor | None] = []
        caches: list[Cache] = []
        for layer, block in enumerate(self):
            passed = block(
                states,
                mask,
                cache=_cache(layer, own, source),
                source_mask=source_mask,
                real=real,
                need_weights=need_weights,
            )
            states = passed.output
            balances.append(passed.balance)
            caches.append(passed.cache.own)
            if need_weights:
                for part, look in passed.weights.items():
                    # experts are chosen by the whole vector, not by a head of it
                    weights[f"{name}.{layer}.{part}"] = look[:, None] if look.ndim == 3 else look
        return Stacked(self.norm(states), weights, total(balances), tuple(caches))

    def nothing(self, batch: int) -> Caches:
        """What is remembered before the first position."""
        nowhere = next(self.parameters()).new_zeros(batch, 0, self.width)
        return tuple(block.own.remember(nowhere) for block in self)

    def remember(self, source: Float[Tensor, "b k m"]) -> Caches:
        """Keys and values of the source, projected once for all steps."""
        return tuple(block.source.remember(source) for block in self if block.source is not None)

    def __iter__(self) -> Iterator[Block]:
        return (cast(Block, block) for block in self.blocks)


def _cache(layer: int, own: Caches | None, source: Caches | None) -> BlockCache | None:
    if own is None:
        return None
    return BlockCache(own[layer], None if source is None else source[layer])
