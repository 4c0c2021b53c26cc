"""Expectation maximization in the form of gradients and an optimizer.

The gradient of the log-likelihood by the logarithm of a probability is the expected count of its
event. So the backward pass of `counted_loss` leaves expected counts, negated, where an optimizer
finds gradients, and they add up over the batches of an update; `ExpectationMaximization` replaces
all tables by the estimates from these counts. With every batch of the corpus in one update, that is
an iteration of EM. Tables are estimated by variational Bayes with a Dirichlet prior: Johnson
(2007), Why Doesn't EM Find Good HMM POS-Taggers?, https://aclanthology.org/D07-1031; for alignment:
Riley & Gildea (2012), https://aclanthology.org/P12-2060.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from regard.devices import to_device
from regard.tasks.alignment.attachments import SPARSITY
from regard.tasks.alignment.chain_aligner import (
    ChainAligner,
    Direction,
    Emissions,
    Posteriors,
    agree_on,
    distances,
)
from regard.tasks.alignment.word_pairs import WordPairs

LEAST_MOVE, LEAST_START = 1e-5, 1e-4
"""Added to the share of each move, and of each first position."""


def counted_loss(
    model: ChainAligner, emissions: Emissions, cells: Tensor, words: tuple[Tensor, Tensor]
) -> Tensor:
    """-log p(target | source) - log p(source | target), summed; its gradients are expected counts.

    Args:
        model: the aligner.
        emissions: those of the batch.
        cells: the cell of each pair of words, [b, t, s].
        words: target and source words by number; in padding, the number after the last one.
    """
    with torch.no_grad():
        chain = int(model.iteration) >= model.config.position_free
        if not model.training:
            chain = model.has_chain
        found = model.posteriors(emissions, chain=chain)
        value = -(found[0].log_likelihood.sum() + found[1].log_likelihood.sum())
    if not torch.is_grad_enabled():
        return value
    with torch.no_grad():
        counts = _expected_counts(model, emissions, found, cells, words)
    parameters = [
        part
        for side in (0, 1)
        for part in (
            model.direction(side).table,
            model.direction(side).empty,
            model.direction(side).moves,
            model.direction(side).starts,
            model.direction(side).rates,
            model.direction(side).spontaneous,
            model.direction(side).offsets,
        )
    ]
    result: Tensor = _CountsAsGradients.apply(value, *parameters, *counts)  # type: ignore[no-untyped-call]
    return result


def _expected_counts(
    model: ChainAligner,
    emissions: Emissions,
    found: tuple[Posteriors, Posteriors],
    cells: Tensor,
    words: tuple[Tensor, Tensor],
) -> list[Tensor]:
    """Counts of cells, words without counterpart, moves, starts and attachments, by direction."""
    mixed, attachments = found, None
    if int(model.iteration) > 0:  # the first posteriors are those of equal tables
        mixed = agree_on(*found, model.config.agreement)
        attachments = model.attachments(emissions, agree_on(*found, 1.0))
    counts = []
    for side in (0, 1):
        direction, own, shared = model.direction(side), found[side], mixed[side]
        weights = shared.weights if side == 0 else shared.weights.transpose(1, 2)
        table = torch.zeros_like(direction.table)
        table.index_add_(0, cells.flatten(), weights.flatten())
        empty = torch.zeros_like(direction.empty)
        empty.index_add_(0, words[side].flatten(), shared.empty.flatten())
        moves, starts = torch.zeros_like(direction.moves), torch.zeros_like(direction.starts)
        if own.moves is not None:
            farthest, first = model.config.farthest, own.weights[:, 0].sum(0)
            by_distance = distances(len(first), farthest, first.device).flatten()
            moves.index_add_(0, by_distance, own.moves.flatten())
            places = torch.arange(len(first), device=first.device).clamp(max=farthest - 1)
            starts.index_add_(0, places, first)
        rates, spontaneous, offsets = (
            torch.zeros_like(part)
            for part in (direction.rates, direction.spontaneous, direction.offsets)
        )
        if attachments is not None:
            further = attachments[side]
            attached = further.weights if side == 0 else further.weights.transpose(1, 2)
            rates.index_add_(0, cells.flatten(), attached.flatten())
            spontaneous.index_add_(0, words[side].flatten(), further.spontaneous.flatten())
            offsets.index_add_(0, further.offsets.flatten(), further.weights.flatten())
        counts += [table, empty, moves, starts, rates, spontaneous, offsets]
    return counts


class _CountsAsGradients(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor, *tensors: Tensor) -> Tensor:
        ctx.counts = tensors[len(tensors) // 2 :]
        return value.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        counts = [count * -gradients[0] for count in ctx.counts]
        return None, *counts, *[None] * len(counts)


class ExpectationMaximization(torch.optim.Optimizer):
    """Replaces the tables of an aligner by the estimates from expected counts."""

    def __init__(self, model: ChainAligner, pairs: WordPairs, words: int) -> None:
        """Make the optimizer.

        Args:
            model: the aligner.
            pairs: the words of its cells.
            words: number of predictions per update, by which the loop divides the loss.
        """
        super().__init__(model.parameters(), {"lr": 1.0})
        self.model, self.pairs, self.scale = model, pairs, float(words)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One maximization; parts without counts stay as they are."""
        for side in (0, 1):
            direction = self.model.direction(side)
            if direction.rates.grad is not None and float(direction.rates.grad.sum()) < 0:
                _estimate_attachments(self.model, self.pairs, side, self.scale)
            if direction.table.grad is not None:
                _estimate_table(self.model, self.pairs, side, direction.table.grad * -self.scale)
            if direction.empty.grad is not None:
                evidence = direction.empty.grad * -self.scale + self.model.config.concentration
                direction.empty.copy_((evidence.digamma() - evidence.sum().digamma()).exp())
            for part, least in (
                (direction.moves, LEAST_MOVE),
                (direction.starts, LEAST_START),
            ):
                if part.grad is not None and float(part.grad.sum()) < 0:
                    part.copy_(part.grad / part.grad.sum() + least)
        self.model.iteration += 1


