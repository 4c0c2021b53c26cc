"""Posteriors of any sentence pairs, also with words that never occurred together in training."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.data import Pair
from regard.data.batches import ordered_batches, pad
from regard.devices import to_device
from regard.errors import RegardError
from regard.progress import track
from regard.tasks.alignment.attachments import LEAST_PROBABILITY, LEAST_RATE
from regard.tasks.alignment.chain_aligner import (
    ChainAligner,
    Direction,
    Emissions,
    Posteriors,
    agree_on,
)
from regard.tasks.alignment.word_pairs import WordPairs, find_sorted, similarity, spell

if TYPE_CHECKING:
    from regard.tasks.alignment.task import Alignment

BATCH_TOKENS = 8192
MAX_WORDS = 2000
"""Words of a sentence: memory and time grow with their product."""


@dataclass(frozen=True)
class PairPosteriors:
    """The attention between the words of a pair, in both directions."""

    source: list[str]
    target: list[str]
    forward: Float[np.ndarray, "t s"]
    """Of target words over source words."""
    forward_empty: Float[np.ndarray, " t"]
    """That a target word has no counterpart."""
    backward: Float[np.ndarray, "s t"]
    backward_empty: Float[np.ndarray, " s"]
    attached: Float[np.ndarray, "t s"]
    """That one of both is a further word of the other's counterpart; 0 where that is unlikely."""

    @property
    def weights(self) -> Float[np.ndarray, "t s"]:
        """The geometric mean of both directions, and the further words."""
        mean = np.sqrt(self.forward * self.backward.T)
        either: np.ndarray = np.maximum(mean, self.attached)
        return either

    @property
    def joint(self) -> Float[np.ndarray, "t s"]:
        """What both directions agree on: a distribution over source words per target word.

        A row sums to less than 1 by the probability that the word has no counterpart.
        """
        product = self.forward * self.backward.T
        unlinked = self.forward_empty * (1 - self.backward.T).clip(min=1e-6).prod(-1)
        rows: np.ndarray = product / (product.sum(-1) + unlinked).clip(min=1e-9)[:, None]
        rows = rows + self.attached
        rows /= rows.sum(-1, keepdims=True).clip(min=1)
        return rows

    def links(self, threshold: float) -> set[tuple[int, int]]:
        """The links, source first, whose weight is at least the threshold."""
        return {(int(s), int(t)) for t, s in np.argwhere(self.weights >= max(threshold, 1e-12))}

    def best(self, side: int) -> set[tuple[int, int]]:
        """The most likely link of each word of the target (0) or the source (1), if it has one."""
        weights, empty = (
            (self.forward, self.forward_empty)
            if side == 0
            else (self.backward, self.backward_empty)
        )
        found = enumerate(weights.argmax(-1).tolist() if weights.size else [])
        linked = [(q, k) for q, k in found if weights[q, k] > empty[q]]
        return {(k, q) for q, k in linked} if side == 0 else set(linked)


@torch.no_grad()
def align_pairs(
    task: "Alignment", model: ChainAligner, pairs: Sequence[Pair]
) -> list[PairPosteriors]:
    """The posteriors of each pair, in order; those of a pair with an empty side are empty."""
    texts = [(pair.target.split(), pair.source.split()) for pair in pairs]
    for pair, (target, source) in zip(pairs, texts, strict=True):
        if max(len(target), len(source)) > MAX_WORDS:
            raise RegardError(
                f"{pair.where or repr(pair.source[:60])}: sentences of {len(source):,} and "
                f"{len(target):,} words: expected at most {MAX_WORDS:,} words; split them"
            )
    found = [_nothing(target, source) for target, source in texts]
    filled = np.array([i for i, text in enumerate(texts) if all(text)], np.int64)
    lengths = np.array([[len(texts[i][0]), len(texts[i][1])] for i in filled], np.int32)
    batches = ordered_batches(lengths.reshape(-1, 2), BATCH_TOKENS)
    chain = model.has_chain
    for batch in track(batches, "aligning", len(filled), "pairs", weight=len):
        chosen = filled[batch]
        sides = [[[task.fold(w) for w in texts[i][side]] for i in chosen] for side in (0, 1)]
        emissions = _emissions(model, task.pairs, sides)
        one, other = model.posteriors(emissions, chain=chain)
        attached = _attached(model, emissions, (one, other)).cpu()
        forward, backward = _on_cpu(one), _on_cpu(other)
        for row, i in enumerate(chosen.tolist()):
            target, source = texts[i]
            t, s = len(target), len(source)
            found[i] = PairPosteriors(
                source,
                target,
                forward.weights[row, :t, :s].double().numpy(),
                forward.empty[row, :t].double().numpy(),
                backward.weights[row, :s, :t].double().numpy(),
                backward.empty[row, :s].double().numpy(),
                attached[row, :t, :s].double().numpy(),
            )
    return found


def _attached(
    model: ChainAligner, emissions: Emissions, found: tuple[Posteriors, Posteriors]
) -> Tensor:
    """The likely further words of either side, [b, t, s]."""
    one, other = (
        further.weights * (further.weights >= LEAST_PROBABILITY) * (rates >= LEAST_RATE)
        for further, rates in zip(
            model.attachments(emissions, agree_on(*found, 1.0)), emissions.rates, strict=True
        )
    )
    return torch.maximum(one, other.transpose(1, 2))


