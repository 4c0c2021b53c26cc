"""The bytes of one character, such as an emoji, drawn as one word.

A tokenizer may split a character into its bytes, which have the same place in the text and no
letters of their own. As keys their weights are summed, since attention to a character is attention
to any of its bytes; as queries they are averaged, so that rows keep their sum. The web page does
the same (`units.js`).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from regard.trace import Token, Trace
from regard.trace.look import Look


def join_byte_pieces(trace: Trace, look: Look) -> Look:
    """The look with the bytes of each character as one row or column.

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