def _estimate_attachments(model: ChainAligner, pairs: WordPairs, side: int, scale: float) -> None:
    """The rates of further words per occurrence, of words by themselves, and the offsets."""
    direction = model.direction(side)
    own, given = (_occurrences(model, pairs, i) * scale for i in (side, 1 - side))
    parts = direction.rates, direction.spontaneous, direction.offsets
    counts, alone, offsets = (_counts(part) * scale for part in parts)
    others = to_device(torch.from_numpy(pairs.words_of_cells[1 - side]), model)
    rates = (counts - SPARSITY).clamp(min=0) / (given[others] + 1)
    rates[0] = 0.0
    direction.rates.copy_(rates)
    direction.spontaneous.copy_(alone / own.sum().clamp(min=1) + 1e-9)
    direction.offsets.copy_((offsets + 1) / (offsets + 1).sum())


def _occurrences(model: ChainAligner, pairs: WordPairs, side: int) -> Tensor:
    """How often each word of a side occurs: its counts, linked or not, sum to one each time."""
    direction = model.direction(side)
    words = to_device(torch.from_numpy(pairs.words_of_cells[side]), model)
    linked = _counts(direction.table)
    linked[0] = 0.0
    return _sums(linked, words, len(pairs.words[side])) + _counts(direction.empty)[:-1]


def _counts(part: Tensor) -> Tensor:
    """The expected counts that the backward pass left, divided by the loop's number of words."""
    if part.grad is None:
        raise ValueError("expected the counts of a batch")
    return -part.grad


def _estimate_table(model: ChainAligner, pairs: WordPairs, side: int, counts: Tensor) -> None:
    """exp(ψ(count + prior) - ψ(their sum over the words)) for each cell."""
    config, direction = model.config, model.direction(side)
    numbers = [*pairs.words_of_cells, *pairs.prefixes_of_cells, pairs.prefix_cells]
    tensors = to_device([torch.from_numpy(array) for array in numbers], model)
    words, given, prefix, given_prefix, prefix_cells = (
        tensors[i] for i in (side, 1 - side, 2 + side, 3 - side, 4)
    )
    counts[0] = 0.0
    together = _sums(counts, prefix_cells, len(pairs.prefix_codes))
    of_given_prefix = _sums(counts, given_prefix, len(pairs.prefixes[1 - side]))
    of_words = _sums(counts, words, len(pairs.words[side]))
    of_prefix = _sums(counts, prefix, len(pairs.prefixes[side]))
    shares = counts.new_ones(len(pairs.words[side]) + 1)
    shares[:-1] = of_words / (of_prefix[_first(prefix, words, len(shares) - 1)] + 1e-6)
    by_prefix = together[prefix_cells] / (of_given_prefix[given_prefix] + 1e-3)
    evidence = (
        counts + config.concentration + config.similar_prior * to_device(pairs.similar, model)
    )
    evidence += config.prefix_prior * by_prefix * shares[words]
    evidence[0] = 0.0
    totals = _sums(evidence, given, len(pairs.words[1 - side])).clamp(min=1e-6)
    evidence[0] = 1.0
    table = (evidence.digamma() - totals.digamma()[given]).exp()
    table[0] = 0.0
    direction.table.copy_(table)
    _keep_for_unseen(direction, totals, shares, by_prefix, prefix_cells, config.prefix_prior)


def _keep_for_unseen(
    direction: Direction,
    totals: Tensor,
    shares: Tensor,
    by_prefix: Tensor,
    prefix_cells: Tensor,
    unknown_total: float,
) -> None:
    """What the prior of pairs of words that never occurred together is computed from."""
    direction.totals[:-1] = totals
    direction.totals[-1] = 1.0 + unknown_total
    direction.shares.copy_(shares)
    direction.prefixes[prefix_cells] = by_prefix


def _sums(values: Tensor, groups: Tensor, size: int) -> Tensor:
    """The sum of each group."""
    return values.new_zeros(size).index_add_(0, groups, values)


def _first(values: Tensor, groups: Tensor, size: int) -> Tensor:
    """A value of each group, all of whose values are the same."""
    return values.new_zeros(size).scatter_(0, groups, values)
