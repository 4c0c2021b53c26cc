"""Encoders: word vectors in, vectors of words in context out, with the attention weights.

An encoder is a module class that is built from one `LayerOptions` record::

    class Convolution(nn.Module):
        needs_positions = False  # whether position encodings are added to its input
        attends = False  # whether it has heads, whose number must divide the width
        can_be_causal = False  # whether it reads nothing ahead where options.causal is set

        def __init__(self, options: LayerOptions) -> None:
            super().__init__()
            self.size = options.width  # size of its states
            self.layer = nn.Conv1d(options.width, options.width, 3, padding=1)

        def forward(self, vectors, lengths, *, need_weights=False) -> Context:
            real = real_positions(vectors.shape[1], lengths)[:, :, None]
            states = self.layer(vectors.masked_fill(~real, 0.0).mT).mT
            return Context.from_states(states, lengths)

`ENCODERS` has one row per name. Another package adds rows with entry points in the group
"regard.encoders"; wherever an encoder is given by name, a reference "package.module:Class" serves
as well.
"""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention import masks
from regard.layers import Encoder, MultiHead
from regard.layers.recurrent import State
from regard.models.layer_options import LayerOptions
from regard.models.model_tables import ENCODERS
from regard.models.output import Weights
from regard.models.transformer_stack import TransformerStack


@dataclass(frozen=True)
class Context:
    """The output of an encoder: the states of a sequence, and their summary."""

    states: Float[Tensor, "b t m"]
    """Zeros at padding."""
    lengths: Int[Tensor, "b"]
    last: State
    """[b, m] each: the last state of the top layer, or the mean where there is no recurrence."""
    weights: Weights = field(default_factory=dict)
    balance: Float[Tensor, ""] | None = None

    @classmethod
    def from_states(
        cls,
        states: Float[Tensor, "b t m"],
        lengths: Int[Tensor, "b"],
        weights: Weights | None = None,
        balance: Float[Tensor, ""] | None = None,
    ) -> "Context":
        """States summarized by their mean; what stands at padding is replaced by zeros."""
        real = real_positions(states.shape[1], lengths)
        states = states.masked_fill(~real[:, :, None], 0.0)
        mean = states.sum(1) / lengths.clamp(min=1)[:, None]
        return cls(states, lengths, (mean,), weights or {}, balance)


class ContextEncoder(Protocol):
    """What every encoder is.

    The class attributes `needs_positions`, `attends`, `directions` and `can_be_causal` are
    optional. Language models and algorithm models take encoders that can be causal.
    """

    size: int
    """Size of the states."""

    def __call__(
        self,
        vectors: Float[Tensor, "b t w"],
        lengths: Int[Tensor, "b"],
        *,
        need_weights: bool = False,
    ) -> Context:
        """Encode the sequences; what stands behind the lengths changes nothing."""


class RecurrentEncoder(nn.Module):
    """A recurrent network in both directions, or forwards alone where it has to be causal."""

    needs_positions: ClassVar[bool] = False
    attends: ClassVar[bool] = False
    directions: ClassVar[int] = 2
    """States are so many times as wide as the recurrent state."""
    can_be_causal: ClassVar[bool] = True

    def __init__(self, options: LayerOptions) -> None:
        super().__init__()
        self.network = Encoder(
            options.width,
            options.hidden or options.width,
            cell=options.cell,
            layers=options.layers,
            bidirectional=not options.causal,
            dropout=options.dropout,
        )
        self.size = self.network.size

    def forward(
        self,
        vectors: Float[Tensor, "b t w"],
        lengths: Int[Tensor, "b"],
        *,
        need_weights: bool = False,
    ) -> Context:
        """Encode the sequences; there is no attention, so there are no weights."""
        states, last = self.network(vectors, lengths)
        return Context(states, lengths, tuple(part[:, -1] for part in last))


class TransformerEncoder(nn.Module):
    """Transformer blocks in which every word attends to every other."""

    needs_positions: ClassVar[bool] = True
    attends: ClassVar[bool] = True
    directions: ClassVar[int] = 1
    can_be_causal: ClassVar[bool] = True

    def __init__(self, options: LayerOptions) -> None:
        super().__init__()
        self.stack = TransformerStack(options)
        self.size = self.stack.width
        self.reach = options.max_keys if options.causal else None

    def forward(
        self,
        vectors: Float[Tensor, "b t w"],
        lengths: Int[Tensor, "b"],
        *,
        need_weights: bool = False,
    ) -> Context:
        """Encode the sequences."""
        passed = self.stack(
            vectors,
            _mask(lengths, vectors.shape[1], self.reach),
            name="encoder",
            real=real_positions(vectors.shape[1], lengths),
            need_weights=need_weights,
        )
        return Context.from_states(passed.states, lengths, passed.weights, passed.balance)


