"""Forced decoding of whole pairs at once, with the words that the tokens of each side are of."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from regard.data import Pair
from regard.data.batches import in_order, pad
from regard.data.tokenizer import BOS, Tokenizer
from regard.errors import RegardError
from regard.inference.runs import Run
from regard.models import Output, Translator
from regard.models.decoders import TransformerDecoder
from regard.tasks.guidance import tokens_of
from regard.tasks.translation import Translation

BUDGET = 2048
"""Tokens of a batch, on its longer side."""


def translator(run: Run) -> tuple[Translation, Translator]:
    """Task and model of a run that can align."""
    if not isinstance(run.task, Translation) or not isinstance(run.model, Translator):
        raise RegardError(f"{run.folder.path}: a run of task {run.name}: only translation aligns")
    recurrent = not isinstance(run.model.decoder, TransformerDecoder)
    if recurrent and run.task.config.attention == "none":
        raise RegardError(f"{run.folder.path}: a model without attention has no alignments")
    return run.task, run.model


@dataclass(frozen=True)
class SideRead:
    """A text as a model reads it, and which of its tokens are of which word."""

    words: list[str]
    ids: list[int]
    tokens: list[list[int]]
    cut: bool

    def membership(self) -> Float[np.ndarray, "tokens words"]:
        """1 where a token is of a word, else 0."""
        found = np.zeros((len(self.ids), len(self.words)))
        for word, tokens in enumerate(self.tokens):
            found[[token for token in tokens if token < len(self.ids)], word] = 1
        return found


def sides(run: Run, pairs: Sequence[Pair]) -> tuple[list[SideRead], list[SideRead]]:
    """Sources and targets in words and in tokens, cut where the model reads no further."""
    task, _ = translator(run)
    sources = _read(task.source, [pair.source for pair in pairs], task.max_tokens)
    return sources, _read(task.target, [pair.target for pair in pairs], task.max_tokens)


def _read(tokenizer: Tokenizer, texts: Sequence[str], most: int) -> list[SideRead]:
    return [
        SideRead(text.split(), one.ids[:most], tokens_of(text, one), len(one.ids) > most)
        for text, one in zip(texts, tokenizer.encode_batch(texts), strict=True)
    ]


def forced(
    model: Translator,
    sources: Sequence[SideRead],
    targets: Sequence[SideRead],
    *,
    need_weights: bool = False,
) -> Iterator[tuple[Int64[np.ndarray, " b"], Output]]:
    """Outputs of the model on given targets, batch by batch, with the numbers of the pairs in it.

    Pairs with an empty side are in no batch. Row t writes target token t, the last one the end.
    """
    both = [(len(s.ids), len(t.ids) + 1) for s, t in zip(sources, targets, strict=True)]
    filled = np.array([i for i, (s, t) in enumerate(both) if s and t > 1], np.int64)
    lengths = np.array(both, np.int32).reshape(-1, 2)[filled]
    for batch in in_order(lengths, BUDGET) if len(filled) else []:
        chosen = filled[batch]
        source, keys = _padded([sources[i].ids for i in chosen])
        target, rows = _padded([[BOS, *targets[i].ids] for i in chosen])
        with torch.no_grad():  # around the call alone: who takes the outputs goes on with gradients
            output = model(source, keys, target, rows, need_weights=need_weights)
        yield chosen, output


def _padded(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    return pad([np.array(row, np.int64) for row in rows])
