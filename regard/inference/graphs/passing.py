"""What passes from graph to graph by name, and the weights that all of them return."""

from regard.inference.graphs.bodies import Pair, Weights
from regard.inference.graphs.values import FLOAT, INT64, Graph, Value
from regard.models.stack import Stack

Axes = tuple[str | int, ...]


def nothing(layers: Stack, batch: Value) -> dict[str, Value]:
    """What is remembered before the first position."""
    axes = cache_axes(layers, "state", 0)
    return {name: batch.graph.full(0.0, batch, *sizes[1:]) for name, sizes in axes.items()}  # type: ignore[arg-type]


def cache_axes(layers: Stack, prefix: str, keys: str | int) -> dict[str, Axes]:
    """The names and axes of the keys and values of each block."""
    found: dict[str, Axes] = {}
    for number, block in enumerate(layers):
        heads = block.own.heads
        for name, projection in (("key", block.own.key), ("value", block.own.value)):
            size = projection.out_features // heads
            found[f"{prefix}.{number}.{name}"] = ("batch", heads, keys, size)
    return found


def pairs(state: dict[str, Value], prefix: str, layers: int) -> list[Pair]:
    """The keys and values of each block."""
    return [(state[f"{prefix}.{i}.key"], state[f"{prefix}.{i}.value"]) for i in range(layers)]


def state_in(graph: Graph, axes: dict[str, Axes]) -> dict[str, Value]:
    """All that a step takes."""
    return {name: graph.input(name, _type(name), *given) for name, given in axes.items()}


def state_out(graph: Graph, name: str, value: Value, axes: Axes, after: bool = False) -> None:
    """A part of the state; after a step it is called `next.…`, and its past is longer."""
    if after:
        name = f"next.{name.removeprefix('state.')}"
    named = tuple("seen" if after and axis == "past" else axis for axis in axes)
    graph.output(name, value, _type(name), *named)


def _type(name: str) -> int:
    return INT64 if name.endswith((".position", ".lengths")) else FLOAT


def looks(weights: Weights, queries: str | None, keys: str | None = None) -> None:
    """Weights [b, h, q, k], or [b, h, k] where there is one query."""
    for name, value in weights.items():
        last = name.split(".")[-1]
        asked: str = {"source": "keys", "experts": "experts"}.get(last, keys or queries or "keys")
        asking = [1 if name in ("pooling", "experts") else queries] if queries else []
        heads = "queries" if name == "pooling" else "heads"
        value.graph.output(f"weights.{name}", value, FLOAT, "batch", heads, *asking, asked)
