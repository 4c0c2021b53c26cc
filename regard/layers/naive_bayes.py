"""Naive Bayes on n-grams of words, as a layer: what single words and word pairs say of a label."""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

NEWTON_STEPS, CLOSE = 30, 1e-5
"""The most steps of Newton's method, and the size of one after which it stops."""
GAIN = 10.0
"""Scale of the learned weights of n-grams, so that they move ten times as far per update."""


class Presence(nn.Module):
    """One for each word: the input of n-grams, by which gradients find the words that matter."""

    def forward(self, words: Int[Tensor, "b t"]) -> Float[Tensor, "b t 1"]:
        """Ones."""
        return torch.ones(*words.shape, 1, device=words.device)


class NGramEvidence(nn.Module):
    """For each word, how much the n-grams that end there favour each label.

    The evidence of an n-gram g for a label y is ½ ln(p(g | y) / p(g | ¬y)), with one added to each
    count; an n-gram that training has not seen has none. The counts are fixed. While a network is
    trained on the texts that were counted, each text is left out of the counts by which it is
    judged: its n-grams say no more about its label than they will about labels of unseen texts.

    Nothing here is part of the state of a model: the counts are prepared data.
    """

    def __init__(
        self,
        keys: Int[np.ndarray, "n"],
        counts: Float[np.ndarray, "n c"],
        *,
        vocabulary: int,
        longest: int,
        first_word: int,
    ) -> None:
        """Take the counts.

        Args:
            keys: the n-grams in ascending order, as numbers in the base `vocabulary`.
            counts: how often each occurs with each label, and, in the last column, in all.
            vocabulary: number of words.
            longest: length of the longest n-grams.
            first_word: the first word that counts; those before it are special.
        """
        super().__init__()
        self.vocabulary, self.longest, self.first_word = vocabulary, longest, first_word
        self.labels = counts.shape[1] - 1
        self.presence = Presence()
        # at least one row, which no text has, so that there is always something to look up
        if not len(keys):
            keys, counts = np.full(1, -1), np.zeros((1, self.labels + 1), np.float32)
        orders = np.searchsorted([vocabulary**n for n in range(1, longest)], keys, "right")
        sizes = np.bincount(orders, minlength=longest).clip(1).astype(np.float32)
        totals = np.stack([counts[orders == n].sum(0, np.float64) for n in range(longest)])
        self.register_buffer("keys", torch.from_numpy(keys), persistent=False)
        self.register_buffer("counts", torch.from_numpy(counts), persistent=False)
        self.register_buffer("sizes", torch.from_numpy(sizes), persistent=False)
        self.register_buffer("totals", torch.from_numpy(totals).float(), persistent=False)
        totals_of_rows, sizes_of_rows = self.totals[orders], self.sizes[orders]
        table = _evidence(
            self.counts[:, :-1],
            self.counts[:, -1:],
            totals_of_rows[:, :-1],
            totals_of_rows[:, -1:],
            sizes_of_rows[:, None],
        )
        self.register_buffer("table", table, persistent=False)

    keys: Tensor
    counts: Tensor
    sizes: Tensor
    totals: Tensor
    table: Tensor

    def forward(
        self, words: Int[Tensor, "b t"], labels: Float[Tensor, "b c"] | None = None
    ) -> Float[Tensor, "b t e"]:
        """Evidence [b, t, longest · c]; texts with these `labels` (0 or 1) are left out."""
        presence, parts = self.presence(words), []
        for order in range(self.longest):
            places, found = self.find(words, order + 1)
            evidence = (
                self.table[places]
                if labels is None
                else self._without(places, order, found, labels)
            )
            before = [_shift(presence, back) for back in range(order + 1)]
            parts.append(evidence * (found.unsqueeze(-1) * sum(before) / (order + 1)))
        return torch.cat(parts, -1)

    def find(self, words: Int[Tensor, "b t"], length: int) -> tuple[Tensor, Tensor]:
        """The row of the n-gram that ends at each word, and whether there is one."""
        keys, whole = torch.zeros_like(words), torch.ones_like(words, dtype=torch.bool)
        for back in reversed(range(length)):
            before = _shift(words, back)
            keys = keys * self.vocabulary + before
            whole = whole & (before >= self.first_word)
        places = torch.searchsorted(self.keys, keys).clamp(max=len(self.keys) - 1)
        return places, whole & (self.keys[places] == keys)

    def _without(self, places: Tensor, order: int, found: Tensor, labels: Tensor) -> Tensor:
        """The evidence of each n-gram by all texts but its own, which has these labels."""
        same = (places.unsqueeze(1) == places.unsqueeze(2)) & found.unsqueeze(1)
        same &= found.unsqueeze(2)
        own = same.sum(-1, keepdim=True).to(labels)
        size = found.sum(1)[:, None, None].to(labels)
        theirs = labels[:, None]
        counts, totals = self.counts[places], self.totals[order]
        left = counts[..., -1:] - own
        evidence = _evidence(
            counts[..., :-1] - own * theirs,
            left,
            totals[:-1] - size * theirs,
            totals[-1:] - size,
            self.sizes[order],
        )
        return evidence * (left > 0)


