"""Attention among the words of a worked example, with any score, normalizer, mask and position."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention import masks, normalizers, positions, scores
from regard.attention.attend import Steps, steps
from regard.attention.attention_tables import NORMALIZERS, SCORES
from regard.attention.masks import Mask
from regard.attention.worked_example import Example

WEIGHTED_SCORES = ("bilinear", "mlp", "additive", "location")
"""Scores with weights of their own, which are chosen by hand here."""
MASKS: dict[str, Callable[[int], Mask | None]] = {
    "none": lambda size: None,
    "causal": lambda size: masks.causal(),
    "window": masks.window,
    "causal window": lambda size: masks.causal() & masks.window(size),
    "prefix": lambda size: masks.causal() | masks.prefix(size),
    "dilated": masks.dilated,
    "others": lambda size: masks.others(),
}
"""Masks by name; those that have a size take it."""
SIZED_MASKS = ("window", "causal window", "prefix", "dilated")
POSITIONS = ("none", "sinusoidal", "rotary", "linear bias")
"""Ways to say where a word stands."""
LARGEST_SIZE = 60


@dataclass(frozen=True)
class Choices:
    """What attention is computed with."""

    score: str = "scaled_dot"
    normalize: str = "softmax"
    temperature: float = 1.0
    """Scores are divided by it before they are normalized."""
    mask: str = "none"
    size: int = 2
    """The size of a window or prefix, or the step of a dilated mask."""
    position: str = "none"


class WorkedAttention(NamedTuple):
    """Inputs and all stages of attention among the words of an example."""

    vectors: Float[Tensor, "t w"]
    """With the position, where it is added to them."""
    query: Float[Tensor, "t d"]
    key: Float[Tensor, "t d"]
    value: Float[Tensor, "t d"]
    allowed: Bool[Tensor, "t t"]
    bias: Float[Tensor, "t t"] | None
    score: scores.Score
    normalize: normalizers.Normalizer
    stages: Steps


def score_names() -> tuple[str, ...]:
    """Scores that can be shown without training: all of ours, and functions of other packages."""
    functions = (name for name, row in SCORES.items() if not isinstance(row, type))
    first = ("scaled_dot", "dot", "cosine")
    return (*first, *WEIGHTED_SCORES, *(name for name in functions if name not in first))


def normalizer_names() -> tuple[str, ...]:
    """Normalizers by name, with one example of those that take a number."""
    return (*NORMALIZERS, "top_k(2)")


@torch.no_grad()
def worked_attention(sentence: Example, choices: Choices) -> WorkedAttention:
    """Each word of an example attends to all words that the mask allows.

    >>> from regard.attention.worked_example import early_bird
    >>> bird = worked_attention(early_bird(), Choices(mask="causal")).stages.weights[2]
    >>> [round(float(weight), 2) for weight in bird]
    [0.14, 0.62, 0.24, 0.0, 0.0, 0.0]
    """
    words = len(sentence.words)
    if choices.position == "sinusoidal":
        added = positions.sinusoids(words, sentence.vectors.shape[1])
        sentence = sentence._replace(vectors=sentence.vectors + added)
    query, key, value = sentence.project()
    if choices.score == "bilinear":
        query = key = sentence.vectors
    bias = None
    if choices.position == "rotary":
        query, key = positions.rotate(query), positions.rotate(key)
    elif choices.position == "linear bias":
        bias = positions.linear_bias(4, words, words)[0]
    mask = MASKS[choices.mask](choices.size)
    allowed = torch.ones(words, words, dtype=torch.bool)
    if mask is not None:
        allowed = mask.tensor((words, words)).expand(words, words)
    score = _score(choices.score, sentence)
    normalize = _with_temperature(choices)
    stages = steps(query, key, value, mask, score=score, normalize=normalize, bias=bias)
    return WorkedAttention(
        sentence.vectors, query, key, value, allowed, bias, score, normalize, stages
    )


def _score(name: str, sentence: Example) -> scores.Score:
    """A score by name; weights are chosen by hand, so that the numbers can be followed.

    `bilinear` compares the vectors of the words themselves, with W = W_Q W_Kᵀ, so that its scores
    are the products of `scaled_dot` before scaling. `additive` adds the query to the key, so that
    each feature counts where both have it: tanh(2 (q + k) - 5). `mlp` is q · tanh(k), and in
    `location` each feature of the query is the score of every fourth position.
    """
    unit = torch.eye(4)
    if name == "bilinear":
        bilinear = scores.Bilinear(4, 4)
        bilinear.weight.copy_(sentence.to_query @ sentence.to_key.mT)
        return bilinear
    if name == "additive":
        additive = scores.Additive(4, 4)
        additive.query.weight.copy_(2 * unit)
        additive.query.bias.fill_(-5.0)
        additive.key.weight.copy_(2 * unit)
        additive.weight.fill_(1.0)
        return additive
    if name == "mlp":
        mlp = scores.MLP(4, 4)
        mlp.hidden.weight.copy_(unit)
        mlp.hidden.bias.zero_()
        return mlp
    if name == "location":
        location = scores.Location(4, len(sentence.words))
        location.where.weight.copy_(unit[torch.arange(len(sentence.words)) % 4])
        return location
    return scores.score_by_name(name)


def _with_temperature(choices: Choices) -> normalizers.Normalizer:
    normalize = normalizers.normalizer_by_name(choices.normalize)
    if choices.temperature == 1.0:
        return normalize

    def normalize_tempered(scores: Tensor, mask: Tensor | None = None) -> Tensor:
        return normalize(scores / choices.temperature, mask)

    return normalize_tempered
