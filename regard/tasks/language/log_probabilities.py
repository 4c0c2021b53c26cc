"""The log-probability that a language model gives to texts, token by token."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.data.batches import ordered_batches, pad
from regard.data.tokenizers.tokenizer import EOS
from regard.devices import to_device
from regard.models import LanguageModel
from regard.progress import track
from regard.tasks.language.conditional import Conditional
from regard.tasks.language.task import Language, log_of, start_state
from regard.tasks.language.task_options import ReadingOptions
from regard.tasks.prediction import LogProbability

WINDOW_TOKENS = 256
"""Tokens of a text that are read at once."""
STREAMS = 16
"""Rows in which a running text is read, as in `evaluate`."""
BATCH_TOKENS = 4096
"""Tokens of several texts that are read in one batch."""


@torch.no_grad()
def text_log_probabilities(
    task: Language | Conditional,
    model: LanguageModel,
    texts: Sequence[str],
    targets: Sequence[str] | None = None,
    running: bool = False,
    **options: Any,
) -> list[LogProbability]:
    """log p(text) of each text, in order; of `running` texts, given those before it.

    `options` are those of `ReadingOptions`.
    """
    reading = ReadingOptions(**options)
    if isinstance(task, Conditional):
        raise ValueError("the texts of this run depend on a condition: use `evaluate`")
    if targets is not None:
        raise ValueError("a language model scores texts by themselves, without targets")
    rows = [np.array([*ids, EOS], dtype=np.int64) for ids in task.tokenizer.ids(texts)]
    names = task.tokenizer.vocabulary()
    results = [LogProbability(0.0, [], [names[token] for token in row]) for row in rows]
    if running and rows:
        values = _running(task, model, np.concatenate([[model.start_token], *rows]), reading)
        lines = np.split(values, np.cumsum([len(row) for row in rows])[:-1])
        return [
            replace(
                result, log_probability=float(line.sum()), token_log_probabilities=line.tolist()
            )
            for result, line in zip(results, lines, strict=True)
        ]
    lengths = np.array([len(row) for row in rows], dtype=np.int32)
    batches = ordered_batches(lengths, BATCH_TOKENS)
    for chosen in track(batches, "scoring", len(rows), "texts", weight=len):
        batch, batch_lengths = pad([rows[i] for i in chosen])
        log_probabilities = torch.cat(list(_by_window(model, to_device(batch, model), reading)), 1)
        for i, row, n in zip(
            chosen, log_probabilities.tolist(), batch_lengths.tolist(), strict=True
        ):
            results[i] = replace(
                results[i], log_probability=sum(row[:n]), token_log_probabilities=row[:n]
            )
    return results


def _running(
    task: Language, model: LanguageModel, ids: np.ndarray, reading: ReadingOptions
) -> np.ndarray:
    """The log-probability of every token but the first, given all before it in its stream."""
    streams: list[list[Tensor]] = [[] for _ in range(min(STREAMS, len(ids) - 1))]
    for log_probabilities, _, real in task.read_running(model, ids, reading, STREAMS):
        for stream, row, kept in zip(streams, log_probabilities.cpu(), real.cpu(), strict=True):
            stream.append(row[kept])
    return torch.cat([part for stream in streams for part in stream]).numpy()


def _by_window(model: LanguageModel, targets: Tensor, reading: ReadingOptions) -> Iterator[Tensor]:
    """Log-probabilities [b, t] of targets, one window after the other.

    A model that has no position for the next window reads it from a new start.
    """
    inputs = torch.cat([torch.full_like(targets[:, :1], model.start_token), targets[:, :-1]], 1)
    state = start_state(model, len(targets), reading)
    size = WINDOW_TOKENS if model.positions is None else min(WINDOW_TOKENS, model.positions)
    for tokens, window in zip(inputs.split(size, 1), targets.split(size, 1), strict=True):
        if model.positions is not None and state.position + tokens.shape[1] > model.positions:
            state = start_state(model, len(targets), reading)
        parts, after = model.target_probabilities(tokens, window, state)
        yield log_of(model.mix_targets(parts, state)).cpu()
        state = after
