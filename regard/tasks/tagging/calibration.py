"""How readily a tagger calls a word O, chosen for the best F1 of entities.

Likelihood is no measure of F1: where few words are parts of entities, the likeliest tags find few
of them, and more are found by a shift of the decision against O (in training: Mohit et al., 2012,
Recall-Oriented Learning of Named Entities in Arabic Wikipedia, EACL). The shift becomes a part of
the decision's bias, so that a calibrated model has no further parameters.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.data.batches import ordered_batches
from regard.data.tags import tag_scheme
from regard.devices import to_device
from regard.metrics import entity_metrics
from regard.metrics.tally import metric_value
from regard.tasks.shared.splits import require_corpus

if TYPE_CHECKING:
    from regard.tasks.tagging.task import AnyTagger, Tagging

OUTSIDE = "O"
SHIFTS = tuple(0.25 * step for step in range(9))
BATCH_TOKENS = 8192


class _Scored(NamedTuple):
    """The logits of a batch of pieces of sentences."""

    pieces: np.ndarray
    logits: Tensor
    lengths: Tensor


@torch.no_grad()
def calibrate(task: "Tagging", model: "AnyTagger") -> str:
    """Shift the bias of O by what gives the best F1 on the validation data; what was done.

    Each shift is judged by the mean F1 of itself and its neighbours: that of few sentences jumps.
    """
    names = list(task.labels.names)
    if OUTSIDE not in names or tag_scheme(names) == "plain" or model.decision.bias is None:
        return ""
    outside = names.index(OUTSIDE)
    corpus = require_corpus(task.valid)
    sentences = [task.parse_row(words) for words in corpus.column("words")]
    gold = [tuple(names[number] for number in tags) for tags in corpus.column("tags")]
    pieces = [(i, words) for i, whole in enumerate(sentences) for words in task.split(whole)]
    batches = _score(task, model, [words for _, words in pieces])
    unit = to_device(torch.eye(len(names))[outside], model)
    values = []
    for shift in SHIFTS:
        tags: list[tuple[str, ...]] = [()] * len(pieces)
        for batch in batches:
            found = task.decode(model, batch.logits - shift * unit, batch.lengths, None)
            for i, one in zip(batch.pieces.tolist(), found, strict=True):
                tags[i] = one.tags
        predicted: list[tuple[str, ...]] = [()] * len(sentences)
        for (i, _), part in zip(pieces, tags, strict=True):
            predicted[i] += part
        values.append(metric_value(entity_metrics(predicted, gold)["f1"]))
    best = choose_shift(values)
    if not best:
        return ""
    model.decision.bias.copy_(model.decision.bias - SHIFTS[best] * unit)
    return (
        f"O is {SHIFTS[best]:.2f} less likely, in log-odds: entity F1 {values[0]:.3f} -> "
        f"{values[best]:.3f} on the validation data, by which this was chosen"
    )


def choose_shift(values: Sequence[float]) -> int:
    """The first of the best values, each with its neighbours; 0 if it is no better than the first.

    >>> choose_shift([0.30, 0.32, 0.35, 0.34, 0.31])
    2
    >>> choose_shift([0.30, 0.29, 0.31, 0.1])
    0
    """
    smooth = [float(np.mean(values[max(0, i - 1) : i + 2])) for i in range(len(values))]
    best = smooth.index(max(smooth))
    return best if values[best] > values[0] else 0


def _score(task: "Tagging", model: "AnyTagger", pieces: Sequence[Sequence[str]]) -> list[_Scored]:
    sizes = np.array([len(words) for words in pieces], dtype=np.int32)
    scored = []
    for chosen in ordered_batches(sizes, BATCH_TOKENS):
        inputs = task.inputs([pieces[i] for i in chosen])
        words, lengths, characters = to_device(inputs, model)
        scored.append(_Scored(chosen, model(words, lengths, characters).logits, lengths))
    return scored
