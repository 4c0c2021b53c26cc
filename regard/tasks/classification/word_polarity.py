"""What a classifier has learned about words: polarities, and the words nearest its queries."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from regard.attention.scores import is_dot
from regard.data.tokenizers.tokenizer import SPECIAL
from regard.devices import device_of
from regard.errors import RegardError
from regard.models import Classifier
from regard.tasks.classification.task import Classification


@dataclass(frozen=True)
class Polarities:
    """How much each word counts in favour of each label."""

    words: tuple[str, ...]
    labels: tuple[str, ...]
    values: Float[np.ndarray, "v l"]
    exact: bool
    """Whether the logits of a text are the sum, or mean, of its words' polarities, and a bias."""

    def strongest(self, label: str, number: int = 10) -> list[tuple[str, float]]:
        """The words that count most in favour of a label."""
        column = self.values[:, self.labels.index(label)]
        return [(self.words[i], float(column[i])) for i in np.argsort(-column)[:number]]


@dataclass(frozen=True)
class NearWord:
    """A word, and the angle between a learned query and the word's key."""

    word: str
    degrees: float


@dataclass(frozen=True)
class WordReport:
    """What a classifier has learned about single words."""

    polarities: Polarities
    nearest: list[list[NearWord]]
    """For each learned query, the words at the smallest angles."""


def describe_words(task: Classification, model: Classifier, number: int = 10) -> WordReport:
    """Polarities of all words, and the words nearest to each learned query."""
    if task.pretrained is not None:
        raise RegardError(
            "a pretrained encoder reads pieces of words, which have no polarity by themselves"
        )
    return WordReport(word_polarities(task, model), nearest_words(task, model, number))


@torch.no_grad()
def word_polarities(task: Classification, model: Classifier) -> Polarities:
    """logits(word) - logits(nothing), less their mean over labels, for each word by itself.

    With sum or mean pooling of word vectors this is W x, the word's part in every text that has
    it; where words have context, it is what the model makes of the word alone.
    """
    ids = torch.arange(len(SPECIAL), task.tokenizer.size, device=device_of(model))
    logits = model(ids[:, None], torch.ones_like(ids)).logits
    nothing = model(ids[:1, None], torch.zeros_like(ids[:1])).logits
    values = (logits - nothing).cpu().double()
    exact = (
        task.ngrams is None
        and task.config.encoder == "none"
        and task.config.pooling in ("sum", "mean")
        and isinstance(model.decision, nn.Linear)
    )
    return Polarities(
        tuple(task.tokenizer.vocabulary()[len(SPECIAL) :]),
        tuple(task.labels.names),
        (values - values.mean(1, keepdim=True)).numpy(),
        exact,
    )


@torch.no_grad()
def nearest_words(
    task: Classification, model: Classifier, number: int = 10
) -> list[list[NearWord]]:
    """The words at the smallest angles to each learned query θ; none without fixed pooling.

    Words are keys as pooling sees them, each alone: x, or tanh(W x + b) with the score mlp.
    """
    score = model.pooling.score
    if model.pooling.kind != "fixed" or not is_dot(score):
        return []
    ids = torch.arange(len(SPECIAL), task.tokenizer.size, device=device_of(model))
    keys = model.encoder(model.inputs(ids[:, None]), torch.ones_like(ids)).states[:, 0]
    queries = model.pooling.queries.cpu().double()
    query, key, _ = score.factors(queries, keys.cpu().double())
    cosines = torch.cosine_similarity(query[:, None], key[None], dim=-1)
    words = task.tokenizer.vocabulary()[len(SPECIAL) :]
    best = cosines.topk(min(number, len(words)))
    angles = torch.rad2deg(best.values.clamp(-1, 1).acos())
    return [
        [NearWord(words[i], angle) for i, angle in zip(row, row_angles, strict=True)]
        for row, row_angles in zip(best.indices.tolist(), angles.tolist(), strict=True)
    ]
