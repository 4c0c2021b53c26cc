"""A stack of transformer blocks: the body of encoders, decoders and language models."""

from collections.abc import Iterator
from typing import NamedTuple, cast

from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.masks import Mask
from regard.layers import Block, BlockCache, Cache
from regard.models.layer_options import LayerOptions
from regard.models.output import Weights, sum_losses

Caches = tuple[Cache, ...]
"""Keys and values of each layer."""


class StackOutput(NamedTuple):
    """Vectors after all blocks, weights of every attention, and the caches for the next step."""

    states: Float[Tensor, "b t w"]
    weights: Weights
    balance: Float[Tensor, ""] | None
    caches: Caches


class TransformerStack(nn.Module):
    """Transformer blocks, and a final layer norm where blocks normalize before each part."""

    def __init__(self, options: LayerOptions, *, source_width: int | None = None) -> None:
        """Make the blocks.

        Args:
            options: sizes and choices of all blocks.
            source_width: size of the vectors of a source to attend to (default: no source).
        """
        super().__init__()
        self.width = options.width
        self.blocks = nn.ModuleList(
            Block(
                options.width,
                options.heads,
                options.feed_forward,
                source_width=source_width,
                norm=options.norm,
                dropout=options.dropout,
                score="scaled_dot" if options.score is None else options.score,
                normalize=options.normalize,
                experts=options.experts,
                top_k=options.top_k,
                max_keys=options.max_keys,
            )
            for _ in range(options.layers)
        )
        self.norm = nn.LayerNorm(self.width) if options.norm == "pre" else nn.Identity()

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
    ) -> StackOutput:
        """Pass all blocks.

        Args:
            states: the vectors; with `own`, those of the new positions alone.
            mask: which positions of the sequence each position may attend to.
            name: prefix of the names of the weights: name.layer.part.
            own: caches of earlier positions.
            source: caches of a source.
            source_mask: which positions of the source each position may attend to.
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
                cache=_block_cache(layer, own, source),
                source_mask=source_mask,
                real=real,
                need_weights=need_weights,
            )
            states = passed.output
            balances.append(passed.balance)
            caches.append(passed.cache.own)
            if need_weights:
                for part, tensor in passed.weights.items():
                    # experts are chosen by the whole vector, not by a head of it
                    by_head = tensor[:, None] if tensor.ndim == 3 else tensor
                    weights[f"{name}.{layer}.{part}"] = by_head
        return StackOutput(self.norm(states), weights, sum_losses(balances), tuple(caches))

    def empty_caches(self, batch: int) -> Caches:
        """Caches before the first position."""
        no_positions = next(self.parameters()).new_zeros(batch, 0, self.width)
        return tuple(block.own.remember(no_positions) for block in self)

    def source_caches(self, source: Float[Tensor, "b k m"]) -> Caches:
        """Keys and values of the source, projected once for all steps."""
        return tuple(block.source.remember(source) for block in self if block.source is not None)

    def __iter__(self) -> Iterator[Block]:
        return (cast(Block, block) for block in self.blocks)


def _block_cache(layer: int, own: Caches | None, source: Caches | None) -> BlockCache | None:
    if own is None:
        return None
    return BlockCache(own[layer], None if source is None else source[layer])
