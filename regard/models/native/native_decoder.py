"""The decoder of a translator, compiled for the processor: the same answers as PyTorch, sooner.

A `NativeDecoder` has the `start` and `step` of the translator that it was compiled from. Keys and
values of earlier words stay where the step that computed them has written them; a hypothesis knows
the row of each earlier step that it continues, so that a beam reorders small tables only.
"""

import ctypes
import itertools
import weakref
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.optim.optimizer import register_optimizer_step_post_hook

from regard.attention.dispatch import Path
from regard.models.decoders import RecurrentState
from regard.models.encoders import Context
from regard.models.native.native_encoder import native_encoder
from regard.models.native.native_library import Call, level, library
from regard.models.native.native_plan import DecoderPlan, why_not
from regard.models.native.native_products import Precision
from regard.models.output import Weights
from regard.models.translator import Translator

POSITIONS = 128
"""Position vectors that are computed at once."""


class NativeSource(NamedTuple):
    """What all hypotheses share: the prepared sources, and what the steps so far have written."""

    memory: Float[Tensor, "b k c"]
    """Keys and values of each source token."""
    lengths: Int[Tensor, "b"]
    blocks: tuple[Float[Tensor, "_ c"], ...]
    """Keys and values of the target, one tensor per step, one row per hypothesis of that step."""


class NativeState(NamedTuple):
    """The state between two words; `source` is not arranged by hypothesis, all else is."""

    source: NativeSource
    sentence: Int[Tensor, "n"]
    ancestry: Int[Tensor, "n t"]
    """The row of each earlier step that a hypothesis continues."""
    recurrent: Float[Tensor, "n s"]
    position: int


