"""Mixture of experts: attention over networks instead of words."""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention import normalizers, scores
from regard.attention.scores import Score


class Mixture(NamedTuple):
    """The output for each token, the weight of each expert, and the load-balancing loss."""

    output: Float[Tensor, "*b o"]
    weights: Float[Tensor, "*b e"]
    balance: Float[Tensor, ""]


class Routing(NamedTuple):
    """The gate's decision for each token."""

    probabilities: Float[Tensor, "n e"]
    """Softmax of the scores over all experts."""
    sent: Float[Tensor, "n e"]
    """The shares of a token that are sent to each expert; they sum to one."""
    weights: Float[Tensor, "n e"]
    """The weight of each expert in the output."""


class Experts(nn.Module):
    """Feed-forward networks, and a gate that weights them for each token.

        output = Σₑ weightsₑ · expertₑ(x),   expertₑ(x) = activation(x Wₑ + bₑ) W′ₑ + b′ₑ
        weights = softmax(score(x, keys))

    The gate is attention: the token is the query, each expert has a learned key, and the value is
    that expert's output for the token. With the dot score it is the usual linear gate; any other
    score of `regard.attention.scores`, or a callable, works as well.

    `top_k=None` mixes all experts (Jacobs et al. 1991, https://doi.org/10.1162/neco.1991.3.1.79).
    A number sends each token only to its best experts, and only those are computed. With two or
    more, weights are the softmax over the chosen (Shazeer et al. 2017,
    https://arxiv.org/abs/1701.06538); with one, that softmax would be a constant without gradient,
    and the weight is the chosen expert's share among all (Switch: Fedus, Zoph & Shazeer 2021,
    https://arxiv.org/abs/2101.03961). `noise=True` adds Shazeer's learned normal noise to the
    scores in training: ε · softplus(x W_noise).

    Tokens where `mask` is False are padding: they reach no expert, get zeros for output and
    weights, and do not count in `balance` (see `balance_loss`), which a model adds to its loss
    times a small factor (0.01 in Switch).

    >>> experts = Experts(8, 16, 4, top_k=2)
    >>> mixture = experts(torch.randn(3, 5, 8))
    >>> mixture.output.shape, (mixture.weights > 0).sum(-1).unique()
    (torch.Size([3, 5, 8]), tensor([2]))
    """

    def __init__(
        self,
        width: int,
        hidden: int,
        experts: int,
        *,
        output_size: int | None = None,
        top_k: int | None = None,
        noise: bool = False,
        score: str | Score = "dot",
        activation: Callable[[Tensor], Tensor] = F.relu,
    ) -> None:
        super().__init__()
        if min(width, hidden, experts) < 1:
            raise ValueError(
                f"width, hidden and experts must be at least 1, got {width}, {hidden}, {experts}"
            )
        if top_k is not None and not 1 <= top_k <= experts:
            raise ValueError(f"top_k must be from 1 to the {experts} experts, got {top_k}")
        output_size = width if output_size is None else output_size
        self.top_k = top_k
        self.activation = activation
        self.score = scores.make_score(score, width, width, max_keys=experts)
        self.keys = nn.Parameter(torch.randn(experts, width) * width**-0.5)
        self.noise = nn.Linear(width, experts, bias=False) if noise else None
        if self.noise is not None:
            nn.init.zeros_(self.noise.weight)
        self.inner_weight = _uniform((experts, width, hidden), width)
        self.inner_bias = _uniform((experts, hidden), width)
        self.outer_weight = _uniform((experts, hidden, output_size), hidden)
        self.outer_bias = _uniform((experts, output_size), hidden)

    def forward(
        self, tokens: Float[Tensor, "*b w"], mask: Bool[Tensor, "*b"] | None = None
    ) -> Mixture:
        """The mixture for every token; `mask` is True where a token is real."""
        self._check(tokens, mask)
        real = tokens.reshape(-1, tokens.shape[-1]) if mask is None else tokens[mask]
        routing = self.route(real)
        mix = self._mix_all if self.top_k is None else self._mix_chosen
        output, weights = mix(real, routing), routing.weights
        balance = balance_loss(routing.sent, routing.probabilities)
        return Mixture(_scatter(output, tokens, mask), _scatter(weights, tokens, mask), balance)

    def route(self, tokens: Float[Tensor, "n w"]) -> Routing:
        """Where each token goes, before any expert is computed."""
        match = self.score(tokens, self.keys)
        if match.shape != (len(tokens), len(self.keys)):
            raise ValueError(
                f"the score returned {list(match.shape)} for {len(tokens)} tokens and "
                f"{len(self.keys)} experts: expected [{len(tokens)}, {len(self.keys)}]"
            )
        if self.noise is not None and self.training:
            match = match + torch.randn_like(match) * F.softplus(self.noise(tokens))
        probabilities = normalizers.softmax(match)
        if self.top_k is None:
            return Routing(probabilities, probabilities, probabilities)
        best = match.detach().topk(self.top_k, dim=-1).indices
        chosen = torch.zeros_like(match, dtype=torch.bool).scatter(-1, best, True)
        if self.top_k == 1:
            weights = probabilities.masked_fill(~chosen, 0)
        else:
            weights = normalizers.softmax(match, chosen)
        return Routing(probabilities, chosen.to(match.dtype) / self.top_k, weights)

    def _mix_all(self, tokens: Float[Tensor, "n w"], routing: Routing) -> Float[Tensor, "n o"]:
        repeated = tokens.expand(len(self.keys), *tokens.shape)
        hidden = self.activation(
            torch.baddbmm(self.inner_bias[:, None], repeated, self.inner_weight)
        )
        outputs = torch.baddbmm(self.outer_bias[:, None], hidden, self.outer_weight)
        return torch.einsum("ne,eno->no", routing.weights, outputs)

    def _mix_chosen(self, tokens: Float[Tensor, "n w"], routing: Routing) -> Float[Tensor, "n o"]:
        """The same sum over the chosen experts only: each gets its own tokens in one batch."""
        # Pairs (expert, token) sorted by expert, so that each batch is a slice of the tokens.
        expert, token = routing.sent.t().nonzero(as_tuple=True)
        batches = tokens[token].split((routing.sent > 0).sum(0).tolist())
        # unbind, not one index per expert: the gradient of each index is as large as all weights.
        networks = zip(
            self.inner_weight.unbind(),
            self.inner_bias.unbind(),
            self.outer_weight.unbind(),
            self.outer_bias.unbind(),
            strict=True,
        )
        outputs = []
        for batch, (inner, inner_bias, outer, outer_bias) in zip(batches, networks, strict=True):
            if len(batch):
                hidden = self.activation(torch.addmm(inner_bias, batch, inner))
                outputs.append(torch.addmm(outer_bias, hidden, outer))
        if not outputs:
            return tokens.new_zeros(0, self.outer_bias.shape[1])
        weighted = torch.cat(outputs) * routing.weights[token, expert][:, None]
        return weighted.new_zeros(len(tokens), weighted.shape[1]).index_add(0, token, weighted)

    def _check(self, tokens: Tensor, mask: Tensor | None) -> None:
        width = self.keys.shape[1]
        if tokens.dim() < 1 or tokens.shape[-1] != width:
            raise ValueError(f"tokens must be [.., {width}], got shape {list(tokens.shape)}")
        if mask is not None and (mask.dtype != torch.bool or mask.shape != tokens.shape[:-1]):
            raise ValueError(
                f"mask must be a bool tensor (True = a real token) of shape "
                f"{list(tokens.shape[:-1])}, got {mask.dtype} of shape {list(mask.shape)}"
            )


