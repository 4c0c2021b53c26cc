"""Perturbation: an output without some words, with these alone, or under other attention.

Comprehensiveness is p(x) - p(x without the top words), sufficiency p(x) - p(the top words alone),
p the probability of what the model chose; each is the mean over several proportions of the words.
DeYoung et al., 2020, https://arxiv.org/abs/1911.03429
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.inference.explain.hooks import change_weights, shuffle_weights, uniform_weights
from regard.tasks.shared.explain_target import ExplainTarget


class ErasureEffect(NamedTuple):
    """The drop in probability without the top words, and with them alone."""

    comprehensiveness: float
    sufficiency: float


class AttentionEffect(NamedTuple):
    """How often other weights change the choice, and how far they move the distribution."""

    flips: float
    distance: float
    """Total variation, ½ Σ |p - p'|."""


def select_outputs(target: ExplainTarget, outputs: Sequence[int]) -> ExplainTarget:
    """The same target with some of its outputs."""
    return replace(
        target,
        positions=tuple(target.positions[i] for i in outputs),
        chosen=tuple(target.chosen[i] for i in outputs),
        names=tuple(target.names[i] for i in outputs),
        visible=target.visible[list(outputs)],
    )


def sum_over_words(
    target: ExplainTarget, output: int, values: Float[np.ndarray, "t"]
) -> Float[np.ndarray, "u"]:
    """The sum over the tokens of each word that the output depends on."""
    seen = target.visible[output]
    _, numbers = np.unique(target.units[seen], return_inverse=True)
    return np.bincount(numbers, values[seen])


def erase_by(
    target: ExplainTarget,
    rankings_of_outputs: Sequence[Mapping[str, Sequence[Int[np.ndarray, "u"]]]],
    proportions: Sequence[float],
) -> list[dict[str, ErasureEffect]]:
    """The effect of each method's rankings of the words, for every output.

    Several rankings of one method are averaged. All versions of the text, of all outputs and
    methods, are read together.
    """
    versions: list[np.ndarray] = []
    outputs: list[int] = []
    for output, rankings in enumerate(rankings_of_outputs):
        versions_of_output = list(_versions(target, output, rankings, proportions))
        versions += versions_of_output
        outputs += [output] * len(versions_of_output)
    probabilities = _probabilities(target, np.array(outputs), np.array(versions))
    all_effects, start = [], 0
    for rankings in rankings_of_outputs:
        whole, start = probabilities[start], start + 1
        effects = {}
        for method, orders in rankings.items():
            count = 2 * len(orders) * len(proportions)
            drops = whole - probabilities[start : start + count].reshape(-1, 2)
            effects[method] = ErasureEffect(*drops.mean(0).tolist())
            start += count
        all_effects.append(effects)
    return all_effects


def _versions(
    target: ExplainTarget,
    output: int,
    rankings: Mapping[str, Sequence[Int[np.ndarray, "u"]]],
    proportions: Sequence[float],
) -> Iterator[Bool[np.ndarray, "t"]]:
    """The whole text; then, for every ranking and size, without the top words and these alone."""
    seen = target.visible[output]
    units = np.unique(target.units[seen])
    sizes = [int(np.ceil(proportion * len(units))) for proportion in proportions]
    yield np.ones(target.tokens, dtype=bool)
    for orders in rankings.values():
        for order in orders:
            for size in sizes:
                top = np.isin(target.units, units[order[:size]]) & seen
                yield ~top
                yield top | ~seen


@torch.no_grad()
def perturb_attention(
    target: ExplainTarget, shuffles: int, generator: torch.Generator
) -> dict[str, AttentionEffect]:
    """The effect of shuffled and of uniform attention on the outputs."""
    modules = target.output_attention
    if not modules:
        return {}
    before = _distributions(target, 1)
    effects = {}
    for name, change, times in (
        ("shuffled", shuffle_weights(generator), shuffles),
        ("uniform", uniform_weights, 1),
    ):
        with change_weights(modules, change):
            after = _distributions(target, times)
        same = before.repeat_interleave(times, 0)
        flips = (after.argmax(-1) != same.argmax(-1)).double().mean()
        moved = (after - same).abs().sum(-1).mean() / 2
        effects[name] = AttentionEffect(float(flips), float(moved))
    return effects


@torch.no_grad()
def _probabilities(
    target: ExplainTarget, outputs: Int[np.ndarray, "n"], versions: Bool[np.ndarray, "n t"]
) -> Float[np.ndarray, "n"]:
    """The probability of one output for each version of the text; equal rows are read once."""
    rows = np.concatenate([outputs[:, None], versions], 1)
    different, back = np.unique(rows, axis=0, return_inverse=True)
    which, kept = torch.from_numpy(different[:, 0]), torch.from_numpy(different[:, 1:] > 0)
    parts = []
    for batch in torch.arange(len(kept)).split(target.batch_size):
        positions, chosen = target.outputs(which[batch])
        reading = target.read(kept[batch].to(positions.device), positions, False)
        parts.append(reading.log_probabilities.gather(1, chosen[:, None])[:, 0].exp())
    probabilities: np.ndarray = torch.cat(parts).cpu().double().numpy()[back.ravel()]
    return probabilities


def _distributions(target: ExplainTarget, times: int) -> Float[Tensor, "n v"]:
    outputs = torch.arange(len(target.positions)).repeat_interleave(times)
    parts = []
    for batch in outputs.split(target.batch_size):
        positions, _ = target.outputs(batch)
        reading = target.read(target.all_tokens(len(batch)), positions, False)
        parts.append(reading.log_probabilities.exp())
    return torch.cat(parts).cpu()
