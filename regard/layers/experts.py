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
    """What the experts made of each token, how much each was heard, and how uneven the load was."""

    output: Float[Tensor, "*b o"]
    weights: Float[Tensor, "*b e"]
    balance: Float[Tensor, ""]


class Routing(NamedTuple):
    """The gate's decision for each token: what it thinks of the experts, and whom it chooses."""

    probabilities: Float[Tensor, "n e"]
    """Softmax of the scores over all experts."""
    sent: Float[Tensor, "n e"]
    """The parts in which a token is sent to experts; they sum to one."""
    weights: Float[Tensor, "n e"]
    """How much each expert is heard."""


class Experts(nn.Module):
    """Feed-forward networks, and a gate that says for each token whom to listen to.

        output = Σₑ weightsₑ · expertₑ(x),   expertₑ(x) = activation(x Wₑ + bₑ) W′ₑ + b′ₑ
        weights = softmax(score(x, keys))

    The gate is attention: the token is the query, each expert has a learned key, and the value is
    what that expert makes of the token. With the dot score it is the usual linear gate; any other
    score of `regard.attention.scores`, or a callable, serves as well.

    `top_k=None` mixes all experts (Jacobs et al. 1991, https://doi.org/10.1162/neco.1991.3.1.79).
    A number sends each token to its best experts alone, and only those are computed. With two or
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
        self.score = scores.make(score, width, width, max_keys=experts)
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
        return Mixture(_put_back(output, tokens, mask), _put_back(weights, tokens, mask), balance)

    def route(self, tokens: Float[Tensor, "n w"]) -> Routing:
        """Where each token goes, before any expert is computed."""
        fit = self.score(tokens, self.keys)
        if fit.shape != (len(tokens), len(self.keys)):
            raise ValueError(
                f"the score returned {list(fit.shape)} for {len(tokens)} tokens and "
                f"{len(self.keys)} experts: expected [{len(tokens)}, {len(self.keys)}]"
            )
        if self.noise is not None and self.training:
            fit = fit + torch.randn_like(fit) * F.softplus(self.noise(tokens))
        probabilities = normalizers.softmax(fit)
        if self.top_k is None:
            return Routing(probabilities, probabilities, probabilities)
        best = fit.detach().topk(self.top_k, dim=-1).indices
        chosen = torch.zeros_like(fit, dtype=torch.bool).scatter(-1, best, True)
        if self.top_k == 1:
            weights = probabilities.masked_fill(~chosen, 0)
        else:
            weights = normalizers.softmax(fit, chosen)
        return Routing(probabilities, chosen.to(fit.dtype) / self.top_k, weights)

    def _mix_all(self, tokens: Float[Tensor, "n w"], routing: Routing) -> Float[Tensor, "n o"]:
        everyone = tokens.expand(len(self.keys), *tokens.shape)
        hidden = self.activation(
            torch.baddbmm(self.inner_bias[:, None], everyone, self.inner_weight)
        )
        made = torch.baddbmm(self.outer_bias[:, None], hidden, self.outer_weight)
        return torch.einsum("ne,eno->no", routing.weights, made)

    def _mix_chosen(self, tokens: Float[Tensor, "n w"], routing: Routing) -> Float[Tensor, "n o"]:
        """The same sum over the chosen experts alone: each gets its own tokens in one batch."""
        expert, token = routing.sent.t().nonzero(as_tuple=True)
        batches = tokens[token].split((routing.sent > 0).sum(0).tolist())
        # unbind rather than an index an expert: the gradient of each index is as large as them all.
        networks = zip(
            self.inner_weight.unbind(),
            self.inner_bias.unbind(),
            self.outer_weight.unbind(),
            self.outer_bias.unbind(),
            strict=True,
        )
        made = []
        for batch, (inner, inner_bias, outer, outer_bias) in zip(batches, networks, strict=True):
            if len(batch):
                hidden = self.activation(torch.addmm(inner_bias, batch, inner))
                made.append(torch.addmm(outer_bias, hidden, outer))
        if not made:
            return tokens.new_zeros(0, self.outer_bias.shape[1])
        heard = torch.cat(made) * routing.weights[token, expert][:, None]
        return heard.new_zeros(len(tokens), heard.shape[1]).index_add(0, token, heard)

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


def _put_back(rows: Tensor, tokens: Tensor, mask: Tensor | None) -> Tensor:
    """Rows of the real tokens at their places among all tokens, zeros between them."""
    shape = (*tokens.shape[:-1], rows.shape[-1])
    if mask is None:
        return rows.reshape(shape)
    return rows.new_zeros(shape).index_put((mask,), rows)


def _uniform(shape: tuple[int, ...], inputs: int) -> nn.Parameter:
    """Fresh weights as nn.Linear draws them for as many inputs."""
    return nn.Parameter(torch.empty(shape).uniform_(-(inputs**-0.5), inputs**-0.5))
