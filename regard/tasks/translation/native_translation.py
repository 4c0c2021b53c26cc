"""Searches that the native library makes in one call, where nothing asks for more than it does."""

from collections.abc import Sequence
from typing import Any

import torch

from regard.data.tokenizers.tokenizer import BOS, EOS, NEVER_GENERATED
from regard.models.native.native_decoder import NativeDecoder
from regard.models.native.native_search import SearchOptions, native_search
from regard.search import Hypothesis, LengthPenalty, Shared
from regard.search.penalties import penalty_table
from regard.tasks.translation.task_options import Decoding


def search_natively(
    decoder: Any,
    state: Any,
    decoding: Decoding,
    limits: Sequence[int],
    length_penalty: LengthPenalty,
    *,
    full: bool = False,
    forbidden: Sequence[int] = NEVER_GENERATED,
    need_weights: bool = False,
) -> list[list[Hypothesis]] | None:
    """What `regard.search` returns for the same search; None where it has to make it.

    That is where the decoder is not compiled, or where the search samples, counts coverage or
    forbids repetitions.
    """
    other = decoding.sampled or decoding.coverage or decoding.no_repeat
    if not isinstance(decoder, NativeDecoder) or other:
        return None
    if isinstance(state.source, Shared):
        state = state._replace(source=state.source.value)
    options = SearchOptions(
        eos=EOS,
        width=decoding.beam,
        nbest=decoding.nbest,
        patience=None if decoding.exact else 1.0,
        full=full,
        forbidden=forbidden,
    )
    found = native_search(
        decoder,
        state,
        torch.full((len(limits),), BOS),
        torch.tensor(limits),
        penalty_table(length_penalty, max(limits, default=1)),
        options,
        need_weights=need_weights,
    )
    return None if found is None else [[Hypothesis(*one) for one in nbest] for nbest in found]
