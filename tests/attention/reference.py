"""Attention from its equations in float64, a row at a time, over the keys a query may attend to.

There is no mask here: what may not be looked at is left out before anything is computed.
"""

import torch
from torch import Tensor


def dot(query, key):
    return torch.einsum("...qd,...kd->...qk", query, key)


def scaled_dot(query, key):
    return dot(query, key) / query.shape[-1] ** 0.5


def cosine(query, key):
    lengths = (query**2).sum(-1).sqrt()[..., :, None] * (key**2).sum(-1).sqrt()[..., None, :]
    return dot(query, key) / lengths


def bilinear(module, query, key):
    return torch.einsum("...qd,de,...ke->...qk", query, module.weight, key)


def mlp(module, query, key):
    hidden = torch.tanh(
        torch.einsum("ae,...ke->...ka", module.hidden.weight, key) + module.hidden.bias
    )
    return torch.einsum("...qa,...ka->...qk", query, hidden)


def additive(module, query, key):
    """w₂ᵀ tanh(W₁ [q; k] + b), with the pair really joined."""
    first = torch.cat([module.query.weight, module.key.weight], -1)
    batch = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2])
    shape = (*batch, query.shape[-2], key.shape[-2])
    pairs = torch.cat(
        [
            query[..., :, None, :].expand(*shape, -1),
            key[..., None, :, :].expand(*shape, -1),
        ],
        -1,
    )
    return torch.tanh(pairs @ first.T + module.query.bias) @ module.weight


def location(module, query, key):
    return (query @ module.where.weight.T)[..., : key.shape[-2]]


def softmax(s):
    return s.exp() / s.exp().sum(-1, keepdim=True)


def sparsemax(s):
    """The support is the largest for which the projection is positive on all of it."""
    rows = []
    for row in s:
        order = row.detach().sort(descending=True).values
        size = max(n for n in range(1, len(row) + 1) if order[n - 1] > (order[:n].sum() - 1) / n)
        support = row.detach() >= order[size - 1]
        rows.append(torch.where(support, row - (row[support].sum() - 1) / size, 0.0))
    return torch.stack(rows)


def entmax15(s):
    """Bisection for τ in Σ max(0, s/2 - τ)² = 1, then one Newton step to carry the gradient."""
    z = s / 2
    low = z.detach().amax(-1, keepdim=True) - 1
    for halvings in range(1, 55):
        middle = low + 0.5**halvings
        above = ((z.detach() - middle).clamp(min=0) ** 2).sum(-1, keepdim=True) > 1
        low = torch.where(above, middle, low)
    gap = (z - low).clamp(min=0)
    tau = low + ((gap**2).sum(-1, keepdim=True) - 1) / (2 * gap.detach().sum(-1, keepdim=True))
    return (z - tau).clamp(min=0) ** 2


def sigmoid(s):
    return 1 / (1 + (-s).exp())


def top_2(s):
    order = s.detach().sort(descending=True).values
    chosen = s >= order[:, min(2, s.shape[-1]) - 1, None]
    return torch.where(chosen, s.exp(), 0.0) / torch.where(chosen, s.exp(), 0.0).sum(-1, True)


def total(s):
    return s / s.sum(-1, keepdim=True)


def none(s):
    return s


NORMALIZERS = {
    "softmax": softmax,
    "sparsemax": sparsemax,
    "entmax15": entmax15,
    "sigmoid": sigmoid,
    "top_k(2)": top_2,
    "sum": total,
    "none": none,
}


def attend(scores: Tensor, value: Tensor, allowed, normalize) -> tuple[Tensor, Tensor]:
    """Output and weights from scores [b, h, q, k] and value [b, h, k, v].

    `allowed(b, q, k)` says whether a query may attend; `normalize` sees those scores alone, [h, n].
    """
    batch, heads, queries, keys = scores.shape
    rows = []
    for b in range(batch):
        for q in range(queries):
            open_ = torch.tensor([k for k in range(keys) if allowed(b, q, k)], dtype=torch.long)
            row = scores.new_zeros(heads, keys)
            if len(open_):
                row = row.index_copy(-1, open_, normalize(scores[b, :, q].index_select(-1, open_)))
            rows.append(row)
    weights = torch.stack(rows).view(batch, queries, heads, keys).transpose(1, 2)
    return weights @ value, weights
