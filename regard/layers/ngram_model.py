"""An n-gram model of running text as a layer, and its mixture with a network."""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

ITERATIONS = 30
"""Iterations in which the weights of a mixture are estimated."""
PRIOR = 10.0
"""Number of words as which the weight of all contexts counts in that of contexts of one length."""


class NGramModel(nn.Module):
    """p(w | h) = share(h w) + backoff(h) · p(w | h without its first word).

    The tables are prepared data, not part of the state of a model; `network_weight` is: the weight
    of a network in a mixture with it, by the length of the longest known context.
    """

    keys: Tensor
    shares: Tensor
    backoffs: Tensor
    words: Tensor
    network_weight: Tensor

    def __init__(
        self,
        keys: Int[np.ndarray, "m"],
        shares: Float[np.ndarray, "m"],
        backoffs: Float[np.ndarray, "r"],
        words: Float[np.ndarray, "v"],
        longest: int,
    ) -> None:
        """Take the tables of `regard.data.kneser_ney`."""
        super().__init__()
        self.vocabulary, self.longest = len(words), longest
        if not len(keys):  # at least one row, which no context has
            keys, shares = np.full(1, -1), np.zeros(1, np.float32)
            backoffs = np.append(backoffs, np.float32(1))
        for name, array in (
            ("keys", keys),
            ("shares", shares),
            ("backoffs", backoffs),
            ("words", words),
        ):
            self.register_buffer(name, torch.from_numpy(np.array(array)), persistent=False)
        self.register_buffer("network_weight", torch.full((longest,), 0.5))

    def contexts(
        self, recent: Int[Tensor, "b n"], words: Int[Tensor, "b t"]
    ) -> Int[Tensor, "b t l"]:
        """Rows of the last 1, 2, … words at each position, -1 where training has not seen them."""
        text = torch.cat([recent, words], 1)
        rows = [text]
        for _ in range(2, self.longest):
            before = nn.functional.pad(rows[-1][:, :-1], (1, 0), value=-1)
            rows.append(self._row(before, text))
        count = words.shape[1]
        return torch.stack([row[:, row.shape[1] - count :] for row in rows], -1)

    def order(self, contexts: Int[Tensor, "b t l"]) -> Int[Tensor, "b t"]:
        """Number of words of the longest context that training has seen followed by a word."""
        followed = (contexts >= 0) & (self.backoffs[contexts.clamp(min=0)] < 1)
        lengths = torch.arange(1, contexts.shape[-1] + 1, device=contexts.device)
        longest: Tensor = (followed * lengths).amax(-1)
        return longest

    def of(
        self, contexts: Int[Tensor, "b t l"], targets: Int[Tensor, "b t"]
    ) -> Float[Tensor, "b t"]:
        """Probability of each target after its contexts."""
        probability = self.words[targets]
        for context in contexts.unbind(-1):
            row = self._row(context, targets)
            own = self.shares[(row - self.vocabulary).clamp(min=0)] * (row >= 0)
            probability = own + self._backoff(context) * probability
        return probability

    def forward(self, contexts: Int[Tensor, "b t l"]) -> Float[Tensor, "b t v"]:
        """Probabilities of all words after the contexts."""
        batch, length, _ = contexts.shape
        flat = contexts.reshape(batch * length, -1)
        table = self.words.repeat(len(flat), 1)
        places = torch.arange(len(flat), device=flat.device)
        for context in flat.unbind(-1):
            table *= self._backoff(context)[:, None]
            first = torch.searchsorted(self.keys, context * self.vocabulary)
            after = torch.searchsorted(self.keys, (context + 1) * self.vocabulary)
            size = (after - first) * (context >= 0)
            row = torch.repeat_interleave(places, size)
            within = torch.arange(len(row), device=row.device) - (size.cumsum(0) - size)[row]
            child = first[row] + within
            table.index_put_(
                (row, self.keys[child] % self.vocabulary), self.shares[child], accumulate=True
            )
        return table.view(batch, length, -1)

    def mix(
        self,
        network: Float[Tensor, "b t *v"],
        ngrams: Float[Tensor, "b t *v"],
        order: Int[Tensor, "b t"],
    ) -> Float[Tensor, "b t *v"]:
        """The mixture of probabilities by a network and by n-grams."""
        weight = self.network_weight[order].view(*order.shape, *[1] * (network.ndim - 2))
        return weight * network + (1 - weight) * ngrams

    def fit(
        self,
        network: Float[np.ndarray, "n"],
        ngrams: Float[np.ndarray, "n"],
        order: Int[np.ndarray, "n"],
    ) -> None:
        """Set the weights under which words with these probabilities are likeliest (EM)."""
        everywhere = _likeliest_weight(network, ngrams, 0.5, 0.0)
        for length in range(self.longest):
            chosen = order == length
            weight = _likeliest_weight(network[chosen], ngrams[chosen], everywhere, PRIOR)
            self.network_weight[length] = weight

    def _row(self, context: Tensor, word: Tensor) -> Tensor:
        """Row of a context with one more word; -1 where there is none."""
        key = context * self.vocabulary + word
        place = torch.searchsorted(self.keys, key).clamp(max=len(self.keys) - 1)
        known = (context >= 0) & (self.keys[place] == key)
        return torch.where(known, place + self.vocabulary, -1)

    def _backoff(self, context: Tensor) -> Tensor:
        return torch.where(context >= 0, self.backoffs[context.clamp(min=0)], 1.0)


def _likeliest_weight(one: np.ndarray, other: np.ndarray, prior: float, strength: float) -> float:
    weight = prior
    if not len(one):
        return weight
    for _ in range(ITERATIONS):
        shares = weight * one / np.maximum(weight * one + (1 - weight) * other, 1e-300)
        weight = float((shares.sum() + strength * prior) / (len(one) + strength))
    return weight
