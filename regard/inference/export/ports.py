"""Names and axes of the state that passes between graphs, and of attention weights."""

from regard.inference.export.graph import FLOAT, INT64, Graph, Value
from regard.inference.export.graph_layers import Pair, Weights
from regard.models.transformer_stack import TransformerStack

Axes = tuple[str | int, ...]


def empty_caches(layers: TransformerStack, batch: Value) -> dict[str, Value]:
    """Caches before the first position."""
    axes = cache_axes(layers, "state", 0)
    return {name: batch.graph.full(0.0, batch, *sizes[1:]) for name, sizes in axes.items()}  # type: ignore[arg-type]


def cache_axes(layers: TransformerStack, prefix: str, keys: str | int) -> dict[str, Axes]:
    """The names and axes of the keys and values of each block."""
    axes: dict[str, Axes] = {}
    for number, block in enumerate(layers):
        heads = block.own.key_heads
        for name, projection in (("key", block.own.key), ("value", block.own.value)):
            size = projection.out_features // heads
            axes[f"{prefix}.{number}.{name}"] = ("batch", heads, keys, size)
    return axes


def cache_pairs(state: dict[str, Value], prefix: str, layers: int) -> list[Pair]:
    """The keys and values of each block."""
    return [(state[f"{prefix}.{i}.key"], state[f"{prefix}.{i}.value"]) for i in range(layers)]


def state_inputs(graph: Graph, axes: dict[str, Axes]) -> dict[str, Value]:
    """The inputs of a step."""
    return {name: graph.input(name, _type(name), *given) for name, given in axes.items()}


def output_state(graph: Graph, name: str, value: Value, axes: Axes, after: bool = False) -> None:
    """A part of the state; after a step it is called `next.…`, and its past is longer."""
    if after:
        name = f"next.{name.removeprefix('state.')}"
    named = tuple("seen" if after and axis == "past" else axis for axis in axes)
    graph.output(name, value, _type(name), *named)


def _type(name: str) -> int:
    return INT64 if name.endswith((".position", ".lengths")) else FLOAT


def output_weights(weights: Weights, queries: str | None, keys: str | None = None) -> None:
    """Weights [b, h, q, k], or [b, h, k] where there is one query."""
    for name, value in weights.items():
        last = name.split(".")[-1]
        key_axis: str = {"source": "keys", "experts": "experts"}.get(
            last, keys or queries or "keys"
        )
        query_axis = [1 if name in ("pooling", "experts") else queries] if queries else []
        heads = "queries" if name == "pooling" else "heads"
        value.graph.output(f"weights.{name}", value, FLOAT, "batch", heads, *query_axis, key_axis)