def balance_loss(
    sent: Float[Tensor, "n e"], probabilities: Float[Tensor, "n e"]
) -> Float[Tensor, ""]:
    """experts · Σₑ fₑ Pₑ: 1 if all experts have the same load, `experts` if one has it all.

    fₑ is the share of tokens that are sent to expert e, which has no gradient, and Pₑ the mean
    probability that the gate gives it (Switch). In a soft mixture a token is sent everywhere by
    its probabilities, f = P, and the loss is one more than Shazeer's squared coefficient of
    variation of the experts' importance. 0 if there are no tokens.

    >>> balance_loss(torch.eye(4), torch.eye(4))
    tensor(1.)
    """
    tokens, experts = sent.shape
    return experts * (sent.sum(0) * probabilities.sum(0)).sum() / max(tokens, 1) ** 2


def _scatter(rows: Tensor, tokens: Tensor, mask: Tensor | None) -> Tensor:
    """Rows of the real tokens at their positions among all tokens, zeros at the others."""
    shape = (*tokens.shape[:-1], rows.shape[-1])
    if mask is None:
        return rows.reshape(shape)
    return rows.new_zeros(shape).index_put((mask,), rows)


def _uniform(shape: tuple[int, ...], inputs: int) -> nn.Parameter:
    """Fresh weights, initialised as in nn.Linear with that many inputs."""
    return nn.Parameter(torch.empty(shape).uniform_(-(inputs**-0.5), inputs**-0.5))
