"""Decoders of translation: whole targets at once in training, a word at a time in search.

All states of a step are tensors with the batch first, so that a beam can reorder them.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention import masks
from regard.attention.normalizers import Normalizer
from regard.attention.scores import Score
from regard.layers import BahdanauStep, Block, BlockCache, Cache, LuongStep, Prepared, Reading
from regard.layers.decoding import DecoderState
from regard.layers.recurrent import Cell, State
from regard.models.encoders import Context
from regard.models.output import Weights, numbered, total


class Decoded(NamedTuple):
    """Vectors to predict from, where it looked, and the balance loss of experts."""

    states: Float[Tensor, "b t m"]
    weights: Weights
    balance: Float[Tensor, ""] | None


class RecurrentState(NamedTuple):
    """What passes from word to word of a recurrent decoder."""

    cell: State
    fed: Tensor | None
    position: int
    key: Float[Tensor, "b k a"] | None
    value: Float[Tensor, "b k m"] | None
    lengths: Int[Tensor, "b"] | None
    context: Float[Tensor, "b m"]


class RecurrentDecoder(nn.Module):
    """A recurrent decoder, in Bahdanau's or Luong's order, or without attention.

    Without attention the context is the same at every step: s_t = g([y_{t-1}; c], s_{t-1}), with
    c the encoder's last state (Cho et al., 2014, https://arxiv.org/abs/1406.1078).
    """

    def __init__(
        self,
        width: int,
        hidden: int,
        memory_size: int,
        *,
        cell: str = "gru",
        score: str | Score = "additive",
        normalize: str | Normalizer = "softmax",
        order: str = "bahdanau",
        input_feeding: bool = False,
        local: str = "none",
        local_width: int = 5,
        dropout: float = 0.0,
        max_keys: int = 1024,
    ) -> None:
        super().__init__()
        self.size = hidden
        self.first = nn.Linear(memory_size, hidden)
        self.dropout = nn.Dropout(dropout)
        self.step_with: BahdanauStep | LuongStep | None = None
        if score == "none":
            self.cell = Cell(width + memory_size, hidden, cell)
            self.output = nn.Linear(hidden + memory_size + width, hidden)
            return
        reading = Reading(
            hidden,
            memory_size,
            score=score,
            hidden=hidden,
            normalize=normalize,
            local=local,
            width=local_width,
            max_keys=max_keys,
        )
        kind = BahdanauStep if order == "bahdanau" else LuongStep
        self.step_with = kind(width, reading, cell=cell, input_feeding=input_feeding)

    def start(self, source: Context) -> RecurrentState:
        """The state before the first word."""
        hidden = self.first(source.last[0]).tanh()
        context = source.last[0]
        if self.step_with is None:
            return RecurrentState(self.cell.initial(hidden), None, 0, None, None, None, context)
        prepared = self.step_with.reading.prepare(source.states, source.lengths)
        begun = self.step_with.initial(hidden)
        return RecurrentState(
            begun.cell, begun.fed, 0, prepared.key, prepared.value, prepared.length, context
        )

    def step(
        self,
        vectors: Float[Tensor, "b w"],
        state: RecurrentState,
        *,
        look: Bool[Tensor, "b k"] | None = None,
        need_weights: bool = False,
    ) -> tuple[Tensor, RecurrentState, Weights]:
        """One word further: `look` says where it may look, if that is to be forced."""
        if self.step_with is None:
            cell = self.cell(torch.cat([vectors, state.context], -1), state.cell)
            output = self.output(torch.cat([cell[0], state.context, vectors], -1)).tanh()
            return self.dropout(output), state._replace(cell=cell), {}
        output, after, weights = self.step_with(
            vectors,
            DecoderState(state.cell, state.fed, state.position),
            self._prepared(state),
            look,
            need_weights=need_weights,
        )
        state = state._replace(cell=after.cell, fed=after.fed, position=after.position)
        named = {} if weights is None else {"source": weights[:, None]}
        return self.dropout(output), state, named

    def forward(
        self, vectors: Float[Tensor, "b t w"], source: Context, *, need_weights: bool = False
    ) -> Decoded:
        """All words of known targets."""
        state = self.start(source)
        outputs, looks = [], []
        for word in vectors.unbind(1):
            output, state, weights = self.step(word, state, need_weights=need_weights)
            outputs.append(output)
            looks.append(weights)
        named = {name: torch.stack([look[name] for look in looks], 2) for name in looks[0]}
        return Decoded(torch.stack(outputs, 1), named, None)

    def _prepared(self, state: RecurrentState) -> Prepared:
        """The source as the step wants it; its score is the module's own, so never in the state."""
        assert self.step_with is not None  # without attention nothing is prepared
        assert state.key is not None
        assert state.value is not None
        return Prepared(self.step_with.reading.keyed_score(), state.key, state.value, state.lengths)


