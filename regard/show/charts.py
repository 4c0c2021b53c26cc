"""Charts as SVG: lines with intervals, and values with intervals one below the other."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from regard.show.colours import INK, QUIET
from regard.show.curves import ticks
from regard.show.svg_frame import COLUMN_WIDTH, Number, label_width, svg_document, svg_text

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#15181e", "#7f3c8d")
"""Of the series in their order; colour-blind readers can tell the first six apart (Okabe, Ito)."""
DASHES = ("", "7 4", "2 3", "10 3 2 3")
WIDE, TALL, LEFT, TOP = 520.0, 240.0, 84.0, 60.0
GRID = "#e3e6ec"
LONGEST = 70
"""Columns of the longest name of a line, a row or an axis."""


@dataclass(frozen=True)
class Series:
    """Points that a line joins, with an optional interval around each."""

    name: str
    x: Sequence[Number]
    y: Sequence[Number]
    low: Sequence[Number] = ()
    high: Sequence[Number] = ()


@dataclass(frozen=True)
class Bar:
    """A value with its interval, for `interval_chart`."""

    name: str
    value: Number
    low: Number
    high: Number


@dataclass(frozen=True)
class Axis:
    """One axis: its name, whether it is logarithmic, and names of places instead of numbers."""

    name: str
    log: bool = False
    places: Sequence[str] = ()
    """Names of the places 0, 1, 2 …"""


def line_chart(title: str, series: Sequence[Series], x: Axis, y: Axis) -> str:
    """Lines in one frame with a legend to the right."""
    xs = [value for one in series for value in one.x]
    bounds = (value for one in series for part in (one.y, one.low, one.high) for value in part)
    across, up = _Scale(xs, x, LEFT, LEFT + WIDE), _Scale(bounds, y, TOP + TALL, TOP)
    parts = [*_frame(across, up, TOP + TALL), *_axis_names(x.name, y.name)]
    for number, one in enumerate(series):
        parts += _line(one, number, across, up)
    names = tuple(one.name for one in series)
    legend = LEFT + WIDE + 22
    for number, name in enumerate(names):
        top = TOP + 10 + 20 * number
        dash, colour = _style(number)
        parts.append(f'<path d="M{legend:g} {top - 4:g}h22" stroke="{colour}" {dash}/>')
        parts.append(svg_text(legend + 28, top, name, size=12.0, longest=LONGEST))
    width = legend + 28 + 1.05 * label_width(names, 12, LONGEST) + 12
    height = max(TOP + TALL + 60, TOP + 30 + 20 * len(names))
    return svg_document(width, height, title, parts, _describe(series))


def interval_chart(title: str, bars: Sequence[Bar], axis: str) -> str:
    """Values with their intervals, one row each; rows whose intervals are apart differ clearly."""
    left = 28 + label_width(tuple(bar.name for bar in bars), 13, LONGEST)
    bounds = [value for bar in bars for value in (bar.value, bar.low, bar.high)]
    across = _Scale(bounds, Axis(axis), left, left + WIDE)
    bottom = TOP + 30 * max(1, len(bars))
    parts = []
    for value, label in across.ticks():
        parts.append(f'<path d="M{across(value):.1f} {TOP - 8:g}V{bottom:g}" stroke="{GRID}"/>')
        middle = svg_text(across(value), bottom + 18, label, anchor="middle", size=12.0, fill=QUIET)
        parts.append(middle)
    for number, bar in enumerate(bars):
        y = TOP + 30 * number + 12
        name = svg_text(left - 14, y + 4, bar.name, anchor="end", size=13.0, longest=LONGEST)
        parts.append(name)
        if not math.isfinite(bar.value):
            continue
        colour = COLOURS[0]
        if math.isfinite(bar.low) and math.isfinite(bar.high):
            ends = f"M{across(bar.low):.1f} {y}H{across(bar.high):.1f}"
            parts.append(f'<path d="{ends}" stroke="{colour}" stroke-width="3"/>')
        parts.append(f'<circle cx="{across(bar.value):.1f}" cy="{y}" r="5" fill="{colour}"/>')
    name = svg_text(
        left + WIDE / 2, bottom + 40, axis, anchor="middle", size=12.0, fill=QUIET, longest=LONGEST
    )
    described = "; ".join(f"{bar.name}: {bar.value:.4g}" for bar in bars)
    return svg_document(left + WIDE + 30, bottom + 60, title, [*parts, name], described)


class _Scale:
    """Places of numbers along an axis; values without a logarithm have no place on a log axis."""

    def __init__(self, values: Iterable[Number], axis: Axis, start: Number, end: Number) -> None:
        self.axis, self.start, self.end = axis, start, end
        finite = [self._number(value) for value in values if self.has(value)] or [0.0, 1.0]
        low, high = min(finite), max(finite)
        room = 0.05 * (high - low) or 0.5 * abs(high) or 1.0
        self.low, self.high = low - room, high + room

    def has(self, value: Number) -> bool:
        return math.isfinite(value) and (value > 0 or not self.axis.log)

    def _number(self, value: Number) -> float:
        return math.log10(value) if self.axis.log else float(value)

    def __call__(self, value: Number) -> float:
        share = (self._number(value) - self.low) / (self.high - self.low)
        return self.start + (self.end - self.start) * share

    def ticks(self) -> list[tuple[float, str]]:
        """Values with their labels."""
        if self.axis.places:
            return [(float(place), name) for place, name in enumerate(self.axis.places)]
        if not self.axis.log:
            return [(value, f"{value:g}") for value in ticks(self.low, self.high)]
        factors = (1, 2, 5) if self.high - self.low < 2 else (1,)
        powers = range(math.floor(self.low), math.ceil(self.high) + 1)
        step = max(1, len(powers) // 8)
        values = [factor * 10.0**power for power in powers[::step] for factor in factors]
        return [(v, f"{v:g}") for v in values if self.low <= math.log10(v) <= self.high]


def _frame(across: _Scale, up: _Scale, bottom: Number) -> list[str]:
    parts = []
    for value, label in up.ticks():
        y = up(value)
        parts.append(f'<path d="M{LEFT:g} {y:.1f}h{WIDE:g}" stroke="{GRID}"/>')
        parts.append(svg_text(LEFT - 8, y + 4, label, anchor="end", size=12.0, fill=QUIET))
    labels, right = across.ticks(), -math.inf
    for value, label in labels:
        x, half = across(value), 0.43 * COLUMN_WIDTH * len(label)
        if x - half > right:  # labels that would overlap are left out
            parts.append(svg_text(x, bottom + 18, label, anchor="middle", size=12.0, fill=QUIET))
            right = x + half + 4
    return [*parts, f'<path d="M{LEFT:g} {bottom:g}h{WIDE:g}" stroke="{INK}"/>']


def _axis_names(x: str, y: str) -> list[str]:
    middle, centre = TOP + TALL / 2, LEFT + WIDE / 2
    return [
        svg_text(
            centre, TOP + TALL + 40, x, anchor="middle", size=12.0, fill=QUIET, longest=LONGEST
        ),
        svg_text(20, middle, y, anchor="middle", size=12.0, fill=QUIET, turned=-90, longest=40),
    ]


def _style(number: int) -> tuple[str, str]:
    dash = DASHES[number // len(COLOURS) % len(DASHES)]
    colour = COLOURS[number % len(COLOURS)]
    return f'stroke-width="2" stroke-dasharray="{dash}"' if dash else 'stroke-width="2"', colour


def _line(one: Series, number: int, across: _Scale, up: _Scale) -> list[str]:
    dash, colour = _style(number)
    parts, points = list[str](), list[str]()
    for i, (x, y) in enumerate(zip(one.x, one.y, strict=True)):
        if not (across.has(x) and up.has(y)):
            continue
        points.append(f"{across(x):.1f},{up(y):.1f}")
        if one.low and one.high and up.has(one.low[i]) and up.has(one.high[i]):
            bar = f"M{across(x):.1f} {up(one.low[i]):.1f}V{up(one.high[i]):.1f}"
            parts.append(f'<path d="{bar}" stroke="{colour}" stroke-opacity="0.45"/>')
        parts.append(f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="2.5" fill="{colour}"/>')
    line = f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" {dash}/>'
    return [*parts, line] if points else []


def _describe(series: Sequence[Series]) -> str:
    return "; ".join(
        f"{one.name}: {one.y[0]:.3g} at {one.x[0]:g}, {one.y[-1]:.3g} at {one.x[-1]:g}"
        for one in series
        if len(one.y)
    )
