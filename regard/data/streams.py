"""Running text as parallel streams, for truncated back-propagation through time with carried state.

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
    """One long sequence of token ids: an array, or the `stream` of a corpus."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: slice, /) -> np.ndarray: ...


class Chunk(NamedTuple):
    """Tokens and the token that follows each: 0 (`<pad>`) after the end of a row."""

    tokens: Int64[Tensor, "b t"]
    targets: Int64[Tensor, "b t"]


def stream_chunks(ids: Tokens, batch: int, steps: int) -> Iterator[Chunk]:
    """Chunks of at most `steps` tokens in `batch` rows: every token but the first is a target once.

    Rows differ in length by at most one token; a text of fewer tokens than `batch` has fewer rows.

    >>> [chunk.targets.tolist() for chunk in stream_chunks(np.arange(10, 16), 2, 2)]
    [[[11, 12], [14, 15]], [[13], [0]]]
    """
    for number in range(count_chunks(ids, batch, steps)):
        yield chunk_at(ids, batch, steps, number)


def chunk_at(ids: Tokens, batch: int, steps: int, number: int) -> Chunk:
    """One of the chunks that `stream_chunks` yields, by its number."""
    total = len(ids) - 1
    rows = min(batch, total)
    # Row i reads tokens starts[i] to starts[i + 1]; the first total % rows rows have one more.
    starts = [total // rows * i + min(i, total % rows) for i in range(rows + 1)]
    begin = number * steps
    width = min(steps, starts[1] - begin)
    token_pairs = np.zeros((2, rows, width), dtype=np.int64)
    for row in range(rows):
        first = starts[row] + begin
        end = min(first + width, starts[row + 1])
        piece = ids[first : end + 1]
        token_pairs[0, row, : end - first] = piece[:-1]
        token_pairs[1, row, : end - first] = piece[1:]
    return Chunk(torch.from_numpy(token_pairs[0]), torch.from_numpy(token_pairs[1]))


def count_chunks(ids: Tokens, batch: int, steps: int) -> int:
    """How many chunks `stream_chunks` yields."""
    if batch < 1 or steps < 1:
        raise ValueError(f"{batch} rows of {steps} steps: expected at least 1 of each")
    total = len(ids) - 1
    rows = min(batch, total)
    return ceil(ceil(total / rows) / steps) if rows > 0 else 0
