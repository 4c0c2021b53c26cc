"""Forced decoding of sentence pairs in batches, with the words that the tokens belong to."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from regard.data import Pair
from regard.data.batches import ordered_batches, pad
from regard.data.tokenizers.tokenizer import BOS, Tokenizer
from regard.devices import to_device
from regard.errors import RegardError
from regard.inference.run import Run
from regard.models import Output
from regard.progress import track
from regard.tasks.shared.word_attention import tokens_of_words

BATCH_TOKENS = 2048
"""Tokens of a batch, on its longer side."""


def attention_sizes(run: Run) -> tuple[int, int]:
    """How many layers of a run attend to the source, and with how many heads each.

    A run without such attention cannot align.
    """
    sizes = run.spec.require("source_attention", run.folder.path, "alignment")
    try:
        layers, heads = sizes(run.task, run.model)
    except RegardError as error:
        raise RegardError(f"{run.folder.path}: {error}") from error
    return layers, heads


@dataclass(frozen=True)
class EncodedSide:
    """A text as a model reads it, and which of its tokens belong to which word."""

    words: list[str]
    ids: list[int]
    tokens: list[list[int]]
    truncated: bool

    def membership(self) -> Float[np.ndarray, "tokens words"]:
        """1 where a token belongs to a word, else 0."""
        matrix = np.zeros((len(self.ids), len(self.words)))
        for word, tokens in enumerate(self.tokens):
            matrix[[token for token in tokens if token < len(self.ids)], word] = 1
        return matrix


def encode_pairs(run: Run, pairs: Sequence[Pair]) -> tuple[list[EncodedSide], list[EncodedSide]]:
    """Sources and targets in words and in tokens, truncated to what the model reads."""
    task: Any = run.task
    sources = _encode(task.source, [pair.source for pair in pairs], task.max_tokens)
    return sources, _encode(task.target, [pair.target for pair in pairs], task.max_tokens)


def _encode(tokenizer: Tokenizer, texts: Sequence[str], most: int) -> list[EncodedSide]:
    return [
        EncodedSide(
            words=text.split(),
            ids=encoded.ids[:most],
            tokens=tokens_of_words(text, encoded),
            truncated=len(encoded.ids) > most,
        )
        for text, encoded in zip(texts, tokenizer.encode_batch(texts), strict=True)
    ]


def force_pairs(
    model: nn.Module,
    sources: Sequence[EncodedSide],
    targets: Sequence[EncodedSide],
    *,
    need_weights: bool = False,
) -> Iterator[tuple[Int64[np.ndarray, " b"], Output]]:
    """Outputs of the model on given targets, batch by batch, with the numbers of the pairs in it.

    Pairs with an empty side are in no batch. Row t predicts target token t, the last one the end.
    """
    both = [(len(s.ids), len(t.ids) + 1) for s, t in zip(sources, targets, strict=True)]
    filled = np.array([i for i, (s, t) in enumerate(both) if s and t > 1], np.int64)
    lengths = np.array(both, np.int32).reshape(-1, 2)[filled]
    batches = ordered_batches(lengths, BATCH_TOKENS) if len(filled) else []
    for batch in track(batches, "reading pairs", len(filled), "pairs", weight=len):
        chosen = filled[batch]
        source, keys = to_device(_pad_ids([sources[i].ids for i in chosen]), model)
        target, rows = to_device(_pad_ids([[BOS, *targets[i].ids] for i in chosen]), model)
        with torch.no_grad():  # not around the yield: the caller keeps its own gradient mode
            output = model(source, keys, target, rows, need_weights=need_weights)
        yield chosen, output


def _pad_ids(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    return pad([np.array(row, np.int64) for row in rows])
