"""Looks of a trace from the weights that a model returns by name."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from regard.errors import RegardError
from regard.tasks.shared.trace_sides import named_side
from regard.trace import Alternative, Look, Side

ALTERNATIVES = 5
"""How many alternatives a trace lists per position of the output."""


def make_looks(
    weights: Mapping[str, Tensor],
    sides: Mapping[str, Side],
    sides_of: Mapping[str, tuple[str, str]],
) -> tuple[Look, ...]:
    """One look per head from weights [h, q, k] by name.

    Args:
        weights: by name, such as decoder.0.source.
        sides: the sides of the trace.
        sides_of: the query side and the key side of each kind of attention; a kind is a name
            without its layer, such as decoder.source.
    """
    looks = []
    for full_name, tensor in weights.items():
        parts = full_name.split(".")
        layer = next((int(part) for part in parts if part.isdecimal()), None)
        kind = ".".join(part for part in parts if not part.isdecimal())
        query_side, key_side = _sides(kind, sides_of)
        queries, keys = (
            tuple(token.text for token in sides[name].tokens) for name in (query_side, key_side)
        )
        if not queries or not keys:
            continue
        single = layer is None and len(tensor) == 1
        for head, matrix in enumerate(tensor.cpu().double().numpy()):
            looks.append(
                Look(
                    matrix[: len(queries), : len(keys)],
                    queries,
                    keys,
                    name=kind,
                    layer=layer,
                    head=None if single or kind.endswith("experts") else head,
                    query_side=query_side,
                    key_side=key_side,
                )
            )
    return tuple(looks)


def _sides(kind: str, sides_of: Mapping[str, tuple[str, str]]) -> tuple[str, str]:
    """Query side and key side; a kind that a foreign encoder named compares what self does."""
    own = sides_of.get(kind) or sides_of.get(f"{kind.partition('.')[0]}.self")
    if own is None:
        raise RegardError(
            f"attention weights {kind!r}: expected {', '.join(sides_of)}, or a name that starts "
            f"with encoder."
        )
    return own


def expert_side(weights: Mapping[str, Tensor]) -> dict[str, Side]:
    """A side with the experts, where there are any."""
    counts = [tensor.shape[-1] for name, tensor in weights.items() if name.endswith("experts")]
    if not counts:
        return {}
    return {"experts": named_side(f"expert {i + 1}" for i in range(max(counts)))}


def most_likely(
    log_probabilities: Tensor, names: Sequence[str], number: int = ALTERNATIVES
) -> tuple[tuple[Alternative, ...], ...]:
    """The most likely names at each position of [t, v], in order of probability."""
    best = log_probabilities.topk(min(number, log_probabilities.shape[-1]))
    return tuple(
        tuple(Alternative(names[i], p) for i, p in zip(row, probabilities, strict=True))
        for row, probabilities in zip(
            best.indices.tolist(), best.values.exp().tolist(), strict=True
        )
    )
