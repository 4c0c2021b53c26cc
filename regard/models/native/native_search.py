"""Greedy and beam search by the native library: a whole search in one call.

Sentences are distributed over torch's threads, each from its first word to its last. The result is
that of `regard.search` over the steps of the same decoder, to the last bit.
"""

import ctypes
import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.models.native.native_decoder import NativeDecoder, NativeState
from regard.models.native.native_library import FAILURES, INTERRUPTED, Search, library
from regard.models.output import Weights


class FoundHypothesis(NamedTuple):
    """One output of a search, with the fields of `regard.search.Hypothesis`."""

    tokens: list[int]
    normalized_log_probability: float
    log_probability: float
    token_log_probabilities: list[float]
    weights: Weights
    finished: bool


class SearchOptions(NamedTuple):
    """What a search is asked for; `regard.search.beam` describes it."""

    eos: int
    width: int = 1
    nbest: int = 1
    patience: float | None = None
    full: bool = False
    forbidden: Sequence[int] = ()


def native_search(
    decoder: NativeDecoder,
    state: NativeState,
    bos: Int[Tensor, " b"],
    limits: Int[Tensor, " b"],
    penalties: Float[Tensor, " l"],
    options: SearchOptions,
    *,
    need_weights: bool = False,
) -> list[list[FoundHypothesis]] | None:
    """The n best outputs of each sentence, best first, from the state before the first word.

    None where the search cannot be finished here: position vectors do not reach so far, or no token
    has a probability above zero. A search in Python then says what is wrong.
    """
    compiled, source = decoder.compiled, state.source
    batch, nbest, keys = len(bos), options.nbest, source.memory.shape[1]
    longest = int(limits.max()) if batch else 1
    places = decoder.places(longest)
    if places is not None and len(places) < longest:
        return None
    new, layers, heads = source.memory.new_empty, compiled.layers, compiled.heads
    shape = (batch, nbest, layers, heads, longest)
    given = {
        "bos": bos.long().contiguous(),
        "limits": limits.long().contiguous(),
        "penalties": penalties.float().contiguous(),
        "forbidden": torch.tensor(options.forbidden, dtype=torch.long),
        "places": places,
        "source": source.memory,
        "lengths": source.lengths,
        "state": state.recurrent,
    }
    found = {
        "lengths_found": torch.zeros(batch, nbest, dtype=torch.long),
        "tokens": torch.empty(batch, nbest, longest, dtype=torch.long),
        "token_log_probabilities": new(batch, nbest, longest),
        "log_probabilities": new(batch, nbest),
        "normalized": new(batch, nbest),
        "finished": torch.empty(batch, nbest, dtype=torch.bool),
        "source_weights": new(*shape, keys) if need_weights else None,
        "own_weights": new(*shape, longest) if need_weights and compiled.own_names else None,
    }
    raised: list[BaseException] = []
    record = Search(
        sentences=batch,
        width=options.width,
        nbest=nbest,
        full=options.full,
        longest=longest,
        enough_ends=-1 if options.patience is None else math.ceil(options.patience * options.width),
        eos=options.eos,
        forbidden_count=len(options.forbidden),
        place_width=0 if places is None else places.shape[1],
        keys=keys,
        interrupted=_watcher(decoder, raised) if decoder.watched else INTERRUPTED(),
        **{
            name: None if tensor is None else tensor.data_ptr()
            for name, tensor in (given | found).items()
        },
    )
    failed = library().decoder_search(
        ctypes.byref(compiled.plan), ctypes.byref(record), torch.get_num_threads()
    )
    if raised:
        raise raised[0]
    if FAILURES[failed] == "no memory":
        raise MemoryError("the native decoder cannot allocate the memory of a search")
    return None if failed else _hypotheses(decoder, found)


def _watcher(decoder: NativeDecoder, raised: list[BaseException]) -> "ctypes._FuncPointer":
    """Calls the hooks of the decoder before each step; what they raise ends the search."""

    def interrupted() -> int:
        try:
            decoder.watch()
        except BaseException as error:  # it cannot pass through C
            raised.append(error)
        return int(bool(raised))

    return INTERRUPTED(interrupted)


def _hypotheses(
    decoder: NativeDecoder, found: dict[str, Tensor | None]
) -> list[list[FoundHypothesis]]:
    plain = {
        name: tensor.tolist()
        for name, tensor in found.items()
        if tensor is not None and not name.endswith("_weights")
    }
    return [
        [
            FoundHypothesis(
                plain["tokens"][sentence][place][:length],
                plain["normalized"][sentence][place],
                plain["log_probabilities"][sentence][place],
                plain["token_log_probabilities"][sentence][place][:length],
                _weights(decoder, found, sentence, place, length),
                plain["finished"][sentence][place],
            )
            for place, length in enumerate(lengths)
            if length
        ]
        for sentence, lengths in enumerate(plain["lengths_found"])
    ]


def _weights(
    decoder: NativeDecoder, found: dict[str, Tensor | None], sentence: int, place: int, length: int
) -> Weights:
    """In the order of the layers, a layer's own first; copies, without the unused steps."""
    weights: Weights = {}
    own, source = found["own_weights"], found["source_weights"]
    for layer, name in enumerate(decoder.compiled.names):
        if own is not None:
            look = own[sentence, place, layer, :, :length, :length]
            weights[decoder.compiled.own_names[layer]] = look.clone()
        if source is not None:
            weights[name] = source[sentence, place, layer, :, :length].clone()
    return weights
