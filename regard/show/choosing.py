"""Which look of a trace to draw: one head, or the mean or maximum of several."""

from dataclasses import replace

import numpy as np

from regard.errors import RegardError, unknown
from regard.looks import Look
from regard.trace import Trace

FIRST = ("source", "decoder.source", "pooling")
"""Names of looks that say most of their trace, drawn unless another is named."""


def choose(
    trace: Trace,
    name: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    aggregate: str = "mean",
) -> tuple[Look, str]:
    """The look of this name, layer and head, and a phrase that says what it is.

    Without a name the one that says most; without a layer the last; without a head the mean (or
    maximum) of all heads of the layer.
    """
    if not trace.looks:
        raise RegardError("this trace holds no looks: there is nothing to draw")
    names = list(dict.fromkeys(look.name for look in trace.looks))
    name = name if name is not None else next((one for one in FIRST if one in names), names[0])
    if name not in names:
        raise RegardError(unknown("look", name, names))
    several = [look for look in trace.looks if look.name == name]
    layers = sorted({look.layer for look in several if look.layer is not None})
    if layer is not None and layer not in layers:
        raise RegardError(f"look {name!r} has no layer {layer}: expected one of {layers}")
    layer = layer if layer is not None or not layers else layers[-1]
    several = [look for look in several if look.layer == layer]
    heads = sorted({look.head for look in several if look.head is not None})
    if head is not None:
        if head not in heads:
            raise RegardError(f"look {name!r} has no head {head}: expected one of {heads}")
        several = [look for look in several if look.head == head]
    return combine(several, aggregate)


def combine(looks: list[Look], aggregate: str = "mean") -> tuple[Look, str]:
    """The mean or maximum of looks with the same words, and a phrase that says so."""
    if aggregate not in ("mean", "max"):
        raise RegardError(unknown("aggregate", aggregate, ["mean", "max"]))
    first = looks[0]
    same = [look for look in looks if (look.queries, look.keys) == (first.queries, first.keys)]
    if len(same) == 1:
        return first, ""
    stack = np.stack([look.weights for look in same])
    weights = stack.mean(axis=0) if aggregate == "mean" else stack.max(axis=0)
    return replace(first, weights=weights, head=None), f"{aggregate} of {len(same)} heads"


def label(look: Look, said: str = "") -> str:
    """A title for a look: its name, layer, head."""
    parts = [look.name]
    parts += [f"layer {look.layer}"] if look.layer is not None else []
    parts += [f"head {look.head}"] if look.head is not None else []
    return " · ".join([*parts, said] if said else parts)


def sums(look: Look) -> str:
    """What the rows of a look sum to, in words."""
    totals = look.weights.sum(axis=1)
    if (np.abs(totals - 1) < 0.01).all():
        return "each row sums to 1"
    if ((np.abs(totals - 1) < 0.01) | (np.abs(totals) < 1e-6)).all():
        return "each row sums to 1, or to 0 where it may look nowhere"
    return f"rows sum to between {totals.min():.2f} and {totals.max():.2f}"
