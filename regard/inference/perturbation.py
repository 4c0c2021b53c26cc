"""Perturbation: what happens to an output without some words, with them alone, or with attention
elsewhere.

Comprehensiveness is p(x) - p(x without the top words), sufficiency p(x) - p(the top words alone),
p the probability of what the model chose; each is the mean over several shares of the words.
DeYoung et al., 2020, https://arxiv.org/abs/1911.03429
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.inference.interventions import attentions, changed_weights, shuffled, uniform
from regard.inference.questions import Question
from regard.models import Classifier, Translator


class Erased(NamedTuple):
    """The drop in probability without the named words, and with them alone."""

    comprehensiveness: float
    sufficiency: float


class Shaken(NamedTuple):
    """How often other weights change the choice, and how far they move the distribution."""

    flips: float
    distance: float
    """Total variation, ½ Σ |p - p'|."""


def narrowed(question: Question, outputs: Sequence[int]) -> Question:
    """The same question about some of its outputs."""
    return replace(
        question,
        places=tuple(question.places[i] for i in outputs),
        chosen=tuple(question.chosen[i] for i in outputs),
        names=tuple(question.names[i] for i in outputs),
        visible=question.visible[list(outputs)],
    )


def unit_scores(
    question: Question, output: int, values: Float[np.ndarray, "t"]
) -> Float[np.ndarray, "u"]:
    """The sum over the tokens of each word that the output depends on."""
    seen = question.visible[output]
    _, numbers = np.unique(question.units[seen], return_inverse=True)
    return np.bincount(numbers, values[seen])


def erase_by(
    question: Question,
    output: int,
    rankings: Mapping[str, Sequence[Int[np.ndarray, "u"]]],
    shares: Sequence[float],
) -> dict[str, Erased]:
    """What each method's rankings of the words do; several rankings of one method are averaged."""
    seen = question.visible[output]
    units = np.unique(question.units[seen])
    sizes = [int(np.ceil(share * len(units))) for share in shares]
    versions: list[np.ndarray] = [np.ones(question.tokens, dtype=bool)]
    for orders in rankings.values():
        for order in orders:
            for size in sizes:
                named = np.isin(question.units, units[order[:size]]) & seen
                versions += [~named, named | ~seen]
    chances = _probabilities(question, output, np.array(versions))
    found, start = {}, 1
    for method, orders in rankings.items():
        count = 2 * len(orders) * len(sizes)
        drops = chances[0] - chances[start : start + count].reshape(-1, 2)
        found[method] = Erased(*drops.mean(0).tolist())
        start += count
    return found


@torch.no_grad()
def shake(question: Question, shuffles: int, generator: torch.Generator) -> dict[str, Shaken]:
    """What becomes of the outputs under shuffled and under uniform attention."""
    parts = next_to_output(question.network)
    if not parts:
        return {}
    before = _distributions(question, 1)
    found = {}
    for name, change, times in (
        ("shuffled", shuffled(generator), shuffles),
        ("uniform", uniform, 1),
    ):
        with changed_weights(parts, change):
            after = _distributions(question, times)
        same = before.repeat_interleave(times, 0)
        flips = (after.argmax(-1) != same.argmax(-1)).double().mean()
        moved = (after - same).abs().sum(-1).mean() / 2
        found[name] = Shaken(float(flips), float(moved))
    return found


def next_to_output(network: nn.Module) -> list[nn.Module]:
    """The attentions that stand next to the output, those that speak for the model.

    The pooling of a classifier where it has weights, a decoder's attention to the source; all of
    them elsewhere.
    """
    if isinstance(network, Classifier) and network.pooling in attentions(network):
        return [network.pooling]
    if isinstance(network, Translator):
        own = {id(part) for name, part in network.named_modules() if name.endswith(".own")}
        return [part for part in attentions(network.decoder) if id(part) not in own]
    return attentions(network)


@torch.no_grad()
def _probabilities(
    question: Question, output: int, versions: Bool[np.ndarray, "n t"]
) -> Float[np.ndarray, "n"]:
    """The probability of an output for versions of the text; each different one is read once."""
    different, back = np.unique(versions, axis=0, return_inverse=True)
    kept = torch.from_numpy(different)
    place = torch.tensor([question.places[output]])
    found = [
        question.read(some, place.expand(len(some)), False)
        .log_probabilities[:, question.chosen[output]]
        .exp()
        for some in kept.split(question.at_once)
    ]
    chances: np.ndarray = torch.cat(found).double().numpy()[back.ravel()]
    return chances


def _distributions(question: Question, times: int) -> Float[Tensor, "n v"]:
    places = torch.tensor(question.places).repeat_interleave(times)
    found = []
    for some in places.split(question.at_once):
        kept = torch.ones(len(some), question.tokens, dtype=torch.bool)
        found.append(question.read(kept, some, False).log_probabilities.exp())
    return torch.cat(found)
