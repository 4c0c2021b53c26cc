"""Multi-head attention: several attentions at once, each in its own projection.

head_i = attend(W_Qⁱ query, W_Kⁱ key, W_Vⁱ value), output = W_O [head_1; …; head_h].

Vaswani et al., 2017, https://arxiv.org/abs/1706.03762; key heads shared by groups of query heads:
Ainslie et al., 2023, https://arxiv.org/abs/2305.13245
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention import attend, normalizers, scores
from regard.attention.arguments import share_heads
from regard.attention.masks import Mask, as_mask
from regard.attention.normalizers import Normalizer
from regard.attention.positions import RelativeBias, Rotation, linear_bias, rotate
from regard.attention.scores import Score
from regard.errors import unknown
from regard.layers.expected_size import expect_size

POSITIONS = ("none", "rotary", "linear")


class Cache(NamedTuple):
    """Keys and values of the positions so far, projected and split into heads."""

    key: Float[Tensor, "*b h k d"]
    value: Float[Tensor, "*b h k v"]


class MultiHeadOutput(NamedTuple):
    """The joined output of the heads, the weights of each, and their keys and values."""

    output: Float[Tensor, "*b q w"]
    weights: Float[Tensor, "*b h q k"] | None
    cache: Cache


class MultiHead(nn.Module):
    """Attention with several heads, over the sequence itself or over another one.

    >>> layer = MultiHead(8, heads=2)
    >>> output, weights, cache = layer(torch.randn(3, 5, 8))
    >>> output.shape, weights.shape
    (torch.Size([3, 5, 8]), torch.Size([3, 2, 5, 5]))

    When decoding step by step, the cache holds what was computed before:

    >>> output, weights, cache = layer(torch.randn(3, 1, 8), cache=cache)
    >>> weights.shape
    torch.Size([3, 2, 1, 6])
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        key_width: int | None = None,
        value_width: int | None = None,
        head_size: int | None = None,
        key_heads: int | None = None,
        score: str | Score = "scaled_dot",
        normalize: str | Normalizer = "softmax",
        positions: str = "none",
        rotation: Rotation | None = None,
        dropout: float = 0.0,
        bias: bool = True,
        max_keys: int = 512,
    ) -> None:
        """Make the projections.

        Args:
            width: size of the queries and of the output.
            heads: number of heads.
            key_width: size of the keys given to it (default: `width`).
            value_width: size of the values given to it (default: `key_width`).
            head_size: size of a head's query, key and value (default: width / heads).
            key_heads: how many heads keys and values have; a divisor of `heads`.
            score: any score, by name or as a callable on heads ``[*b, h, q, d]``; all heads
                share its weights.
            normalize: any normalizer.
            positions: "rotary" turns queries and keys, "linear" biases the scores by distance;
                the last query stands at the last key.
            rotation: frequencies of "rotary" (default: those of a base of 10,000).
            dropout: share of the weights dropped in training.
            bias: whether the projections have one.
            max_keys: the longest sequence for the score "location".
        """
        super().__init__()
        key_width = width if key_width is None else key_width
        value_width = key_width if value_width is None else value_width
        key_heads = heads if key_heads is None else key_heads
        if min(heads, key_heads) < 1:
            raise ValueError(
                f"heads must be at least 1; got heads {heads} and key_heads {key_heads}"
            )
        if head_size is None and width % heads:
            raise ValueError(
                f"{heads} heads do not divide a width of {width}: choose others, or give head_size"
            )
        if heads % key_heads:
            raise ValueError(f"{heads} query heads cannot share {key_heads} key heads evenly")
        if positions not in POSITIONS:
            raise ValueError(unknown("positions", positions, POSITIONS))
        size = width // heads if head_size is None else head_size
        if positions == "rotary" and size % 2:
            raise ValueError(
                f"rotary turns pairs of features, but a head has {size} of them ({heads} heads in "
                f"a width of {width}): give an even head_size"
            )
        self.heads, self.key_heads, self.positions = heads, key_heads, positions
        self.rotation = rotation or Rotation()
        # a module that several layers share, in a list, so that it has one name in the state dict
        self.relative: list[RelativeBias] = []
        self.normalize, self.dropout = normalizers.normalizer_by_name(normalize), dropout
        self.query = nn.Linear(width, heads * size, bias)
        self.key = nn.Linear(key_width, key_heads * size, bias)
        self.value = nn.Linear(value_width, key_heads * size, bias)
        self.output = nn.Linear(heads * size, width, bias)
        self.score = scores.make_score(score, size, size, max_keys=max_keys)

    def forward(
        self,
        query: Float[Tensor, "*b q w"],
        key: Float[Tensor, "*b k e"] | None = None,
        value: Float[Tensor, "*b k v"] | None = None,
        mask: Mask | Tensor | None = None,
        *,
        cache: Cache | None = None,
        need_weights: bool = True,
    ) -> MultiHeadOutput:
        """Attend to `key` and read `value`; without them, to the query's own sequence.

        Args:
            query: one vector per query.
            key: one vector per position (default: the query).
            value: one vector per position (default: the key).
            mask: True = may attend; a lazy mask, or a bool tensor that broadcasts with [*b, q, k],
                or with [*b, h, q, k] if it has that many axes.
            cache: keys and values of earlier positions; new ones are appended to them.
            need_weights: whether weights are returned; the output is the same without.
        """
        key = query if key is None else key
        value = key if value is None else value
        return self.read(query, self.remember(key, value, cache), mask, need_weights=need_weights)

    def remember(
        self,
        key: Float[Tensor, "*b k e"],
        value: Float[Tensor, "*b k v"] | None = None,
        cache: Cache | None = None,
    ) -> Cache:
        """Keys and values projected, appended to those of an earlier cache."""
        seen = 0 if cache is None else cache.key.shape[-2]
        new_key = _heads("key", key, self.key, self.key_heads)
        new_value = _heads("value", key if value is None else value, self.value, self.key_heads)
        if self.positions == "rotary":
            new_key = rotate(new_key, offset=seen, rotation=self.rotation)
        if cache is None:
            return Cache(new_key, new_value)
        return Cache(torch.cat([cache.key, new_key], -2), torch.cat([cache.value, new_value], -2))

    def read(
        self,
        query: Float[Tensor, "*b q w"],
        cache: Cache,
        mask: Mask | Tensor | None = None,
        *,
        need_weights: bool = True,
    ) -> MultiHeadOutput:
        """Attend to the keys and values of a cache; positions are aligned to its end."""
        queries, keys = query.shape[-2], cache.key.shape[-2]
        heads = _heads("query", query, self.query, self.heads)
        if self.positions == "rotary":
            heads = rotate(heads, offset=keys - queries, rotation=self.rotation)
        bias = None
        if self.positions == "linear":
            bias = linear_bias(self.heads, queries, keys, dtype=heads.dtype, device=heads.device)
        for relative in self.relative:
            bias = relative(queries, keys)
        # attend finds shared heads behind a batch only; a single sequence has none.
        group = self.heads // self.key_heads if query.ndim == 2 else 1
        attended = attend(
            heads,
            share_heads(cache.key, group),
            share_heads(cache.value, group),
            None if mask is None else as_mask(mask).over_heads(query.ndim + 1),
            score=self.score,
            normalize=self.normalize,
            bias=bias,
            dropout=self.dropout if self.training else 0.0,
            need_weights=need_weights,
        )
        joined = attended.output.transpose(-2, -3).flatten(-2)
        return MultiHeadOutput(self.output(joined), attended.weights, cache)


def _heads(
    what: str, vectors: Float[Tensor, "*b n w"], projection: nn.Linear, heads: int
) -> Float[Tensor, "*b h n d"]:
    """The vectors projected and split into heads."""
    expect_size(what, vectors, projection.in_features)
    split: Tensor = projection(vectors).unflatten(-1, (heads, -1))
    return split.transpose(-2, -3)