class SelfAttentionEncoder(nn.Module):
    """One layer of multi-head self-attention, without a feed-forward network.

    z = norm(x + attend(x)).
    """

    needs_positions: ClassVar[bool] = False
    attends: ClassVar[bool] = True
    directions: ClassVar[int] = 1
    can_be_causal: ClassVar[bool] = True

    def __init__(self, options: LayerOptions, *, name: str = "encoder.0.self") -> None:
        """Make the layer; `name` is that of its weights."""
        super().__init__()
        self.attention = MultiHead(
            options.width,
            options.heads,
            score="scaled_dot" if options.score is None else options.score,
            normalize=options.normalize,
            dropout=options.dropout,
            max_keys=options.max_keys,
        )
        self.norm = nn.LayerNorm(options.width)
        self.size, self.name = options.width, name
        self.reach = options.max_keys if options.causal else None

    def forward(
        self,
        vectors: Float[Tensor, "b t w"],
        lengths: Int[Tensor, "b"],
        *,
        need_weights: bool = False,
    ) -> Context:
        """Let every word attend to every other once, or to those before it and itself."""
        mask = _mask(lengths, vectors.shape[1], self.reach)
        attended = self.attention(vectors, mask=mask, need_weights=need_weights)
        weights = {} if attended.weights is None else {self.name: attended.weights}
        return Context.from_states(self.norm(vectors + attended.output), lengths, weights)


class RecurrentSelfEncoder(nn.Module):
    """A recurrent network, then one layer of multi-head self-attention over its states.

    h = recurrent(x), z = norm(h + attend(h)). The recurrence gives words their order; attention
    joins words that are far apart, and shows which. After Lin et al., 2017,
    https://arxiv.org/abs/1703.03130, who attend to the states of a recurrent encoder.
    """

    needs_positions: ClassVar[bool] = False
    attends: ClassVar[bool] = True
    directions: ClassVar[int] = 2
    can_be_causal: ClassVar[bool] = True

    def __init__(self, options: LayerOptions) -> None:
        super().__init__()
        self.recurrent = RecurrentEncoder(options)
        self.attention = SelfAttentionEncoder(replace(options, width=self.recurrent.size))
        self.size = self.recurrent.size

    def forward(
        self,
        vectors: Float[Tensor, "b t w"],
        lengths: Int[Tensor, "b"],
        *,
        need_weights: bool = False,
    ) -> Context:
        """Encode the sequences; their summary is the last state of the recurrent network."""
        read = self.recurrent(vectors, lengths)
        attended: Context = self.attention(read.states, lengths, need_weights=need_weights)
        return replace(attended, last=read.last)


class IdentityEncoder(nn.Module):
    """The words as they are, without context or order."""

    needs_positions: ClassVar[bool] = False
    attends: ClassVar[bool] = False
    directions: ClassVar[int] = 1
    can_be_causal: ClassVar[bool] = True

    def __init__(self, options: LayerOptions) -> None:
        super().__init__()
        self.size = options.width

    def forward(
        self,
        vectors: Float[Tensor, "b t w"],
        lengths: Int[Tensor, "b"],
        *,
        need_weights: bool = False,
    ) -> Context:
        """Return the vectors."""
        return Context.from_states(vectors, lengths)


def make_encoder(name: str, options: LayerOptions) -> Any:
    """The encoder of this name or reference.

    ValueError where what was made is no encoder: a module with a `size`.
    """
    encoder = ENCODERS.resolve(name)(options)
    if not isinstance(encoder, nn.Module) or not isinstance(getattr(encoder, "size", None), int):
        raise ValueError(
            f"encoder {name!r}: expected a torch module with the attribute size, the size of its "
            f"states; got {encoder!r}"
        )
    return encoder


def _mask(lengths: Int[Tensor, "b"], longest: int, reach: int | None) -> masks.Mask:
    """All real positions, or `reach` of them up to each one's own."""
    mask: masks.Mask = masks.lengths(lengths)
    if reach is not None:
        mask = mask & masks.causal()
        if longest > reach:
            mask = mask & masks.window(reach)
    return mask


def position_encoding(part: Any) -> str:
    """The position encodings that an encoder's or decoder's class wants added to its input."""
    return "sinusoids" if getattr(part, "needs_positions", False) else "none"


def real_positions(length: int, lengths: Int[Tensor, "b"]) -> Bool[Tensor, "b t"]:
    """False at padding."""
    return torch.arange(length, device=lengths.device) < lengths[:, None]
