"""Attention from recurrent states to a memory of other states, with any score.

e_{t,i} = score(s_t, hᵢ), a_t = normalize(e_t), c_t = Σᵢ a_{t,i} hᵢ.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention import (
    Attended,
    LocalPrediction,
    attend,
    local_bias,
    local_mask,
    masks,
    normalizers,
    scores,
)
from regard.attention.masks import Mask
from regard.attention.normalizers import Normalizer
from regard.attention.scores import Score
from regard.errors import unknown
from regard.layers.expected_size import expect_size

LOCAL_FORMS = ("none", "m", "p")


class PreparedMemory(NamedTuple):
    """A memory with its keys projected once for all steps."""

    score: Score
    """The score of a query and projected keys."""
    key: Float[Tensor, "b k a"]
    value: Float[Tensor, "b k m"]
    length: Int[Tensor, "b"] | None
    """How many of the states are real; None: all."""


class MemoryAttention(nn.Module):
    """Attention from a state to a memory; Luong's local forms attend near one position only.

    The memory is prepared once, then attended to at every step:

    >>> attention = MemoryAttention(4, 6, score="bilinear")
    >>> memory = attention.prepare(torch.randn(2, 5, 6), torch.tensor([5, 3]))
    >>> attention(torch.randn(2, 1, 4), memory).weights[1, 0, 3:]
    tensor([0., 0.], grad_fn=<SliceBackward0>)
    """

    def __init__(
        self,
        query_size: int,
        memory_size: int,
        *,
        score: str | Score = "additive",
        hidden: int | None = None,
        normalize: str | Normalizer = "softmax",
        local: str = "none",
        width: int = 5,
        max_keys: int = 512,
    ) -> None:
        """Make the score.

        Args:
            query_size: size of the states that attend, the queries.
            memory_size: size of the states of the memory, keys and values.
            score: any score, by name or as a callable.
            hidden: hidden size of an additive score (default: `memory_size`).
            normalize: any normalizer.
            local: "m" attends near the same position, "p" near a predicted one (Luong et al.,
                2015).
            width: how far local attention reaches on each side; where no key is within reach, the
                output is zero.
            max_keys: the longest memory for the score "location".
        """
        super().__init__()
        if local not in LOCAL_FORMS:
            raise ValueError(unknown("local attention", local, LOCAL_FORMS))
        self.query_size, self.memory_size = query_size, memory_size
        self.score = scores.make_score(
            score, query_size, memory_size, hidden=hidden, max_keys=max_keys
        )
        self.normalize = normalizers.normalizer_by_name(normalize)
        self.local, self.width = local, float(width)
        self.predict = LocalPrediction(query_size) if local == "p" else None

    def prepared_score(self) -> Score:
        """The score of a query and the keys that `prepare` has projected."""
        return scores.prepared_score(self.score)

    def prepare(
        self, memory: Float[Tensor, "b k m"], lengths: Int[Tensor, "b"] | None = None
    ) -> PreparedMemory:
        """What every step needs of the memory; states beyond the `lengths` are masked."""
        expect_size("the memory", memory, self.memory_size)
        batch, keys, _ = memory.shape
        if lengths is not None and lengths.shape != (batch,):
            raise ValueError(
                f"lengths of shape {list(lengths.shape)} for a memory of shape "
                f"{list(memory.shape)}: expected one number per example, [{batch}]"
            )
        if lengths is not None and bool((lengths == keys).all()):
            lengths = None  # there is nothing to mask, at any step
        score, key = scores.prepare_keys(self.score, memory)
        return PreparedMemory(score, key, memory, lengths)

    def forward(
        self,
        query: Float[Tensor, "b q d"],
        memory: PreparedMemory,
        mask: Mask | Tensor | None = None,
        *,
        position: int = 0,
        need_weights: bool = True,
    ) -> Attended:
        """Attend to the memory.

        Args:
            query: the states that attend.
            memory: the result of `prepare`.
            mask: True = may attend, in addition to the memory's lengths: a lazy mask, or bool
                [b, k], or [b, q, k] where queries differ.
            position: that of the first query, for local attention.
            need_weights: whether weights are returned; the output is the same without.
        """
        expect_size("the query", query, self.query_size)
        if isinstance(mask, Tensor) and mask.ndim == 2:
            mask = mask.unsqueeze(1)
        if memory.length is not None:
            mask = _both(masks.lengths(memory.length), mask)
        bias = None
        if self.local != "none":
            keys = memory.key.shape[-2]
            centre = self._centre(query, memory, position)
            mask = _both(masks.as_mask(local_mask(centre, keys, self.width)), mask)
            if self.local == "p":
                bias = local_bias(centre, keys, self.width)
        return attend(
            query,
            memory.key,
            memory.value,
            mask,
            score=memory.score,
            normalize=self.normalize,
            bias=bias,
            need_weights=need_weights,
        )

    def _centre(
        self, query: Tensor, memory: PreparedMemory, position: int
    ) -> Float[Tensor, "*b q"]:
        if self.predict is None:
            return torch.arange(position, position + query.shape[-2], device=query.device).float()
        length = memory.key.shape[-2] if memory.length is None else memory.length
        centre: Tensor = self.predict(query, length)
        return centre


def _both(first: Mask, second: Mask | Tensor | None) -> Mask:
    return first if second is None else first & second
