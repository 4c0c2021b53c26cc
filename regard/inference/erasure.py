"""Erasure: what each target word loses when a source word is made unknown."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float

from regard.data import Pair
from regard.data.tokenizer import UNK
from regard.inference.forcing import SideRead, forced, sides, translator
from regard.inference.runs import Run


def erasure(run: Run, pairs: Sequence[Pair]) -> list[Float[np.ndarray, "t s"]]:
    """How many nats each target word loses when a source word is made unknown.

    log p(yₜ | y₁ … yₜ₋₁, x) - log p(yₜ | y₁ … yₜ₋₁, x without xₛ): the prediction difference of
    Li et al., 2019, On the Word Alignment from Neural Machine Translation,
    https://aclanthology.org/P19-1124. It asks the model what it needs, not where it looks, and
    costs as many passes as there are source words.
    """
    _, model = translator(run)
    sources, targets = sides(run, pairs)
    erased: list[SideRead] = []
    repeated: list[SideRead] = []
    for source, target in zip(sources, targets, strict=True):
        erased += [source, *(_without(source, word) for word in range(len(source.words)))]
        repeated += [target] * (1 + len(source.words))
    found = [np.zeros(len(target.words)) for target in repeated]
    for chosen, output in forced(model, erased, repeated):
        chances = output.logits.log_softmax(-1)
        for row, i in enumerate(chosen.tolist()):
            ids = torch.tensor(repeated[i].ids)
            told = chances[row, : len(ids)].gather(1, ids[:, None])[:, 0].double().numpy()
            found[i] = told @ repeated[i].membership()
    made, at = [], 0
    for source, target in zip(sources, targets, strict=True):
        losses = np.zeros((len(target.words), len(source.words)))
        for word in range(len(source.words)):
            losses[:, word] = found[at] - found[at + 1 + word]
        made.append(losses)
        at += 1 + len(source.words)
    return made


def _without(source: SideRead, word: int) -> SideRead:
    gone = set(source.tokens[word])
    return replace(source, ids=[UNK if i in gone else token for i, token in enumerate(source.ids)])


def shares(losses: Float[np.ndarray, "t s"]) -> Float[np.ndarray, "t s"]:
    """The part of each source word in what a target word loses; rows sum to one, or to zero."""
    lost = np.maximum(losses, 0)
    whole: np.ndarray = lost / np.maximum(lost.sum(1, keepdims=True), 1e-9)
    return whole
