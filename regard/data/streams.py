"""Running text as parallel streams, for back-propagation through time with the state carried over.

The text is laid out in b rows that continue from chunk to chunk; the state at the end of a chunk is
the first state of the next (Mikolov et al. 2010).
"""

from collections.abc import Iterator
from math import ceil
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor


@runtime_checkable
class Tokens(Protocol):
    """One long sequence of token numbers: an array, or a corpus's `stream`."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: slice, /) -> np.ndarray: ...


class Chunk(NamedTuple):
    """Tokens and, for each, the one that follows: 0 (`<pad>`) where a row has ended."""

    tokens: Int64[Tensor, "b t"]
    targets: Int64[Tensor, "b t"]


def streams(ids: Tokens, batch: int, steps: int) -> Iterator[Chunk]:
    """Chunks of at most `steps` tokens in `batch` rows, in which every token but the first is a
    target exactly once.

    Rows differ by one token at most; where the text is shorter there are fewer rows.

    >>> [chunk.targets.tolist() for chunk in streams(np.arange(10, 16), 2, 2)]
    [[[11, 12], [14, 15]], [[13], [0]]]
    """
    for number in range(chunks(ids, batch, steps)):
        yield chunk(ids, batch, steps, number)


def chunk(ids: Tokens, batch: int, steps: int, number: int) -> Chunk:
    """One of the chunks that `streams` yields, by its number."""
    total = len(ids) - 1
    rows = min(batch, total)
    starts = [total // rows * i + min(i, total % rows) for i in range(rows + 1)]
    begin = number * steps
    width = min(steps, starts[1] - begin)
    laid = np.zeros((2, rows, width), dtype=np.int64)
    for row in range(rows):
        first = starts[row] + begin
        end = min(first + width, starts[row + 1])
        piece = ids[first : end + 1]
        laid[0, row, : end - first] = piece[:-1]
        laid[1, row, : end - first] = piece[1:]
    return Chunk(torch.from_numpy(laid[0]), torch.from_numpy(laid[1]))


def chunks(ids: Tokens, batch: int, steps: int) -> int:
    """How many chunks `streams` yields."""
    if batch < 1 or steps < 1:
        raise ValueError(f"{batch} rows of {steps} steps: both must be at least 1")
    total = len(ids) - 1
    rows = min(batch, total)
    return ceil(ceil(total / rows) / steps) if rows > 0 else 0
