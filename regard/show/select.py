"""Which look of a trace to draw: one head, or the mean or maximum of candidates; its words."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError, unknown
from regard.trace import Token, Trace
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


def join_byte_pieces(trace: Trace, look: Look) -> Look:
    """The look with the bytes of each character, such as an emoji, as one row or column.

    A tokenizer may split a character into bytes, which have the same place in the text and no
    letters of their own. As keys their weights are summed, since attention to a character is
    attention to any of its bytes; as queries they are averaged, so that rows keep their sum. The
    web page does the same (`units.js`).

    >>> from regard.trace import Side
    >>> emoji = [Token("ð", 0, 1), Token("Ÿ", 0, 1), Token("cat", 2, 5)]
    >>> trace = Trace("tag", {"text": Side("😀 cat", tuple(emoji))}, (), "")
    >>> words = tuple(token.text for token in emoji)
    >>> weights = np.array([[0.1, 0.2, 0.7], [0.3, 0.4, 0.3], [0.0, 0.0, 1.0]])
    >>> joined = join_byte_pieces(trace, Look(weights, words, words, "self", 0, 0, "text", "text"))
    >>> joined.queries, joined.weights.round(2).tolist()
    (('😀', 'cat'), [[0.5, 0.5], [0.0, 1.0]])
    """
    rows, queries = _joined(trace, look.query_side, look.queries)
    columns, keys = _joined(trace, look.key_side, look.keys)
    if len(queries) == len(look.queries) and len(keys) == len(look.keys):
        return look
    averaged = rows / rows.sum(axis=1, keepdims=True)
    weights = averaged @ look.weights @ columns.T
    return replace(look, weights=weights, queries=queries, keys=keys)


def _joined(
    trace: Trace, side: str, words: tuple[str, ...]
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Which words make each unit [units, words], and the text of each."""
    known = trace.sides.get(side)
    tokens: Sequence[Token] = known.tokens if known is not None else ()
    if known is None or tuple(token.text for token in tokens) != words:
        return np.eye(len(words)), words
    units: list[list[int]] = []
    for place, token in enumerate(tokens):
        if units and _same_character(tokens[place - 1], token):
            units[-1].append(place)
        else:
            units.append([place])
    matrix = np.zeros((len(units), len(words)))
    for number, unit in enumerate(units):
        matrix[number, unit] = 1.0
    texts = (
        words[unit[0]]
        if len(unit) == 1
        else known.text[tokens[unit[0]].start : tokens[unit[0]].end] or words[unit[0]]
        for unit in units
    )
    return matrix, tuple(texts)


def _same_character(before: Token, token: Token) -> bool:
    return (
        not (before.special or token.special)
        and token.end > token.start
        and (token.start, token.end) == (before.start, before.end)
    )
