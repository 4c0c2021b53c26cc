"""Masks as lazy objects: each says which keys a block of queries may attend to."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

Shape = tuple[int, ...]
Device = torch.device | None
Open = Bool[Tensor, "..."]
Spans = tuple[Int[Tensor, "..."], Int[Tensor, "..."]]


class Mask:
    """A lazy bool mask; subclasses say which keys a block of queries may attend to."""

    def block(self, shape: Shape, rows: range, columns: range, device: Device = None) -> Open:
        """The part of the mask over `shape` = (*b, q, k) at these queries and keys.

        It broadcasts with ``[*b, rows, columns]``.
        """
        raise TypeError(f"{type(self).__name__} does not say which keys a query may attend to")

    def reach(self, queries: int, keys: int, rows: range) -> range:
        """Keys outside this range are closed to all of `rows`; the range may be too wide."""
        return range(keys)

    def spans(self, shape: Shape, device: Device = None) -> Spans | None:
        """(start, stop) of each row if the open keys of every row are one run, else None."""
        return None

    def tensor(self, shape: Shape, device: Device = None) -> Open:
        """The whole mask as a bool tensor that broadcasts with `shape` = (*b, q, k)."""
        return self.block(shape, range(shape[-2]), range(shape[-1]), device)

    def seen(self, shape: Shape, device: Device = None) -> Open | None:
        """[*b, 1, k]: False at keys that are closed to every query for certain; None: at none."""
        return None

    def fit(self, shape: Shape) -> Shape:
        """The shape of the scores once the mask is laid over them; its own axes may add to it."""
        return shape

    def over_heads(self, axes: int) -> "Mask":
        """The same mask for scores with so many axes, heads before queries and keys among them."""
        return self

    def draw(self, queries: int | None = None, keys: int | None = None) -> str:
        """The mask as text: one row per query, █ at open keys; one picture per batch item."""
        tall, wide = self.extent or (6, 6)
        tall = tall if queries is None else queries
        if keys is not None or queries is not None:
            wide = tall if keys is None else keys
        shape = self.fit((*self.batch, tall, wide))
        pictures = self.tensor(shape).expand(shape).reshape(-1, *shape[-2:])
        return "\n\n".join(
            "\n".join(" ".join("█" if cell else "·" for cell in row) for row in picture.tolist())
            for picture in pictures
        )

    @property
    def extent(self) -> tuple[int, int] | None:
        """The numbers of queries and keys, where the mask fixes them."""
        return None

    @property
    def batch(self) -> Shape:
        """The leading axes that the mask itself brings along."""
        return ()

    def __and__(self, other: "Mask | Tensor") -> "Mask":
        return And(self, as_mask(other))

    def __or__(self, other: "Mask | Tensor") -> "Mask":
        return Or(self, as_mask(other))

    def __rand__(self, other: Tensor) -> "Mask":
        return And(as_mask(other), self)

    def __ror__(self, other: Tensor) -> "Mask":
        return Or(as_mask(other), self)

    def __invert__(self) -> "Mask":
        return Not(self)

    def __str__(self) -> str:
        return self.draw()


def _positions(
    shape: Shape, rows: range, columns: range, device: Device
) -> tuple[Int[Tensor, "q 1"], Int[Tensor, "1 k"]]:
    """Where queries and keys stand on one common axis, whose end both share."""
    offset = shape[-1] - shape[-2]
    query = torch.arange(rows.start + offset, rows.stop + offset, device=device)
    key = torch.arange(columns.start, columns.stop, device=device)
    return query[:, None], key[None, :]


def _leading(numbers: Tensor, axes: int) -> Tensor:
    """Align per-example numbers with the first axes of the scores, whatever stands between."""
    return numbers[(...,) + (None,) * (axes - numbers.ndim)]


def _check_leading(what: str, batch: Shape, shape: Shape) -> None:
    leading = shape[: len(batch)]
    fits = len(batch) <= len(shape) - 2 and all(
        n in (1, m) for n, m in zip(batch, leading, strict=True)
    )
    if not fits:
        raise ValueError(
            f"{what} of shape {list(batch)} do not fit scores of shape {list(shape)}: "
            f"expected the leading axes {list(shape[:-2])} or a prefix of them"
        )


@dataclass(frozen=True)
class Causal(Mask):
    """Key j is open to the query at position i if j ≤ i, or, without the present, if j < i."""

    present: bool = True

    def block(self, shape: Shape, rows: range, columns: range, device: Device = None) -> Open:
        query, key = _positions(shape, rows, columns, device)
        return key <= query if self.present else key < query

    def reach(self, queries: int, keys: int, rows: range) -> range:
        return range(max(0, rows.stop + keys - queries - (not self.present)))

    def spans(self, shape: Shape, device: Device = None) -> Spans | None:
        query, _ = _positions(shape, range(shape[-2]), range(0), device)
        stop = (query[:, 0] + int(self.present)).clamp(min=0)
        return torch.zeros_like(stop), stop

    def __repr__(self) -> str:
        return "causal()" if self.present else "past()"


@dataclass(frozen=True)
class Window(Mask):
    """Key j is open to the query at position i if |i - j| < size."""

    size: int

    def block(self, shape: Shape, rows: range, columns: range, device: Device = None) -> Open:
        query, key = _positions(shape, rows, columns, device)
        return (query - key).abs() < self.size

    def reach(self, queries: int, keys: int, rows: range) -> range:
        offset = keys - queries
        stop = min(keys, max(0, rows.stop + offset + self.size - 1))
        return range(min(stop, max(0, rows.start + offset - self.size + 1)), stop)

    def spans(self, shape: Shape, device: Device = None) -> Spans | None:
        query, _ = _positions(shape, range(shape[-2]), range(0), device)
        start = (query[:, 0] - self.size + 1).clamp(min=0)
        return start, (query[:, 0] + self.size).clamp(min=0, max=shape[-1])

    def __repr__(self) -> str:
        return f"window({self.size})"


@dataclass(frozen=True, eq=False)
class Lengths(Mask):
    """Key j is open to all queries if j < number; one number per example."""

    number: Int[Tensor, "*b"]
    name: str = "lengths"

    def block(self, shape: Shape, rows: range, columns: range, device: Device = None) -> Open:
        _check_leading(self.name, self.batch, shape)
        _, key = _positions(shape, rows, columns, device or self.number.device)
        return key < _leading(self.number.to(key.device), len(shape))

    def spans(self, shape: Shape, device: Device = None) -> Spans | None:
        _check_leading(self.name, self.batch, shape)
        stop = _leading(self.number.to(device), len(shape) - 1).clamp(min=0, max=shape[-1])
        return torch.zeros_like(stop), stop

    def seen(self, shape: Shape, device: Device = None) -> Open | None:
        return self.block(shape, range(1), range(shape[-1]), device)

    @property
    def batch(self) -> Shape:
        return tuple(self.number.shape)

    def __repr__(self) -> str:
        return f"{self.name}({self.number.tolist()})"


@dataclass(frozen=True, eq=False)
class Documents(Mask):
    """Key j is open to query i if both carry the same document number."""

    query: Int[Tensor, "*b q"]
    key: Int[Tensor, "*b k"]

    def block(self, shape: Shape, rows: range, columns: range, device: Device = None) -> Open:
        _check_leading("documents", self.batch, shape)
        device = device or self.key.device
        offset = self.query.shape[-1] - shape[-2]
        if offset < 0 or self.key.shape[-1] != shape[-1]:
            raise ValueError(
                f"documents of {self.query.shape[-1]} queries and {self.key.shape[-1]} keys do "
                f"not fit scores of shape {list(shape)}"
            )
        query = self.query[..., rows.start + offset : rows.stop + offset].to(device)
        key = self.key[..., columns.start : columns.stop].to(device)
        same = query[..., :, None] == key[..., None, :]
        between = len(shape) - same.ndim
        return same[(*(slice(None),) * (same.ndim - 2), *(None,) * between)]

    @property
    def batch(self) -> Shape:
        return tuple(self.query.shape[:-1])

    @property
    def extent(self) -> tuple[int, int] | None:
        return self.query.shape[-1], self.key.shape[-1]

    def __repr__(self) -> str:
        return f"documents({self.key.tolist()})"


@dataclass(frozen=True)
class Relation(Mask):
    """Key j is open to the query at position i if a rule of both positions says so."""

    name: str
    rule: Callable[[Tensor, Tensor], Tensor]

    def block(self, shape: Shape, rows: range, columns: range, device: Device = None) -> Open:
        return self.rule(*_positions(shape, rows, columns, device))

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class Given(Mask):
    """A bool tensor as a lazy mask, so that it combines with the others."""

    values: Bool[Tensor, "..."]

    def block(self, shape: Shape, rows: range, columns: range, device: Device = None) -> Open:
        values = self.values.to(device or self.values.device)
        if values.ndim < 2:
            values = values.expand(1, values.shape[-1] if values.ndim else 1)
        wide, tall = values.shape[-1] > 1, values.shape[-2] > 1
        return values[
            ...,
            slice(rows.start, rows.stop) if tall else slice(None),
            slice(columns.start, columns.stop) if wide else slice(None),
        ]

    @property
    def batch(self) -> Shape:
        return tuple(self.values.shape[:-2])

    def over_heads(self, axes: int) -> Mask:
        lacks_heads = 2 < self.values.ndim < axes
        return Given(self.values.unsqueeze(-3)) if lacks_heads else self

    def seen(self, shape: Shape, device: Device = None) -> Open | None:
        whole = self.tensor(shape, device)
        return whole.any(-2, keepdim=True)

    def fit(self, shape: Shape) -> Shape:
        try:
            both = np.broadcast_shapes(self.values.shape, shape)
        except ValueError:
            both = ()
        if both[-2:] != shape[-2:]:
            raise ValueError(
                f"mask of shape {list(self.values.shape)} does not broadcast with scores of shape "
                f"{list(shape)} = [.., queries, keys]"
            )
        return both

    @property
    def extent(self) -> tuple[int, int] | None:
        tall, wide = np.broadcast_shapes(self.values.shape, (1, 1))[-2:]
        return tall, wide

    def __repr__(self) -> str:
        return f"given({list(self.values.shape)})"


@dataclass(frozen=True)
class Two(Mask):
    """Two masks together; the subclass says how."""

    left: Mask
    right: Mask

    @property
    def batch(self) -> Shape:
        return max(self.left.batch, self.right.batch, key=len)

    @property
    def extent(self) -> tuple[int, int] | None:
        return self.left.extent or self.right.extent

    def fit(self, shape: Shape) -> Shape:
        return self.right.fit(self.left.fit(shape))

    def over_heads(self, axes: int) -> Mask:
        return type(self)(self.left.over_heads(axes), self.right.over_heads(axes))


class And(Two):
    """Open where both are."""

    def block(self, shape: Shape, rows: range, columns: range, device: Device = None) -> Open:
        left = self.left.block(shape, rows, columns, device)
        return left & self.right.block(shape, rows, columns, device)

    def reach(self, queries: int, keys: int, rows: range) -> range:
        left, right = (side.reach(queries, keys, rows) for side in (self.left, self.right))
        start = max(left.start, right.start)
        return range(start, max(start, min(left.stop, right.stop)))

    def spans(self, shape: Shape, device: Device = None) -> Spans | None:
        left, right = (side.spans(shape, device) for side in (self.left, self.right))
        if left is None or right is None:
            return None
        return torch.maximum(left[0], right[0]), torch.minimum(left[1], right[1])

    def seen(self, shape: Shape, device: Device = None) -> Open | None:
        left, right = (side.seen(shape, device) for side in (self.left, self.right))
        return right if left is None else left if right is None else left & right

    def __repr__(self) -> str:
        return f"{self.left!r} & {self.right!r}"


class Or(Two):
    """Open where one of both is."""

    def block(self, shape: Shape, rows: range, columns: range, device: Device = None) -> Open:
        left = self.left.block(shape, rows, columns, device)
        return left | self.right.block(shape, rows, columns, device)

    def reach(self, queries: int, keys: int, rows: range) -> range:
        left, right = (side.reach(queries, keys, rows) for side in (self.left, self.right))
        return range(min(left.start, right.start), max(left.stop, right.stop))

    def seen(self, shape: Shape, device: Device = None) -> Open | None:
        left, right = (side.seen(shape, device) for side in (self.left, self.right))
        return None if left is None or right is None else left | right

    def __repr__(self) -> str:
        return f"({self.left!r} | {self.right!r})"


@dataclass(frozen=True)
class Not(Mask):
    """Open where the other is closed."""

    other: Mask

    def block(self, shape: Shape, rows: range, columns: range, device: Device = None) -> Open:
        return ~self.other.block(shape, rows, columns, device)

    @property
    def batch(self) -> Shape:
        return self.other.batch

    @property
    def extent(self) -> tuple[int, int] | None:
        return self.other.extent

    def fit(self, shape: Shape) -> Shape:
        return self.other.fit(shape)

    def over_heads(self, axes: int) -> Mask:
        return Not(self.other.over_heads(axes))

    def __repr__(self) -> str:
        return f"~({self.other!r})"


def as_mask(mask: Mask | Tensor) -> Mask:
    """A lazy mask as it is; a bool tensor as one."""
    if isinstance(mask, Mask):
        return mask
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        kind = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise ValueError(
            f"a mask must be a bool tensor or one of regard.attention.masks, True = may attend; "
            f"got {kind}. Numbers to add to the scores go to bias="
        )
    return Given(mask)
