"""Numbers of a translation that are not in its source, replaced by those that are.

A translator writes numbers piece by piece, and invents those that training rarely had. Where a
translation has a number that its source lacks, and the source one that the translation lacks, the
number is copied along the strongest attention between the two (Luong et al., 2015,
https://arxiv.org/abs/1410.8206, for unknown words).
"""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from regard.tasks.shared.trace_sides import Span

NUMBER = re.compile(r"\d+(?:[.,:/-]\d+|[ \u00a0\u202f]\d{3}(?!\d))*")
"""Digits with what may separate them; a blank separates thousands."""


def unmatched_numbers(source: str, target: str) -> tuple[list[Span], list[Span]]:
    """Where either text has numbers that the other lacks, whatever separates their digits.

    >>> unmatched_numbers("May 3, 1997 at 10,000", "le 3 mai 1979 à 10 000 m")
    ([(7, 11)], [(9, 13)])
    >>> unmatched_numbers("1.5 of 2", "1,5 von 2")
    ([], [])
    """
    found = [list(NUMBER.finditer(text)) for text in (source, target)]
    digits = [[_digits(one.group()) for one in side] for side in found]
    both = Counter(digits[0]) & Counter(digits[1])
    rest = []
    for side, written in zip(found, digits, strict=True):
        left = both.copy()
        spans = []
        for one, name in zip(side, written, strict=True):
            if left[name]:
                left[name] -= 1
            else:
                spans.append(one.span())
        rest.append(spans)
    return rest[0], rest[1]


def copy_numbers(
    source: str,
    target: str,
    weights: Float[np.ndarray, "t s"],
    source_spans: Sequence[Span],
    target_spans: Sequence[Span],
) -> str:
    """The translation with numbers of the source in place of those that are only its own.

    Only a number with as many groups of digits is replaced: 5:30 may well be 17 h 30.

    Args:
        source: the source.
        target: its translation.
        weights: attention from the tokens of the translation to those of the source.
        source_spans: where these tokens are in the source.
        target_spans: where those are in the translation.
    """
    wanted, own = unmatched_numbers(source, target)
    attention = {
        (t, s): _attention(weights, target_spans, source_spans, t, s)
        for t in own
        for s in wanted
        if _groups(target, t) == _groups(source, s)
    }
    replaced: dict[Span, Span] = {}
    for t, s in sorted(attention, key=lambda pair: -attention[pair]):
        if t not in replaced and s not in replaced.values():
            replaced[t] = s
    for t, s in sorted(replaced.items(), reverse=True):
        target = target[: t[0]] + source[s[0] : s[1]] + target[t[1] :]
    return target


def _attention(
    weights: np.ndarray,
    target_spans: Sequence[Span],
    source_spans: Sequence[Span],
    target: Span,
    source: Span,
) -> float:
    rows, columns = _tokens(target_spans, target), _tokens(source_spans, source)
    return float(weights[np.ix_(rows, columns)].sum() / max(1, len(rows)))


def _tokens(spans: Sequence[Span], number: Span) -> list[int]:
    return [i for i, (start, end) in enumerate(spans) if start < number[1] and end > number[0]]


def _digits(number: str) -> str:
    return "".join(letter for letter in number if letter.isdigit())


def _groups(text: str, span: Span) -> int:
    return len(re.findall(r"\d+", text[span[0] : span[1]]))