class NativeDecoder:
    """A compiled decoder with the steps of its translator."""

    def __init__(self, model: Translator, quantize: Precision = "none") -> None:
        """Compile it; `ValueError` where that is not possible."""
        if reason := why_not(model):
            raise ValueError(f"this decoder cannot be compiled: {reason}")
        self.compiled = DecoderPlan(model, quantize)
        # not the model itself, whose compiled decoders live as long as it does
        self._decoder, self._source = model.decoder, model.source
        self._encoder: Any = native_encoder(model.encoder, quantize) or model.encoder
        self._places, self._width = model.target.places, model.target.width
        self._table = self._position_vectors(0)

    def encode(
        self,
        source: Int[Tensor, "b k"],
        lengths: Int[Tensor, "b"],
        *,
        need_weights: bool = False,
    ) -> Context:
        """What `Translator.encode` returns."""
        context: Context = self._encoder(self._source(source), lengths, need_weights=need_weights)
        return context

    def start(self, context: Context) -> NativeState:
        """The state before the first word."""
        compiled = self.compiled
        batch, keys = context.states.shape[:2]
        recurrent = context.states.new_empty(batch, compiled.state_columns)
        if compiled.prepare is not None:
            memory, lengths = compiled.prepare(context.states), context.lengths
        else:
            started: RecurrentState = self._decoder.start(context)
            key, value, padded, _ = started.source
            assert key is not None  # a decoder without attention is not compiled
            assert value is not None
            memory = value if compiled.source_columns == value.shape[-1] else _join(key, value)
            lengths = context.lengths if padded is None else padded
            own = started.own
            recurrent = _join(*own.cell) if own.fed is None else _join(*own.cell, own.fed)
        lengths = lengths.clamp(max=keys).long().contiguous()
        return NativeState(
            NativeSource(memory.detach().contiguous(), lengths, ()),
            torch.arange(batch),
            torch.empty(batch, 0, dtype=torch.long),
            recurrent.detach().contiguous(),
            0,
        )

    def step(
        self,
        words: Int[Tensor, "n"],
        state: NativeState,
        *,
        allowed: Bool[Tensor, "n k"] | None = None,
        need_weights: bool = True,
    ) -> tuple[Float[Tensor, "n v"], NativeState, Weights]:
        """What `Translator.step` returns, with its arguments; there is no gradient."""
        self.watch()
        source, sentence, ancestry, recurrent, position = state
        compiled, rows, keys = self.compiled, len(words), source.memory.shape[1]
        new = source.memory.new_empty
        log_probabilities = new(rows, compiled.words)
        block = new(rows, compiled.block_columns)
        following = new(rows, compiled.state_columns)
        looks = new(compiled.layers, rows, compiled.heads, keys) if need_weights else None
        own_looks = None
        if need_weights and compiled.own_names:
            own_looks = new(compiled.layers, rows, compiled.heads, position + 1)
        if allowed is not None:
            allowed = allowed.to(torch.bool).contiguous()
        place = self._place(position)
        words, ancestry = words.long().contiguous(), ancestry.contiguous()
        steps = (ctypes.c_void_p * position)(*(one.data_ptr() for one in source.blocks))
        call = Call(
            rows=rows,
            position=position if compiled.block_columns else 0,
            keys=keys,
            blocks=ctypes.addressof(steps) if position else None,
            **{
                name: None if tensor is None else tensor.data_ptr()
                for name, tensor in {
                    "tokens": words,
                    "place": place,
                    "sentence": sentence,
                    "source": source.memory,
                    "lengths": source.lengths,
                    "allowed": allowed,
                    "ancestry": ancestry,
                    "block": block,
                    "state": recurrent,
                    "next_state": following,
                    "own_weights": own_looks,
                    "source_weights": looks,
                    "log_probabilities": log_probabilities,
                }.items()
            },
        )
        failed = library().decoder_step(
            ctypes.byref(compiled.plan), ctypes.byref(call), torch.get_num_threads()
        )
        if failed == 1:
            raise MemoryError("the native decoder cannot allocate its scratch memory")
        if failed:
            raise IndexError(f"a word is not in the vocabulary of {compiled.words}")
        if compiled.block_columns:
            source = source._replace(blocks=(*source.blocks, block))
            ancestry = torch.cat([ancestry, torch.arange(rows)[:, None]], 1)
        after = NativeState(source, sentence, ancestry, following, position + 1)
        return log_probabilities, after, self._named(own_looks, looks)

    def _named(self, own_looks: Tensor | None, looks: Tensor | None) -> Weights:
        """Weights in the order of the layers, a layer's own first."""
        weights: Weights = {}
        for layer, name in enumerate(self.compiled.names):
            if own_looks is not None:
                weights[self.compiled.own_names[layer]] = own_looks[layer]
            if looks is not None:
                weights[name] = looks[layer]
        return weights

    def places(self, count: int) -> Float[Tensor, "t w"] | None:
        """The first position vectors, at least `count` if there are so many; None without them."""
        if self._table is not None and self._places.learned is None and count > len(self._table):
            self._table = self._position_vectors(count - 1)
        return self._table

    def watch(self) -> None:
        """Call the hooks that only watch; with others nothing is compiled."""
        for hook in self._decoder._forward_pre_hooks.values():
            hook(self._decoder, ())

    @property
    def watched(self) -> bool:
        """Whether there are such hooks."""
        return bool(self._decoder._forward_pre_hooks)

    def _place(self, position: int) -> Tensor | None:
        if self._table is None:
            return None
        if self._places.learned is not None:
            self._places.learned(1, position)  # which names the limit where it is passed
        table = self.places(position + 1)
        return None if table is None else table[position]

    def _position_vectors(self, position: int) -> Tensor | None:
        places = self._places
        if places.kind == "none":
            return None
        if places.learned is not None:
            return places.learned.weight.detach().contiguous()
        length = POSITIONS * (position // POSITIONS + 1)
        zeros = torch.zeros(1, length, self._width)
        vectors: Tensor = places(zeros)[0]
        return vectors.detach().contiguous()


def _join(*parts: Tensor) -> Tensor:
    return torch.cat(parts, -1)


class _Compiled(NamedTuple):
    """A decoder and the version of the weights that it was compiled from."""

    version: tuple[Any, ...]
    decoder: NativeDecoder


_COMPILED: weakref.WeakKeyDictionary[Translator, dict[str, _Compiled]] = weakref.WeakKeyDictionary()
_UPDATES = itertools.count()
_last_update = 0


def _count_update(*_: Any) -> None:
    global _last_update
    _last_update = next(_UPDATES) + 1


# Fused optimizers change weights without raising the version of their tensors.
register_optimizer_step_post_hook(_count_update)


def native_decoder(model: Translator, quantize: Precision = "none") -> NativeDecoder | None:
    """The compiled decoder of a model, or None where it cannot be compiled.

    It is compiled when first needed, and again after the weights have changed.
    """
    if why_not(model) is not None:
        return None
    versions = ((tensor.data_ptr(), tensor._version) for tensor in model.parameters())
    version = (_last_update, *versions)
    compiled = _COMPILED.setdefault(model, {})
    if quantize not in compiled or compiled[quantize].version != version:
        compiled[quantize] = _Compiled(version, NativeDecoder(model, quantize))
    return compiled[quantize].decoder


def explain_decoder(model: Translator) -> Path:
    """Which path decoding takes for this model, and why.

    >>> from regard.models import TranslatorConfig
    >>> print(explain_decoder(Translator(TranslatorConfig(attention="cosine"), 9, 9).eval()))
    torch: its score is neither additive nor a dot product of prepared keys
    """
    if reason := why_not(model):
        return Path("torch", reason)
    return Path("native", f"compiled for {level()}")
