"""A look: one attention map, with the words of its rows and columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from regard.show import Drawing


def equal(first: Any, second: Any) -> bool:
    """Whether two plain values are equal; arrays inside them by shape and every number.

    NaN equals NaN here, so that a record always equals its copy.

    >>> equal({"a": [np.zeros(2), 1]}, {"a": [np.zeros(2), 1.0]}), equal(np.zeros(2), np.zeros(3))
    (True, False)
    """
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        if not (isinstance(first, np.ndarray) and isinstance(second, np.ndarray)):
            return False
        floats = first.dtype.kind == second.dtype.kind == "f"
        return np.array_equal(first, second, equal_nan=floats)
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        same_names = first.keys() == second.keys()
        return same_names and all(equal(first[name], second[name]) for name in first)
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        same_kind = type(first) is type(second) and len(first) == len(second)
        return same_kind and all(map(equal, first, second))
    return bool(first == second) or bool(first != first and second != second)


def equal_fields(first: Any, second: Any) -> Any:
    """`==` of records with arrays inside, for their `__eq__`: a bool, or NotImplemented."""
    if type(first) is not type(second):
        return NotImplemented
    names = [each.name for each in fields(first)]
    return all(equal(getattr(first, name), getattr(second, name)) for name in names)


@dataclass(frozen=True, eq=False)
class Look:
    """Which queries looked at which keys, and how much.

    >>> look = from_arrays([[0.9, 0.1]], queries=["chat"], keys=["cat", "the"])
    >>> look.weights.shape
    (1, 2)
    """

    weights: NDArray[np.float64]
    """[q, k], one row per query."""
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    name: str = "attention"
    layer: int | None = None
    head: int | None = None
    query_side: str = "queries"
    """The side of a trace that the queries belong to."""
    key_side: str = "keys"
    """The side of a trace that the keys belong to."""
    notes: dict[str, str] = field(default_factory=dict)

    __eq__ = equal_fields

    def __post_init__(self) -> None:
        if self.weights.shape != (len(self.queries), len(self.keys)):
            raise ValueError(
                f"weights of shape {list(self.weights.shape)} do not fit {len(self.queries)} "
                f"queries and {len(self.keys)} keys"
            )

    def __array__(
        self, dtype: np.dtype[Any] | None = None, copy: bool | None = None
    ) -> NDArray[Any]:
        """The weights, for `np.asarray(look)` and everything else that takes an array."""
        return np.array(self.weights, dtype=dtype, copy=copy)

    def to_pandas(self) -> Any:
        """The weights as a data frame: queries are its rows, keys its columns; needs pandas."""
        try:
            import pandas  # type: ignore[import-untyped,unused-ignore]
        except ImportError:
            raise ImportError("Look.to_pandas needs pandas: pip install pandas") from None
        return pandas.DataFrame(self.weights, index=list(self.queries), columns=list(self.keys))

    def __repr__(self) -> str:
        size = f"{len(self.queries)} queries × {len(self.keys)} keys"
        return f"Look({self.title()}, {self.query_side} → {self.key_side}, {size})"

    def show(self, to: str | PathLike[str] | None = None, **options: Any) -> "Drawing":
        """Show it here, or write a file whose name ends in html, svg, png or json."""
        from regard.show import show

        return show(self, to, **options)

    def plot(self, ax: "Axes | None" = None, **options: Any) -> "Axes":
        """Draw the map with matplotlib, to restyle it for a paper or to place it among other axes.

        Args:
            ax: where to draw; default: the axes of a new figure.
            options: passed on to `Axes.imshow`; defaults: cmap="Blues", vmin=0.

        Returns:
            The axes, with queries as rows and keys as columns. The image is `ax.images[-1]`, which
            `figure.colorbar` takes.
        """
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise ImportError(
                "Look.plot needs matplotlib: pip install 'regard[plot]'; Look.show works without it"
            ) from None
        if ax is None:
            ax = plt.subplots(layout="constrained")[1]
        defaults: dict[str, Any] = {"cmap": "Blues", "vmin": 0.0, "aspect": "auto"}
        ax.imshow(self.weights, **(defaults | options))
        ax.set_xticks(range(len(self.keys)), self.keys, rotation=45, ha="right")
        ax.set_yticks(range(len(self.queries)), self.queries)
        ax.set_xlabel(self.key_side)
        ax.set_ylabel(self.query_side)
        ax.set_title(self.title())
        return ax

    def title(self, note: str = "") -> str:
        """Its name, layer and head, with a note after them.

        >>> from_arrays([[1.0]], ["chat"], ["cat"], layer=2, head=0).title("first")
        'attention · layer 2 · head 0 · first'
        """
        parts = [self.name]
        parts += [f"layer {self.layer}"] if self.layer is not None else []
        parts += [f"head {self.head}"] if self.head is not None else []
        return " · ".join([*parts, note] if note else parts)

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
    query_side: str = "queries",
    key_side: str = "keys",
) -> Look:
    """A look from your own numbers: weights [q, k] and the words on both sides.

    A look is one matrix; from a stack [layers, h, q, k] make one look per layer and head:

    >>> stack = np.full((2, 3, 1, 2), 0.5)
    >>> looks = [
    ...     from_arrays(stack[layer, head], ["chat"], ["the", "cat"], layer=layer, head=head)
    ...     for layer, head in np.ndindex(2, 3)
    ... ]
    >>> len(looks), looks[-1].layer, looks[-1].head
    (6, 1, 2)
    """
    matrix = np.asarray(_readable_by_numpy(weights), dtype=np.float64)
    if matrix.ndim != 2:
        raise ValueError(
            f"a look is one matrix [queries, keys]; got weights of shape {list(matrix.shape)}: "
            f"make one look per layer and head"
        )
    return Look(
        weights=matrix,
        queries=tuple(queries),
        keys=tuple(keys),
        name=name,
        layer=layer,
        head=head,
        query_side=query_side,
        key_side=key_side,
    )


def _readable_by_numpy(weights: Any) -> Any:
    """A tensor without its gradient, in a type that numpy has; anything else as it is."""
    return weights.detach().cpu().double() if hasattr(weights, "detach") else weights


def from_transformers(
    model: Any, inputs: Any, *, tokenizer: Any = None, row: int = 0
) -> tuple[Look, ...]:
    """Every look of a Hugging Face model at one text; see `trace.huggingface`."""
    from regard.trace import huggingface as foreign

    return foreign.from_transformers(model, inputs, tokenizer=tokenizer, row=row)
