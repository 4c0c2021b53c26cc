"""The encoder of a transformer with packed products; attention itself is torch's.

Products skip padding: they take the vectors of real words only.
"""

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from regard.layers import Block
from regard.models.encoders import (
    Context,
    RecurrentEncoder,
    TransformerEncoder,
    real_positions,
)
from regard.models.native.native_plan import joined_layers, only_watches, why_not_block
from regard.models.native.native_products import PackedLinear, Precision
from regard.models.native.native_recurrence import NativeRecurrentEncoder, can_read


def native_encoder(
    encoder: nn.Module, quantize: Precision
) -> "NativeEncoder | NativeRecurrentEncoder | None":
    """The compiled encoder, or None where it stays as it is."""
    for module in encoder.modules():
        hooks = [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]
        if not all(map(only_watches, hooks)) or "forward" in vars(module):
            return None
    if isinstance(encoder, RecurrentEncoder) and can_read(encoder):
        return NativeRecurrentEncoder(encoder, quantize)
    if isinstance(encoder, TransformerEncoder) and _can_encode(encoder):
        return NativeEncoder(encoder, quantize)
    return None


def _can_encode(encoder: TransformerEncoder) -> bool:
    if type(encoder) is not TransformerEncoder or encoder.reach is not None:
        return False
    return all(
        why_not_block(block, [block.own]) is None and block.source is None
        for block in encoder.stack
    )


class NativeEncoder:
    """A compiled transformer encoder: the context that the encoder itself would give."""

    def __init__(self, encoder: TransformerEncoder, quantize: Precision) -> None:
        self.layers = [_NativeBlock(block, quantize) for block in encoder.stack]
        self.norm = encoder.stack.norm

    def __call__(
        self,
        vectors: Float[Tensor, "b t w"],
        lengths: Int[Tensor, "b"],
        *,
        need_weights: bool = False,
    ) -> Context:
        """Encode the sequences."""
        real = real_positions(vectors.shape[1], lengths)
        states, weights = vectors[real], dict[str, Tensor]()
        for number, layer in enumerate(self.layers):
            states, look = layer(states, real, need_weights)
            if look is not None:
                weights[f"encoder.{number}.self"] = look
        return Context.from_states(_spread(self.norm(states), real), lengths, weights)


class _NativeBlock:
    """One layer of the encoder."""

    def __init__(self, block: Block, quantize: Precision) -> None:
        def packed(*layers: nn.Linear) -> PackedLinear:
            return PackedLinear(*joined_layers(*layers), quantize)

        own, feed_forward = block.own, block.feed_forward
        assert isinstance(feed_forward, nn.Sequential)  # experts are not compiled
        self.heads, self.norm_first = own.heads, block.norm_first
        self.scale: float | None = getattr(own.score, "scale", None)
        self.own_norm, self.feed_norm = block.own_norm, block.feed_norm
        self.queries, self.output = packed(own.query, own.key, own.value), packed(own.output)
        first, *_, last = feed_forward
        assert isinstance(first, nn.Linear)
        assert isinstance(last, nn.Linear)
        self.hidden, self.fed = packed(first), packed(last)

    def __call__(
        self, states: Float[Tensor, "n w"], real: Tensor, need_weights: bool
    ) -> tuple[Float[Tensor, "n w"], Tensor | None]:
        mixed, look = self._attend(self._before(states, self.own_norm), real, need_weights)
        states = self._after(self.output(mixed, states), self.own_norm)
        hidden = self.hidden(self._before(states, self.feed_norm), activation="gelu")
        return self._after(self.fed(hidden, states), self.feed_norm), look

    def _attend(
        self, states: Tensor, real: Tensor, need_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        parts = _spread(self.queries(states), real).unflatten(-1, (3, self.heads, -1))
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mask = None if bool(real.all()) else real[:, None, None]
        attended = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, scale=self.scale
        )
        look = None
        if need_weights:
            scale = query.shape[-1] ** -0.5 if self.scale is None else self.scale
            scores = (query * scale) @ key.mT
            look = scores if mask is None else scores.masked_fill(~mask, float("-inf"))
            look = look.softmax(-1)
        return attended.transpose(1, 2).flatten(2)[real], look

    def _before(self, states: Tensor, norm: nn.Module) -> Tensor:
        normed: Tensor = norm(states) if self.norm_first else states
        return normed

    def _after(self, states: Tensor, norm: nn.Module) -> Tensor:
        normed: Tensor = states if self.norm_first else norm(states)
        return normed


def _spread(vectors: Float[Tensor, "n w"], real: Tensor) -> Float[Tensor, "b t w"]:
    """The vectors of real words at their places, zeros at padding."""
    padded = vectors.new_zeros(*real.shape, vectors.shape[-1])
    padded[real] = vectors
    return padded
