"""The addressing equations of the NTM and the DNC: where to read and write in a memory.

Pure functions of tensors. A memory has k slots of width w, which are the keys of attention; h heads
attend to them. The weights of a head over the slots are not negative, and sum to one (NTM) or to at
most one (DNC).

NTM: Graves, Wayne & Danihelka 2014, https://arxiv.org/abs/1410.5401.
DNC: Graves et al. 2016, https://doi.org/10.1038/nature20101 (equations in its Methods).
"""

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention import scores
from regard.attention.scores import Score

SMALL_LENGTH = 1e-3
"""Vectors shorter than this count as empty in `similarity`."""


def similarity(
    query: Float[Tensor, "*b q w"], key: Float[Tensor, "*b k w"]
) -> Float[Tensor, "*b q k"]:
    """q·k / (‖q‖ ‖k‖) with ‖x‖ = √(|x|² + 10⁻⁶): the cosine, which fades where a slot is empty.

    Many slots of a memory are nearly empty, and the direction of what they hold is rounding
    error. The plain cosine takes it at face value, and its gradient, 1/|k|, drowns all others in
    noise.
    """
    # dividing the products is faster than dividing the whole memory
    return query @ key.mT / (_length(query) * _length(key).mT)


def content_weights(
    key: Float[Tensor, "b h w"],
    memory: Float[Tensor, "b k w"],
    strength: Float[Tensor, "b h"],
    score: str | Score = similarity,
) -> Float[Tensor, "b h k"]:
    """Slots that resemble the key: softmaxₖ(β · score(key, memory[k])).

    This is attention with the head's key as the query and the slots as keys and values. Both
    papers take the cosine for score.
    """
    return (strength[..., None] * scores.score_by_name(score)(key, memory)).softmax(-1)


def interpolate(
    content: Float[Tensor, "b h k"], previous: Float[Tensor, "b h k"], gate: Float[Tensor, "b h"]
) -> Float[Tensor, "b h k"]:
    """g · content + (1 − g) · previous: address by content, or stay at the previous place (NTM)."""
    return torch.lerp(previous, content, gate[..., None])


def shift(
    weights: Float[Tensor, "b h k"], distances: Float[Tensor, "b h s"]
) -> Float[Tensor, "b h k"]:
    """Circular convolution, w̃[i] = Σⱼ w[j] s[(i − j) mod k]: move along the slots (NTM).

    `distances` is a distribution over the s = 2r + 1 moves from −r to +r.
    """
    reach = distances.shape[-1] // 2
    shares = distances.split(1, -1)
    moved: Tensor = weights * shares[reach]
    for move in (*range(-reach, 0), *range(1, reach + 1)):
        moved = torch.addcmul(moved, weights.roll(move, -1), shares[move + reach])
    return moved


def sharpen(
    weights: Float[Tensor, "b h k"], sharpness: Float[Tensor, "b h"]
) -> Float[Tensor, "b h k"]:
    """w[i]^γ / Σⱼ w[j]^γ with γ ≥ 1: undo the blur of a soft shift (NTM).

    Weights are divided by their maximum first, which cancels out, so that the largest power is 1
    and the sum at least that, however large γ is. Zeros stay zeros.
    """
    largest = weights.detach().amax(-1, keepdim=True)
    relative = weights / largest.clamp(min=torch.finfo(weights.dtype).tiny)
    powers = relative ** sharpness[..., None]
    return powers / powers.sum(-1, keepdim=True).clamp(min=1)


def erase_and_add(
    memory: Float[Tensor, "b k w"],
    weights: Float[Tensor, "b h k"],
    erase: Float[Tensor, "b h w"],
    add: Float[Tensor, "b h w"],
) -> Float[Tensor, "b k w"]:
    """M[k] · Πₕ (1 − wₕ[k] eₕ) + Σₕ wₕ[k] aₕ: all heads erase, then all heads add."""
    for head in range(weights.shape[1]):
        # one head after the other is much faster than a product over an axis of heads
        erased = weights[:, head, :, None] * erase[:, head, None]
        memory = torch.addcmul(memory, memory, erased, value=-1)
    return torch.baddbmm(memory, weights.mT, add)


def retention(free: Float[Tensor, "b h"], read: Float[Tensor, "b h k"]) -> Float[Tensor, "b k"]:
    """ψ[k] = Πₕ (1 − fₕ readₕ[k]): what was not freed after the last reading (DNC)."""
    return (1 - free[..., None] * read).prod(1)


def update_usage(
    usage: Float[Tensor, "b k"], write: Float[Tensor, "b k"], retained: Float[Tensor, "b k"]
) -> Float[Tensor, "b k"]:
    """u′ = (u + w − u · w) · ψ: used if it was used or written to, and was not freed (DNC).

    It lies between 0 and 1; the clamp removes what rounding may leave beyond, since allocation
    would turn it into negative weights.
    """
    return ((usage + write * (1 - usage)) * retained).clamp(0, 1)


def allocation(usage: Float[Tensor, "b k"]) -> Float[Tensor, "b k"]:
    """The least used slots: a[φⱼ] = (1 − u[φⱼ]) Π_{i<j} u[φᵢ], φ in ascending usage (DNC).

    All weight on a free slot if there is one (the first of several), little anywhere if all are in
    use. As in the paper, the gradient ignores that the order may change.
    """
    # In ascending order the slot at rank j gets (1 - its usage) times the product of all smaller
    # usages, an exclusive cumulative product: shifted by one, with 1 at rank 0. `scatter` then
    # puts the weights of the ranks back to the slots that have them.
    ascending, order = usage.sort(dim=-1, stable=True)
    used_before = torch.cat([torch.ones_like(ascending[:, :1]), ascending[:, :-1]], -1).cumprod(-1)
    return torch.zeros_like(usage).scatter(-1, order, (1 - ascending) * used_before)


def update_precedence(
    precedence: Float[Tensor, "b k"], write: Float[Tensor, "b k"]
) -> Float[Tensor, "b k"]:
    """p′ = (1 − Σₖ w[k]) p + w: how much each slot was the last one written to (DNC)."""
    return (1 - write.sum(-1, keepdim=True)).clamp(min=0) * precedence + write


def update_links(
    links: Float[Tensor, "b k k"], precedence: Float[Tensor, "b k"], write: Float[Tensor, "b k"]
) -> Float[Tensor, "b k k"]:
    """L′[i, j] = (1 − w[i] − w[j]) L[i, j] + w[i] p[j], L[i, i] = 0 (DNC).

    How much slot i was written right after slot j; `precedence` is that of before this write.
    """
    # Writing to slot i or j overrides the old link between them by as much as was written; a new
    # link leads from the slot written before (precedence, axis j) to the one written now (axis i).
    into, out_of = write[:, :, None], write[:, None, :]
    updated = (1 - into - out_of).clamp(min=0) * links + into * precedence[:, None, :]
    return updated - torch.diag_embed(updated.diagonal(dim1=1, dim2=2))


def follow_links(
    links: Float[Tensor, "b k k"], read: Float[Tensor, "b h k"]
) -> tuple[Float[Tensor, "b h k"], Float[Tensor, "b h k"]]:
    """(L · read, Lᵀ · read): what was written after, and before, the slots read last (DNC)."""
    return read @ links.mT, read @ links


def _length(vectors: Float[Tensor, "*b w"]) -> Float[Tensor, "*b 1"]:
    return (vectors.square().sum(-1, keepdim=True) + SMALL_LENGTH**2).sqrt()
