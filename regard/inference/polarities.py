"""What a classifier has learned of single words: their polarities, and the words of its queries."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from regard.attention.scores import is_dot
from regard.data.tokenizer import SPECIAL
from regard.errors import RegardError
from regard.inference.runs import Run
from regard.models import Classifier
from regard.tasks.classification import Classification


@dataclass(frozen=True)
class Polarities:
    """How much each word speaks for each label."""

    words: tuple[str, ...]
    labels: tuple[str, ...]
    values: Float[np.ndarray, "v l"]
    exact: bool
    """Whether a text's logits are the sum, or mean, of its words' polarities, and a bias."""

    def strongest(self, label: str, most: int = 10) -> list[tuple[str, float]]:
        """The words that speak most for a label."""
        column = self.values[:, self.labels.index(label)]
        return [(self.words[i], float(column[i])) for i in np.argsort(-column)[:most]]


@dataclass(frozen=True)
class Near:
    """A word, and the angle between a learned query and what the word is to it."""

    word: str
    degrees: float


@torch.no_grad()
def polarities(run: Run) -> Polarities:
    """logits(word) - logits(nothing), less their mean over labels, for each word by itself.

    With sum or mean pooling of words as they are this is W x, the word's part in every text that
    has it; where words have context it is what the model makes of the word alone.
    """
    task, model = _classifier(run)
    ids = torch.arange(len(SPECIAL), task.tokenizer.size)
    logits = model(ids[:, None], torch.ones_like(ids)).logits
    nothing = model(ids[:1, None], torch.zeros(1, dtype=torch.long)).logits
    values = (logits - nothing).double()
    exact = (
        task.config.encoder == "none"
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
def nearest_words(run: Run, most: int = 10) -> list[list[Near]]:
    """The words at the smallest angles to each learned query θ; none without fixed pooling.

    Words are keys as pooling sees them, each alone: x, or tanh(W x + b) with the score mlp.
    """
    task, model = _classifier(run)
    score = model.pooling.score
    if model.pooling.kind != "fixed" or not is_dot(score):
        return []
    ids = torch.arange(len(SPECIAL), task.tokenizer.size)
    keys = model.encoder(model.inputs(ids[:, None]), torch.ones_like(ids)).states[:, 0]
    query, key, _ = score.factors(model.pooling.queries.double(), keys.double())
    cosines = torch.cosine_similarity(query[:, None], key[None], dim=-1)
    words = task.tokenizer.vocabulary()[len(SPECIAL) :]
    best = cosines.topk(min(most, len(words)))
    angles = torch.rad2deg(best.values.clamp(-1, 1).acos())
    return [
        [Near(words[i], angle) for i, angle in zip(row, theirs, strict=True)]
        for row, theirs in zip(best.indices.tolist(), angles.tolist(), strict=True)
    ]


def _classifier(run: Run) -> tuple[Classification, Classifier]:
    if not isinstance(run.task, Classification) or not isinstance(run.model, Classifier):
        raise RegardError(f"{run.folder.path}: a run of task {run.name} has no word polarities")
    return run.task, run.model
