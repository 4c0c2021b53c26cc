"""A look: one attention matrix that has not yet been drawn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from regard.show import Drawn


def equal(one: Any, other: Any) -> bool:
    """Whether two plain values are equal, arrays inside them by shape and every number.

    Not a number is equal to itself, so that a thing is always equal to its copy.

    >>> equal({"a": [np.zeros(2), 1]}, {"a": [np.zeros(2), 1.0]}), equal(np.zeros(2), np.zeros(3))
    (True, False)
    """
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        if not (isinstance(one, np.ndarray) and isinstance(other, np.ndarray)):
            return False
        return np.array_equal(one, other, equal_nan=one.dtype.kind == other.dtype.kind == "f")
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(equal(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        same = type(one) is type(other) and len(one) == len(other)
        return same and all(map(equal, one, other))
    return bool(one == other) or bool(one != one and other != other)


def equal_fields(one: Any, other: Any) -> Any:
    """`==` of records with arrays inside, for their `__eq__`: a bool, or NotImplemented."""
    if type(one) is not type(other):
        return NotImplemented
    return all(equal(getattr(one, each.name), getattr(other, each.name)) for each in fields(one))


@dataclass(frozen=True, eq=False)
class Look:
    """Which queries looked at which keys, and how much.

    >>> look = from_arrays([[0.9, 0.1]], queries=["chat"], keys=["cat", "the"])
    >>> look.weights.shape
    (1, 2)
    """

    weights: NDArray[np.float64]
    """[q, k], a row a query."""
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    name: str = "attention"
    layer: int | None = None
    head: int | None = None
    asking: str = "queries"
    """The side that looks, by its name in a trace."""
    asked: str = "keys"
    """The side that is looked at."""
    notes: dict[str, str] = field(default_factory=dict)

    __eq__ = equal_fields

    def __post_init__(self) -> None:
        if self.weights.shape != (len(self.queries), len(self.keys)):
            raise ValueError(
                f"weights of shape {list(self.weights.shape)} do not fit {len(self.queries)} "
                f"queries and {len(self.keys)} keys"
            )

    def show(self, to: str | PathLike[str] | None = None, **options: Any) -> "Drawn":
        """Draw it: here and now, or into a file whose name ends in html, svg, png or json."""
        from regard.show import show

        return show(self, to, **options)

    def _repr_html_(self) -> str:
        return self.show()._repr_html_()


def from_arrays(
    weights: ArrayLike,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    name: str = "attention",
    layer: int | None = None,
    head: int | None = None,
    asking: str = "queries",
    asked: str = "keys",
) -> Look:
    """A look from anybody's numbers: weights [q, k] and the words on both sides.

    It is one matrix; of a stack [layers, h, q, k] each gives a look, told apart by layer and head:

    >>> stack = np.full((2, 3, 1, 2), 0.5)
    >>> looks = [
    ...     from_arrays(stack[layer, head], ["chat"], ["the", "cat"], layer=layer, head=head)
    ...     for layer, head in np.ndindex(2, 3)
    ... ]
    >>> len(looks), looks[-1].layer, looks[-1].head
    (6, 1, 2)
    """
    matrix = np.asarray(_numbers(weights), dtype=np.float64)
    if matrix.ndim != 2:
        raise ValueError(
            f"a look is one matrix [queries, keys]; got weights of shape {list(matrix.shape)}: "
            f"make a look of each layer and head"
        )
    return Look(matrix, tuple(queries), tuple(keys), name, layer, head, asking, asked)


def _numbers(weights: Any) -> Any:
    """What numpy can read: a tensor without its gradient, in a type that numpy knows."""
    return weights.detach().cpu().double() if hasattr(weights, "detach") else weights


def from_transformers(
    model: Any, inputs: Any, *, tokenizer: Any = None, row: int = 0
) -> tuple[Look, ...]:
    """Every look of a Hugging Face model at one text; see `regard.foreign.from_transformers`."""
    from regard import foreign

    return foreign.from_transformers(model, inputs, tokenizer=tokenizer, row=row)
