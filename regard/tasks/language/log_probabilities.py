"""The log-probability that a language model gives to texts, token by token."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from regard.data.batches import ordered_batches, pad
from regard.data.tokenizers.tokenizer import EOS
from regard.models import LanguageModel
from regard.progress import track
from regard.tasks.language.conditional import Conditional
from regard.tasks.language.task import Language
from regard.tasks.prediction import LogProbability

WINDOW_TOKENS = 256
"""Tokens of a text that are read at once."""
BATCH_TOKENS = 4096
"""Tokens of several texts that are read in one batch."""


@torch.no_grad()
def text_log_probabilities(
    task: Language | Conditional,
    model: LanguageModel,
    texts: Sequence[str],
    targets: Sequence[str] | None = None,
) -> list[LogProbability]:
    """log p(text) of each text, in order."""
    if isinstance(task, Conditional):
        raise ValueError("the texts of this run depend on a condition: use `evaluate`")
    if targets is not None:
        raise ValueError("a language model scores texts by themselves, without targets")
    rows = [np.array([*ids, EOS], dtype=np.int64) for ids in task.tokenizer.ids(texts)]
    names = task.tokenizer.vocabulary()
    results = [LogProbability(0.0, [], [names[token] for token in row]) for row in rows]
    lengths = np.array([len(row) for row in rows], dtype=np.int32)
    batches = ordered_batches(lengths, BATCH_TOKENS)
    for chosen in track(batches, "scoring", len(rows), "texts", weight=len):
        batch, batch_lengths = pad([rows[i] for i in chosen])
        log_probabilities = torch.cat(list(_by_window(model, batch)), 1)
        for i, row, n in zip(
            chosen, log_probabilities.tolist(), batch_lengths.tolist(), strict=True
        ):
            results[i] = replace(
                results[i], log_probability=sum(row[:n]), token_log_probabilities=row[:n]
            )
    return results


def _by_window(model: LanguageModel, targets: Tensor) -> Iterator[Tensor]:
    """Log-probabilities [b, t] of targets, one window after the other."""
    inputs = torch.cat([torch.full_like(targets[:, :1], EOS), targets[:, :-1]], 1)
    state = model.start(len(targets))
    windows = zip(inputs.split(WINDOW_TOKENS, 1), targets.split(WINDOW_TOKENS, 1), strict=True)
    for tokens, window in windows:
        output, state = model(tokens, state)
        yield output.logits.log_softmax(-1).gather(2, window[..., None])[..., 0].double()
