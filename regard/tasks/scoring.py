"""What a model thinks of text that somebody else wrote: its log-probability, token by token."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.data.batches import in_order, pad
from regard.data.tokenizer import EOS
from regard.models import LanguageModel
from regard.tasks.language import Language
from regard.tasks.translating import score
from regard.tasks.translation import Translation

STRETCH = 256
"""Tokens of a text that are read at once."""
BUDGET = 4096
"""Tokens of several texts that are read at once."""


@dataclass(frozen=True)
class Scored:
    """The log-probability of a text, the end token included."""

    log_probability: float
    token_log_probabilities: list[float]
    tokens: list[str]
    cut: bool = False
    """Whether the source was too long, and only a part of it was read."""


@torch.no_grad()
def scored(
    task: Any, model: nn.Module, texts: Sequence[str], targets: Sequence[str] | None = None
) -> list[Scored]:
    """log p(text) in a language model, log p(target | text) in translation, in order."""
    if isinstance(task, Language) and targets is None:
        return _language(task, model, texts)
    if isinstance(task, Translation) and targets is not None:
        return _translation(task, model, texts, targets)
    if isinstance(task, Language | Translation):
        wrong = "without" if isinstance(task, Translation) else "with"
        raise ValueError(f"a {type(task).__name__} cannot score texts {wrong} targets")
    raise ValueError(f"a {type(task).__name__} gives no probability to texts")


def _translation(
    task: Translation, model: nn.Module, texts: Sequence[str], targets: Sequence[str]
) -> list[Scored]:
    sources = task.source.ids(texts)
    rows = task.target.ids(targets)
    most = task.config.max_length - 1
    found = score(task, model, texts, [row[:most] for row in rows])
    names = task.target.vocabulary()
    return [
        Scored(
            one.log_probability,
            one.token_log_probabilities,
            [names[token] for token in one.tokens],
            len(source) > task.max_tokens or len(row) > most,
        )
        for one, source, row in zip(found, sources, rows, strict=True)
    ]


def _language(task: Language, model: nn.Module, texts: Sequence[str]) -> list[Scored]:
    assert isinstance(model, LanguageModel)
    rows = [np.array([*ids, EOS], dtype=np.int64) for ids in task.tokenizer.ids(texts)]
    names = task.tokenizer.vocabulary()
    found = [Scored(0.0, [], [names[token] for token in row]) for row in rows]
    for chosen in in_order(np.array([len(row) for row in rows], dtype=np.int32), BUDGET):
        targets, lengths = pad([rows[i] for i in chosen])
        chances = torch.cat(list(_stretches(model, targets)), 1)
        for i, row, n in zip(chosen, chances.tolist(), lengths.tolist(), strict=True):
            found[i] = replace(
                found[i], log_probability=sum(row[:n]), token_log_probabilities=row[:n]
            )
    return found


def _stretches(model: LanguageModel, targets: Tensor) -> Iterator[Tensor]:
    """Log-probabilities [b, t] of targets, a stretch after the other."""
    inputs = torch.cat([torch.full_like(targets[:, :1], EOS), targets[:, :-1]], 1)
    state = model.start(len(targets))
    for fed, aims in zip(inputs.split(STRETCH, 1), targets.split(STRETCH, 1), strict=True):
        output, state = model(fed, state)
        yield output.logits.log_softmax(-1).gather(2, aims[..., None])[..., 0].double()
