"""Which look of a trace to draw: one head, or the mean or maximum of candidates."""

from dataclasses import replace

import numpy as np

from regard.errors import RegardError, unknown
from regard.show.byte_pieces import join_byte_pieces
from regard.trace import Trace
from regard.trace.look import Look

PREFERRED_LOOKS = ("source", "decoder.source", "pooling")
"""Names of the looks that tell most about their trace; the default is the first that exists."""


def select_look(
    trace: Trace,
    name: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    aggregate: str = "mean",
) -> tuple[Look, str]:
    """The look of this name, layer and head, and a note on how it was combined.

    Default name: the one that tells most; default layer: the last; default head: the mean (or
    maximum) over all heads of the layer.
    """
    if not trace.looks:
        raise RegardError(no_attention(trace))
    names = list(dict.fromkeys(look.name for look in trace.looks))
    if name is None:
        name = next((preferred for preferred in PREFERRED_LOOKS if preferred in names), names[0])
    if name not in names:
        raise RegardError(unknown("look", name, names))
    candidates = [look for look in trace.looks if look.name == name]
    layers = sorted({look.layer for look in candidates if look.layer is not None})
    if layer is not None and layer not in layers:
        raise RegardError(f"look {name!r} has no layer {layer}: expected one of {layers}")
    layer = layer if layer is not None or not layers else layers[-1]
    candidates = [look for look in candidates if look.layer == layer]
    heads = sorted({look.head for look in candidates if look.head is not None})
    if head is not None:
        if head not in heads:
            raise RegardError(f"look {name!r} has no head {head}: expected one of {heads}")
        candidates = [look for look in candidates if look.head == head]
    look, note = combine_heads(candidates, aggregate)
    return join_byte_pieces(trace, look), note


def no_attention(trace: Trace) -> str:
    """What to say of a trace without looks: how to train a model that attends, where it is known.

    >>> no_attention(Trace("tag", {}, (), "", card={"attend_with": "--encoder recurrent_self"}))
    'this model has no attention to draw: train one with --encoder recurrent_self'
    """
    options = trace.card.get("attend_with")
    return "this model has no attention to draw" + (
        f": train one with {options}" if options else ""
    )


def combine_heads(looks: list[Look], aggregate: str = "mean") -> tuple[Look, str]:
    """The mean or maximum of looks with the same words, and a note that says so."""
    if aggregate not in ("mean", "max"):
        raise RegardError(unknown("aggregate", aggregate, ["mean", "max"]))
    first = looks[0]
    same = [look for look in looks if (look.queries, look.keys) == (first.queries, first.keys)]
    if len(same) == 1:
        return first, ""
    stack = np.stack([look.weights for look in same])
    weights = stack.mean(axis=0) if aggregate == "mean" else stack.max(axis=0)
    return replace(first, weights=weights, head=None), f"{aggregate} of {len(same)} heads"


def row_sums(look: Look) -> str:
    """What the rows of a look sum to, in words."""
    totals = look.weights.sum(axis=1)
    if (np.abs(totals - 1) < 0.01).all():
        return "each row sums to 1"
    if ((np.abs(totals - 1) < 0.01) | (np.abs(totals) < 1e-6)).all():
        return "each row sums to 1, or to 0 where it is fully masked"
    return f"rows sum to between {totals.min():.2f} and {totals.max():.2f}"
