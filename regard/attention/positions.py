"""Positions: attention alone does not see order; each of these tells it, in its own place.

`sinusoids` and `Learned` are added to the vectors, `rotate` turns queries and keys, and
`linear_bias` is a bias on the scores.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.devices import widest_float


def sinusoids(
    length: int,
    width: int,
    *,
    offset: int = 0,
    interleaved: bool = True,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
) -> Float[Tensor, "t w"]:
    """Sines and cosines of the position: sin(p/10000^(2i/w)) and cos of the same, interleaved.

    Vaswani et al., 2017, https://arxiv.org/abs/1706.03762. Without `interleaved` all sines stand
    before all cosines.

    >>> sinusoids(2, 4)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0100, 0.9999]])
    """
    if width % 2:
        raise ValueError(f"sinusoids come in pairs: the width must be even; got {width}")
    angle = _angles(length, Rotation().frequencies(width, device), offset)
    if interleaved:
        pairs = torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)
    else:
        pairs = torch.cat([angle.sin(), angle.cos()], -1)
    return pairs.to(dtype or torch.get_default_dtype())


class Learned(nn.Module):
    """A learned vector a position, up to a largest length."""

    def __init__(self, max_length: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(max_length, width))
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, length: int, offset: int = 0) -> Float[Tensor, "t w"]:
        """The vectors of positions offset … offset + length - 1."""
        if offset + length > self.weight.shape[0]:
            raise ValueError(
                f"positions are learned up to {self.weight.shape[0]}; requested {offset + length}: "
                f"truncate the text, or train with a larger max_length"
            )
        return self.weight[offset : offset + length]


@dataclass(frozen=True)
class Rotation:
    """How fast rotary positions turn each pair of features: base^(-2i/d) per position.

    With a `factor`, pairs turn more slowly by it, so that a model reads longer texts than those
    that it was first trained on (Chen et al., 2023, https://arxiv.org/abs/2306.15595). With
    `first_length`, the pairs that turn more than `fast` times within it keep their frequency,
    those that turn less than `slow` times are divided by the factor, and the others lie between
    (Dubey et al., 2024, https://arxiv.org/abs/2407.21783).
    """

    base: float = 10000.0
    factor: float = 1.0
    first_length: int = 0
    slow: float = 1.0
    fast: float = 4.0

    def frequencies(self, size: int, device: torch.device | None) -> Float[Tensor, "half"]:
        """Radians per position of each pair of features."""
        dtype = torch.float64 if device is None else widest_float(device)
        frequency = self.base ** (-torch.arange(0, size, 2, dtype=dtype, device=device) / size)
        if not self.first_length:
            return frequency / self.factor
        turns = self.first_length * frequency / (2 * math.pi)
        kept = ((turns - self.slow) / (self.fast - self.slow)).clamp(0, 1)
        return kept * frequency + (1 - kept) * frequency / self.factor


def rotate(
    vectors: Float[Tensor, "*b t d"], *, offset: int = 0, rotation: Rotation = Rotation()
) -> Float[Tensor, "*b t d"]:
    """Rotary positions: turn each pair of features by an angle that grows with the position.

    The dot product of a rotated query and a rotated key depends on their distance alone.

    Su et al., 2021, https://arxiv.org/abs/2104.09864
    """
    size = vectors.shape[-1]
    if size % 2:
        raise ValueError(f"rotary turns pairs of features: the size must be even; got {size}")
    frequencies = rotation.frequencies(size, vectors.device)
    angle = _angles(vectors.shape[-2], frequencies, offset)
    cos, sin = angle.cos().to(vectors.dtype), angle.sin().to(vectors.dtype)
    even, odd = vectors[..., 0::2], vectors[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


def linear_bias(
    heads: int,
    queries: int,
    keys: int,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
) -> Float[Tensor, "h q k"]:
    """ALiBi: -slope · |distance|, a slope a head; positions are aligned to the end.

    Press, Smith and Lewis, 2022, https://arxiv.org/abs/2108.12409

    >>> linear_bias(2, 2, 2)
    tensor([[[-0.0000, -0.0625],
             [-0.0625, -0.0000]],
            [[-0.0000, -0.0039],
             [-0.0039, -0.0000]]])
    """
    slope = torch.tensor(slopes(heads), device=device)
    query = torch.arange(keys - queries, keys, device=device)
    distance = (query[:, None] - torch.arange(keys, device=device)).abs()
    return (-slope[:, None, None] * distance).to(dtype or torch.get_default_dtype())


class RelativeBias(nn.Module):
    """A learned bias on the scores for each head and each range of distances.

    Distances up to half of the ranges have one each; beyond, ranges grow in proportion to the
    distance up to `longest`, and what is farther shares the last one. With `both_ways`, half of
    the ranges are for keys after the query.

    Raffel et al., 2020, https://arxiv.org/abs/1910.10683
    """

    def __init__(self, heads: int, ranges: int, longest: int, *, both_ways: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(ranges, heads))
        nn.init.normal_(self.weight, std=0.02)
        self.longest, self.both_ways = longest, both_ways

    def forward(self, queries: int, keys: int) -> Float[Tensor, "h q k"]:
        """The bias of the last queries of a sequence on all its keys."""
        device = self.weight.device
        query = torch.arange(keys - queries, keys, device=device)
        ahead = torch.arange(keys, device=device) - query[:, None]
        return self.weight[self.range_numbers(ahead)].permute(2, 0, 1)

    def range_numbers(self, ahead: Int[Tensor, "*n"]) -> Int[Tensor, "*n"]:
        """The range of each distance from a query; those of keys after it are positive."""
        ranges = self.weight.shape[0] // 2 if self.both_ways else self.weight.shape[0]
        distance = ahead.abs() if self.both_ways else (-ahead).clamp(min=0)
        exact = ranges // 2
        grown = (distance.clamp(min=1).float() / exact).log() / math.log(self.longest / exact)
        wide = (exact + (grown * (ranges - exact)).long()).clamp(max=ranges - 1)
        number = torch.where(distance < exact, distance, wide)
        if self.both_ways:
            number = number + ranges * (ahead > 0)
        return number


def slopes(heads: int) -> list[float]:
    """A geometric series from 2^(-8/h); other head counts than powers of two fill in between."""
    power = 2 ** math.floor(math.log2(heads))
    first = [2.0 ** (-8.0 * (i + 1) / power) for i in range(power)]
    between = [2.0 ** (-4.0 * (2 * i + 1) / power) for i in range(heads - power)]
    return first + between


def _angles(
    length: int, frequencies: Float[Tensor, "half"], offset: int
) -> Float[Tensor, "t half"]:
    position = torch.arange(
        offset, offset + length, dtype=frequencies.dtype, device=frequencies.device
    )
    return position[:, None] * frequencies