class TransformerState(NamedTuple):
    """What passes from word to word of a transformer decoder."""

    caches: tuple[BlockCache, ...] | tuple[Cache, ...]
    lengths: Int[Tensor, "b"]
    position: int


class TransformerDecoder(nn.Module):
    """Transformer blocks that look back at the target and over at the source."""

    def __init__(
        self,
        width: int,
        memory_size: int,
        *,
        layers: int = 3,
        heads: int = 4,
        hidden: int | None = None,
        dropout: float = 0.0,
        norm: str = "pre",
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
                source_width=memory_size,
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
        self.size = width

    def start(self, source: Context) -> TransformerState:
        """The state before the first word: the source is projected once, nothing is cached yet."""
        caches: list[Any] = [block.source.remember(source.states) for block in self.blocks]
        return TransformerState(tuple(caches), source.lengths, 0)

    def step(
        self,
        vectors: Float[Tensor, "b w"],
        state: TransformerState,
        *,
        look: Bool[Tensor, "b k"] | None = None,
        need_weights: bool = False,
    ) -> tuple[Tensor, TransformerState, Weights]:
        """One word further: `look` says where it may look in the source, if that is forced."""
        source_mask: masks.Mask = masks.lengths(state.lengths)
        if look is not None:
            source_mask = source_mask & look[:, None, :]
        states, weights, caches = vectors[:, None], {}, []
        for layer, (block, cache) in enumerate(zip(self.blocks, state.caches, strict=True)):
            known = cache if isinstance(cache, BlockCache) else None
            passed = block(
                states,
                masks.causal(),
                cache=known if known else _empty(block, cache, states),
                source_mask=source_mask,
                need_weights=need_weights,
            )
            states = passed.output
            caches.append(passed.cache)
            if need_weights:
                weights |= numbered(passed.weights, f"decoder.{layer}")
        weights = {name: tensor for name, tensor in weights.items() if "experts" not in name}
        after = TransformerState(tuple(caches), state.lengths, state.position + 1)
        return self.norm(states)[:, 0], after, weights

    def forward(
        self, vectors: Float[Tensor, "b t w"], source: Context, *, need_weights: bool = False
    ) -> Decoded:
        """All words of known targets at once; no word looks ahead."""
        weights: Weights = {}
        balances: list[Tensor | None] = []
        for layer, block in enumerate(self.blocks):
            passed = block(
                vectors,
                masks.causal(),
                source=source.states,
                source_mask=masks.lengths(source.lengths),
                need_weights=need_weights,
            )
            vectors = passed.output
            balances.append(passed.balance)
            if need_weights:
                weights |= numbered(passed.weights, f"decoder.{layer}")
        return Decoded(self.norm(vectors), weights, total(balances))


def _empty(block: Block, source: Cache, like: Tensor) -> BlockCache:
    """A cache without target positions, beside that of the source."""
    own = block.own.remember(like[:, :0])
    return BlockCache(own, source)
