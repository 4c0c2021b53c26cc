"""Erasure: what each target word loses when a source word is replaced by the unknown token."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from regard.data import Pair
from regard.data.batches import pad
from regard.data.tokenizers.tokenizer import UNK
from regard.devices import device_of
from regard.inference.align.forced_pairs import EncodedSide, encode_pairs, force_pairs
from regard.inference.run import Run
from regard.training.matrix_products import choose_library, multiply_by


def erasure_losses(run: Run, pairs: Sequence[Pair]) -> list[Float[np.ndarray, "t s"]]:
    """How many nats each target word loses when a source word becomes unknown.

    log p(yₜ | y₁ … yₜ₋₁, x) - log p(yₜ | y₁ … yₜ₋₁, x without xₛ): the prediction difference of
    Li et al., 2019, On the Word Alignment from Neural Machine Translation,
    https://aclanthology.org/P19-1124. It measures what the model needs rather than what it
    attends to, and costs one pass per source word.
    """
    sources, targets = encode_pairs(run, pairs)
    erased: list[EncodedSide] = []
    repeated: list[EncodedSide] = []
    for source, target in zip(sources, targets, strict=True):
        erased += [source, *(_without(source, word) for word in range(len(source.words)))]
        repeated += [target] * (1 + len(source.words))
    by_version = [np.zeros(len(target.words)) for target in repeated]
    memberships = {id(target): target.membership() for target in targets}
    with multiply_by(choose_library(device_of(run.model))):
        for chosen, output in force_pairs(run.model, erased, repeated):
            ids, lengths = pad([np.array(repeated[i].ids, np.int64) for i in chosen])
            given = ids.to(output.logits.device)
            own = _log_probabilities(output.logits[:, : ids.shape[1]], given).cpu().double().numpy()
            for row, length, i in zip(own, lengths.tolist(), chosen.tolist(), strict=True):
                by_version[i] = row[:length] @ memberships[id(repeated[i])]
    # the versions of a pair stand one after the other, the whole source first
    all_losses, at = [], 0
    for source, target in zip(sources, targets, strict=True):
        losses = np.zeros((len(target.words), len(source.words)))
        for word in range(len(source.words)):
            losses[:, word] = by_version[at] - by_version[at + 1 + word]
        all_losses.append(losses)
        at += 1 + len(source.words)
    return all_losses


def _log_probabilities(
    logits: Float[Tensor, "b t v"], ids: Int[Tensor, "b t"]
) -> Float[Tensor, "b t"]:
    """Those of the given tokens alone, without a table of all words."""
    return logits.gather(-1, ids[..., None])[..., 0] - logits.logsumexp(-1)


def _without(source: EncodedSide, word: int) -> EncodedSide:
    gone = set(source.tokens[word])
    return replace(source, ids=[UNK if i in gone else token for i, token in enumerate(source.ids)])


def normalize_losses(losses: Float[np.ndarray, "t s"]) -> Float[np.ndarray, "t s"]:
    """The share of each source word in what a target word loses; rows sum to one, or to zero."""
    lost = np.maximum(losses, 0)
    whole: np.ndarray = lost / np.maximum(lost.sum(1, keepdims=True), 1e-9)
    return whole