def _minimum(function: Callable[[Tensor], Tensor], start: Float[Tensor, "n"]) -> Tensor:
    """Where a convex function of a few numbers is smallest, by Newton's method.

    torch's optimizers would import its compiler, which takes a second or two.
    """
    point = start
    for _ in range(NEWTON_STEPS):
        with torch.enable_grad():
            here = point.requires_grad_()
            value = function(here)
            (slope,) = torch.autograd.grad(value, here, create_graph=True)
            rows = [torch.autograd.grad(part, here, retain_graph=True)[0] for part in slope]
        curvature, point = torch.stack(rows), here.detach()
        if not bool(torch.isfinite(curvature).all()):
            return curvature.sum(0)
        step = torch.linalg.solve(curvature, slope.detach())
        while step.abs().max() > CLOSE and function(point - step) > value:
            step = step / 2
        point = point - step
        if step.abs().max() <= CLOSE:
            break
    return point


def _shift(x: Tensor, back: int) -> Tensor:
    """What stood `back` positions earlier, and zeros at the beginning."""
    return torch.cat([torch.zeros_like(x[:, :back]), x[:, : x.shape[1] - back]], 1)


def _evidence(
    with_label: Tensor, whole: Tensor, label_total: Tensor, total: Tensor, size: Tensor
) -> Tensor:
    """½ ln(p(g | y) / p(g | ¬y)) from counts of the n-gram and of all n-grams of its length."""
    favour = (with_label + 1).log() - (label_total + size).log()
    against = (whole - with_label + 1).log() - (total - label_total + size).log()
    return (favour - against) / 2


class NaiveBayes(nn.Module):
    """Logits Σₙ wₙ Σᵢ evidenceₙᵢ / √t of a text of t words, with a learned weight per length n.

    Wang and Manning, 2012, https://aclanthology.org/P12-2018
    """

    def __init__(self, evidence: NGramEvidence) -> None:
        super().__init__()
        self.evidence = evidence
        longest = evidence.longest
        self.weight = nn.Parameter(torch.tensor([2 / n / GAIN for n in range(1, longest + 1)]))
        self.register_buffer("network_weight", torch.ones(()))

    network_weight: Tensor
    """The weight of the logits of the network beside which n-grams vote."""

    def forward(
        self,
        words: Int[Tensor, "b t"],
        lengths: Int[Tensor, "b"],
        labels: Float[Tensor, "b c"] | None = None,
    ) -> Float[Tensor, "b c"]:
        """Logits; `labels` are those of texts that are to be left out of the counts."""
        evidence = self.evidence_of_texts(words, lengths, labels)
        logits: Tensor = torch.einsum("bnc,n->bc", evidence, self.weight * GAIN)
        return logits

    def evidence_of_texts(
        self,
        words: Int[Tensor, "b t"],
        lengths: Int[Tensor, "b"],
        labels: Float[Tensor, "b c"] | None = None,
    ) -> Float[Tensor, "b n c"]:
        """Logits by the n-grams of each length, with the weight 1."""
        real = torch.arange(words.shape[1], device=words.device) < lengths[:, None]
        evidence = self._by_length(self.evidence(words * real, labels)).sum(1)
        return evidence * lengths.clamp(min=1).to(evidence).rsqrt()[:, None, None]

    def fit(self, evidence: Float[Tensor, "b n c"], loss: Callable[[Tensor], Tensor]) -> None:
        """Set the weights for which the loss of the logits [b, c] of some texts is smallest.

        Each weight has a normal prior of standard deviation 2, for few texts.
        """

        def penalized(weight: Tensor) -> Tensor:
            return loss(torch.einsum("bnc,n->bc", evidence, weight)) + weight.square().sum() / 8

        weight = _minimum(penalized, self.weight.detach() * GAIN)
        if bool(torch.isfinite(weight).all()):
            with torch.no_grad():
                self.weight.copy_(weight / GAIN)

    def votes(self, words: Int[Tensor, "t"]) -> Float[Tensor, "t c"]:
        """The share of each word in the logits of one text: n-grams share their votes equally."""
        by_length = self._by_length(self.evidence(words[None]))[0]
        total = torch.zeros_like(by_length[:, 0])
        for order, weight in enumerate(self.weight * GAIN):
            for back in range(order + 1):
                share = by_length[back:, order] * weight / (order + 1)
                total[: len(words) - back] += share
        votes: Tensor = total / max(1, len(words)) ** 0.5
        return votes

    @torch.no_grad()
    def votes_of_ngrams(self, words: Int[Tensor, "t"]) -> list[tuple[int, int, list[float]]]:
        """Each known n-gram of one text: where it starts and ends, and what it adds to logits."""
        by_length = self._by_length(self.evidence(words[None]))[0]
        votes = by_length * (self.weight * GAIN)[:, None] / max(1, len(words)) ** 0.5
        return [
            (end - order, end + 1, votes[end, order].tolist())
            for end, order in votes.any(-1).nonzero().tolist()
        ]

    def _by_length(self, evidence: Float[Tensor, "b t e"]) -> Float[Tensor, "b t n c"]:
        parts: Tensor = evidence.unflatten(-1, (self.evidence.longest, self.evidence.labels))
        return parts
