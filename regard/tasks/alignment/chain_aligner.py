"""The aligner: a hidden Markov model per direction, whose posteriors are attention weights.

p(target | source) = Σₐ Πⱼ p(aⱼ | aⱼ₋₁) · p(targetⱼ | source_{aⱼ}): each word is predicted from one
word of the other side or from none, and the next word attends nearby. `regard.attention.chain` has
the exact posteriors, and the papers.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.chain import chain_attention
from regard.tasks.alignment.attachments import (
    REACH,
    START_RATE,
    START_SPONTANEOUS,
    Attachments,
    attach,
)
from regard.tasks.alignment.task_options import AlignerConfig
from regard.tasks.alignment.word_pairs import Sizes

START_THRESHOLD = 0.4


class Posteriors(NamedTuple):
    """Where each word of one side attends on the other; zeros in padding."""

    weights: Float[Tensor, "b q k"]
    empty: Float[Tensor, "b q"]
    """That it attends to nothing."""
    log_likelihood: Float[Tensor, " b"]
    moves: Float[Tensor, "k k"] | None = None
    """Expected number of moves from key to key, in the chain."""


class Emissions(NamedTuple):
    """What both directions know of the words of a batch."""

    words: tuple[Float[Tensor, "b t s"], Float[Tensor, "b s t"]]
    """p(target word | source word), p(source word | target word)."""
    empty: tuple[Float[Tensor, "b t"], Float[Tensor, "b s"]]
    """p(word | nothing) of target and source."""
    lengths: tuple[Int[Tensor, " b"], Int[Tensor, " b"]]
    """Of target and source."""
    rates: tuple[Float[Tensor, "b t s"], Float[Tensor, "b s t"]]
    """How often each word comes as a further word of another one."""
    spontaneous: tuple[Float[Tensor, "b t"], Float[Tensor, "b s"]]
    """How often each word comes by itself."""


class Direction(nn.Module):
    """The tables of one side given the other."""

    def __init__(self, sizes: Sizes, side: int, farthest: int) -> None:
        """Tables in which everything is equally likely."""
        super().__init__()
        words, given = sizes.words[side], sizes.words[1 - side]
        known = torch.full((sizes.cells,), 1 / max(1, words))
        known[:1] = 0.0
        self.table = nn.Parameter(known)
        """p(word | given word) of each cell; 0 for padding."""
        self.empty = nn.Parameter(torch.full((words + 1,), 1 / max(1, words)))
        """p(word | nothing); the last one is that of an unknown word."""
        self.moves = nn.Parameter(torch.ones(2 * farthest + 1))
        """Weights of moves by their distance, from -farthest to farthest."""
        self.starts = nn.Parameter(torch.ones(farthest))
        """Weights of the first position."""
        rates = torch.full((sizes.cells,), START_RATE)
        rates[:1] = 0.0
        self.rates = nn.Parameter(rates)
        """How often the word is a further one, per occurrence of the given word; by cell."""
        self.spontaneous = nn.Parameter(torch.full((words + 1,), START_SPONTANEOUS))
        """How often each word comes by itself, per position."""
        self.offsets = nn.Parameter(torch.full((2 * REACH + 1,), 1 / (2 * REACH + 1)))
        """Distances of further words from the counterpart, from -REACH to REACH."""
        self.register_buffer("totals", torch.ones(given + 1))
        """Evidence for each given word, its prior included; the last one is of an unknown word."""
        self.register_buffer("shares", torch.ones(words + 1))
        """Share of each word among those with the same prefix."""
        self.register_buffer("prefixes", torch.zeros(sizes.prefix_cells))
        """p(prefix | prefix of the given word)."""

    totals: Tensor
    shares: Tensor
    prefixes: Tensor


class ChainAligner(nn.Module):
    """Both directions: target given source, and source given target."""

    iteration: Tensor
    threshold: Tensor

    def __init__(self, config: AlignerConfig, sizes: Sizes) -> None:
        """An aligner that has learned nothing."""
        super().__init__()
        self.config = config
        self.directions = nn.ModuleList(Direction(sizes, side, config.farthest) for side in (0, 1))
        self.register_buffer("iteration", torch.zeros((), dtype=torch.int64))
        """Number of iterations that it has learned for."""
        self.register_buffer("threshold", torch.tensor(START_THRESHOLD))
        """Minimum weight of a link, chosen on validation data."""

    def direction(self, side: int) -> Direction:
        """The tables of one direction."""
        module = self.directions[side]
        if not isinstance(module, Direction):
            raise TypeError(type(module))
        return module

    @property
    def has_chain(self) -> bool:
        """Whether it has learned moves."""
        return int(self.iteration) > self.config.position_free

    def emissions(
        self,
        cells: Int[Tensor, "b t s"],
        words: tuple[Tensor, Tensor],
        lengths: tuple[Tensor, Tensor],
    ) -> Emissions:
        """The probabilities of the words of a batch, all of which occur together in training."""
        target, source = (self.direction(side).table[cells] for side in (0, 1))
        first, second = (self.direction(side).empty[words[side]] for side in (0, 1))
        one, other = (self.direction(side).rates[cells] for side in (0, 1))
        alone, apart = (self.direction(side).spontaneous[words[side]] for side in (0, 1))
        return Emissions(
            (target, source.transpose(1, 2)),
            (first, second),
            lengths,
            (one, other.transpose(1, 2)),
            (alone, apart),
        )

    def attachments(
        self, emissions: Emissions, agreed: tuple[Posteriors, Posteriors]
    ) -> tuple[Attachments, Attachments]:
        """The further words of both sides, given what both directions agree on."""
        first, second = (
            attach(
                emissions.rates[side],
                emissions.spontaneous[side],
                self.direction(side).offsets,
                agreed[side].weights,
                agreed[side].empty,
            )
            for side in (0, 1)
        )
        return first, second

    def posteriors(self, emissions: Emissions, *, chain: bool) -> tuple[Posteriors, Posteriors]:
        """Those of both directions: of target words over the source, of source words over it."""
        first, second = (self._posteriors(emissions, side, chain) for side in (0, 1))
        return first, second

    def _posteriors(self, emissions: Emissions, side: int, chain: bool) -> Posteriors:
        words, empty = emissions.words[side], emissions.empty[side]
        queries, keys = emissions.lengths[side], emissions.lengths[1 - side]
        nothing, size = self.config.empty_probability, words.shape[-1]
        if chain:
            direction = self.direction(side)
            places = torch.arange(size, device=words.device).clamp(max=self.config.farthest - 1)
            found = chain_attention(
                words,
                empty,
                direction.moves[distances(size, self.config.farthest, words.device)],
                direction.starts[places],
                queries,
                keys,
                nothing,
            )
            return Posteriors(found.weights, found.empty, found.log_likelihood, found.moves)
        real = torch.arange(words.shape[1], device=words.device) < queries[:, None]
        linked = words * ((1 - nothing) / keys[:, None, None]) * real[..., None]
        unlinked = empty * nothing * real
        total = (linked.sum(-1) + unlinked).clamp(min=torch.finfo(words.dtype).tiny)
        likelihood = (total.log() * real).sum(-1)
        return Posteriors(linked / total[..., None], unlinked / total, likelihood)


def distances(size: int, farthest: int, device: torch.device | None = None) -> Int[Tensor, "k k"]:
    """The number of each move from key to key among the moves by distance.

    >>> distances(3, 1).tolist()
    [[1, 2, 2], [0, 1, 2], [0, 0, 1]]
    """
    places = torch.arange(size, device=device)
    return (places - places[:, None]).clamp(-farthest, farthest) + farthest


def agree_on(one: Posteriors, other: Posteriors, share: float) -> tuple[Posteriors, Posteriors]:
    """Both directions with a share of their product, normalized per word of either side.

    A word has no counterpart in the product if its own direction has none for it and the other
    direction links no word to it. Liang et al. (2006), Alignment by Agreement,
    https://aclanthology.org/N06-1014.
    """
    product = one.weights * other.weights.transpose(1, 2)
    mixed = []
    for own, opposite, linked in (
        (one, other, product),
        (other, one, product.transpose(1, 2)),
    ):
        unlinked = (1 - opposite.weights.transpose(1, 2)).clamp(min=1e-6).prod(-1) * own.empty
        total = (linked.sum(-1) + unlinked).clamp(min=1e-9)
        mixed.append(
            own._replace(
                weights=torch.lerp(own.weights, linked / total[..., None], share),
                empty=torch.lerp(own.empty, unlinked / total, share),
            )
        )
    return mixed[0], mixed[1]
