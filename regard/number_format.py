"""Numbers as people write them: BLEU 86.0, accuracy 94.8 %, perplexity 41.3, 1,234 sentences.

Only output for people uses these functions; JSON keeps full precision.
"""

from math import isfinite, isnan
from typing import Literal

Unit = Literal["share", "f1", "points", "number"]
"""How the values of a metric are written: a *share* from 0 to 1 in percent (accuracy, recall,
error rates), *f1* from 0 to 1 as a figure out of 100 without a sign, as conlleval prints it,
*points* that are out of 100 already (BLEU, chrF), and any other *number* (perplexity)."""


def format_value(value: float, unit: str = "number") -> str:
    """A value of a metric in its unit; an unknown unit is that of a plain number.

    >>> format_value(0.9482, "share"), format_value(0.8596, "f1"), format_value(86.04, "points")
    ('94.8 %', '86.0', '86.0')
    >>> format_value(41.327), format_value(1.8349), format_value(0.01234), format_value(12345.6)
    ('41.3', '1.83', '0.012', '12,346')
    """
    text = format_bare_value(value, unit)
    return f"{text} %" if unit == "share" and isfinite(value) else text


def format_interval(low: float, high: float, unit: str = "number") -> str:
    """The ends of an interval, in the unit of its value but without a sign; empty without ends.

    >>> format_interval(0.912, 0.97, "share"), format_interval(float("nan"), float("nan"))
    ('[91.2, 97.0]', '')
    """
    if isnan(low) or isnan(high):
        return ""
    return f"[{format_bare_value(low, unit)}, {format_bare_value(high, unit)}]"


def format_bare_value(value: float, unit: str = "number") -> str:
    """A value without the sign of its unit, for tables whose heading names it.

    >>> format_bare_value(0.9482, "share"), format_bare_value(-0.0001), format_bare_value(1e9)
    ('94.8', '0.000', '1.00e+09')
    """
    if isnan(value):
        return "–"
    if not isfinite(value):
        return "∞" if value > 0 else "−∞"
    if unit in ("share", "f1"):
        return _fixed(100 * value, 1)
    if unit == "points":
        return _fixed(value, 1)
    size = abs(value)
    if size >= 1e7:
        return f"{value:.2e}"
    return _fixed(value, 0 if size >= 1000 else 1 if size >= 10 else 2 if size >= 1 else 3)


def format_count(count: int) -> str:
    """A whole number with separators between thousands.

    >>> format_count(1234567)
    '1,234,567'
    """
    return f"{count:,}"


def format_duration(seconds: float) -> str:
    """A duration in seconds, minutes or hours.

    >>> format_duration(1.2), format_duration(47.6), format_duration(200.0), format_duration(8640.0)
    ('1 second', '48 seconds', '3.3 minutes', '2.4 hours')
    """
    if seconds >= 5400:
        return f"{seconds / 3600:.1f} hours"
    if seconds >= 59.5:
        return f"{seconds / 60:.1f} minutes"
    whole = round(seconds)
    return f"{whole} second{'s' * (whole != 1)}"


def _fixed(value: float, decimals: int) -> str:
    """A number with so many decimals, and without the sign of a zero that was rounded."""
    return f"{round(value, decimals) + 0.0:,.{decimals}f}"