def _on_cpu(posteriors: Posteriors) -> Posteriors:
    return posteriors._replace(weights=posteriors.weights.cpu(), empty=posteriors.empty.cpu())


def _nothing(target: list[str], source: list[str]) -> PairPosteriors:
    t, s = len(target), len(source)
    nothing = np.zeros((t, s))
    return PairPosteriors(source, target, nothing, np.ones(t), nothing.T, np.ones(s), nothing)


@dataclass(frozen=True)
class _Words:
    """The distinct words of one side of a batch."""

    numbers: np.ndarray
    """In the vocabulary; one after the last for unknown words."""
    letters: np.ndarray
    prefixes: np.ndarray
    """Numbers of their prefixes; -1 for unknown ones."""


def _emissions(
    model: ChainAligner, pairs: WordPairs, sides: Sequence[Sequence[Sequence[str]]]
) -> Emissions:
    places: list[Tensor] = []
    lengths: list[Tensor] = []
    words: list[_Words] = []
    for side in (0, 1):
        local: dict[str, int] = {}
        rows = [np.array([local.setdefault(w, len(local)) for w in row]) for row in sides[side]]
        padded, length = pad(rows)
        known, size = pairs.numbers[side], len(pairs.words[side])
        spelled = list(local)
        words.append(
            _Words(
                np.array([known.get(w, size) for w in spelled], np.int64),
                spell(spelled),
                pairs.prefix_numbers(side, spelled),
            )
        )
        places.append(padded)
        lengths.append(length)
    codes = places[0][:, :, None] * len(words[1].numbers) + places[1][:, None]
    unique, where = torch.unique(codes, return_inverse=True)
    local_pairs = np.divmod(unique.numpy(), len(words[1].numbers))
    cells = _cells(pairs, (words[0], words[1]), local_pairs)
    tables = [
        _word_probabilities(model, pairs, side, (words[0], words[1]), local_pairs, cells)
        for side in (0, 1)
    ]
    numbers = [torch.from_numpy(words[side].numbers)[places[side]] for side in (0, 1)]
    numbers = to_device(numbers, model)
    empty = [model.direction(side).empty[numbers[side]] for side in (0, 1)]
    alone = [model.direction(side).spontaneous[numbers[side]] for side in (0, 1)]
    places_of_cells = to_device(torch.from_numpy(cells), model)
    rates = [model.direction(side).rates[places_of_cells] for side in (0, 1)]
    where, lengths = to_device(where, model), to_device(lengths, model)
    return Emissions(
        (tables[0][where], tables[1][where].transpose(1, 2)),
        (empty[0], empty[1]),
        (lengths[0], lengths[1]),
        (rates[0][where], rates[1][where].transpose(1, 2)),
        (alone[0], alone[1]),
    )


def _cells(
    pairs: WordPairs, words: tuple[_Words, _Words], places: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """The cell of each pair of distinct words; 0 where they never occurred together."""
    target, source = (words[i].numbers[places[i]] for i in (0, 1))
    seen = (target < len(pairs.words[0])) & (source < len(pairs.words[1]))
    return np.where(seen, pairs.find_cells(target * len(pairs.words[1]) + source), 0)


def _word_probabilities(
    model: ChainAligner,
    pairs: WordPairs,
    side: int,
    words: tuple[_Words, _Words],
    places: tuple[np.ndarray, np.ndarray],
    cells: np.ndarray,
) -> Tensor:
    """p(word | given word) of pairs of distinct words: the table, or the prior of unseen pairs."""
    direction = model.direction(side)
    found: Tensor = direction.table[to_device(torch.from_numpy(cells), model)].clone()
    unseen = np.flatnonzero(cells == 0)
    if len(unseen):
        chosen = places[0][unseen], places[1][unseen]
        places_unseen = to_device(torch.from_numpy(unseen), model)
        found[places_unseen] = _prior(model, pairs, direction, side, words, chosen)
    return found


def _prior(
    model: ChainAligner,
    pairs: WordPairs,
    direction: Direction,
    side: int,
    words: tuple[_Words, _Words],
    places: tuple[np.ndarray, np.ndarray],
) -> Tensor:
    config = model.config
    alike = similarity(words[0].letters, words[1].letters, *places)
    prefixes = [words[i].prefixes[places[i]] for i in (0, 1)]
    code = np.where(
        (prefixes[0] >= 0) & (prefixes[1] >= 0),
        prefixes[0] * len(pairs.prefixes[1]) + prefixes[1],
        -1,
    )
    prefix_cells = find_sorted(pairs.prefix_codes, code, missing=-1)
    arrays = (
        prefix_cells,
        words[side].numbers[places[side]],
        words[1 - side].numbers[places[1 - side]],
    )
    prefix, own, given = to_device([torch.from_numpy(array) for array in arrays], model)
    by_prefix = direction.prefixes[prefix.clamp(min=0)] * (prefix >= 0)
    likeness = to_device(torch.from_numpy(alike), model)
    evidence = config.concentration + config.similar_prior * likeness
    evidence = evidence + config.prefix_prior * by_prefix * direction.shares[own]
    return (evidence.digamma() - (direction.totals[given] + evidence).digamma()).exp()
