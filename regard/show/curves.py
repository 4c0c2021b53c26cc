"""Learning curves as SVG, with confidence bands."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from regard.show.colours import INK, QUIET
from regard.show.svg_frame import COLUMN_WIDTH, svg_document, svg_text
from regard.show.text_width import display_width
from regard.verified_files import parse_json

LINES, BAND = ("#1f5fbf", "#b3541e"), "#c6d8f2"
"""Colours of the first and the second curve of a panel, and of the interval around one."""
PER_UNIT = {"share": 100, "f1": 100}
"""Factors of units in which people write other numbers than records have."""
DASHES = ("", ' stroke-dasharray="7 4"')
WIDE, TALL, LEFT, TOP, GAP = 560.0, 200.0, 84.0, 80.0, 76.0


@dataclass(frozen=True)
class Curve:
    """Values by step, with an optional interval around each."""

    name: str
    steps: Sequence[float]
    values: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


@dataclass(frozen=True)
class Panel:
    """Curves that share their axes, and single points beside them."""

    name: str
    """What the vertical axis shows."""
    curves: Sequence[Curve]
    marks: Sequence[Curve] = ()
    """Drawn as diamonds that no line joins."""


def read_curves(lines: Iterable[str]) -> list[Panel]:
    """The curves in lines of metrics: both losses, and the main metric with its interval.

    The average of several checkpoints is a mark if it was kept; one that was not kept is left out.
    So are lines that are not those of metrics.

    >>> metric = '"main": "f1", "metrics": {"f1": {"name": "F1", "value": 3}}'
    >>> panels = read_curves(['{"step": 5, "loss": 2.5, "validation_loss": 2.75, %s}' % metric])
    >>> [(panel.name, [(c.name, *c.values) for c in panel.curves]) for panel in panels]
    [('loss', [('training', 2.5), ('validation', 2.75)]), ('F1', [('F1', 3.0)])]
    """
    measured = [record for line in lines if (record := _metrics_record(line)) is not None]
    validations = [record for record in measured if "loss" in record]
    if not validations:
        return []
    steps = [float(record["step"]) for record in validations]
    losses = [
        Curve(name, steps, [_number(record.get(key)) for record in validations])
        for name, key in (("training", "loss"), ("validation", "validation_loss"))
        if any(record.get(key) is not None for record in validations)
    ]
    main = validations[0]["main"]
    last = validations[-1]["metrics"].get(main, {})
    label = str(last.get("name") or main.replace("_", " "))
    label += " (%)" if last.get("unit") == "share" else ""
    averages = [record for record in measured if "averaged" in record and record.get("kept")]
    marks = [
        _metric_curve(f"average of {len(record['averaged'])} checkpoints", [record], main)
        for record in averages
    ]
    return [Panel("loss", losses), Panel(label, [_metric_curve(label, validations, main)], marks)]


def _metric_curve(name: str, records: Sequence[Mapping[str, Any]], metric: str) -> Curve:
    """A metric of some records, with its interval."""
    measured = [record["metrics"].get(metric, {}) for record in records]
    values, low, high = (
        [PER_UNIT.get(str(values.get("unit")), 1) * _number(values.get(key)) for values in measured]
        for key in ("value", "low", "high")
    )
    return Curve(name, [float(record["step"]) for record in records], values, low, high)


def curves_svg(panels: Sequence[Panel], title: str = "Learning curves") -> str:
    """Learning curves as SVG, one panel below the other, on the same steps."""
    curves = [curve for panel in panels for curve in (*panel.curves, *panel.marks)]
    steps = [step for curve in curves for step in curve.steps]
    across = (0.0, float(max(steps, default=1)) or 1.0)
    parts = []
    for number, panel in enumerate(panels):
        parts += _panel(panel, across, TOP + number * (TALL + GAP))
    last = "; ".join(
        f"{panel.name}{f', {curve.name}' if curve.name != panel.name else ''}: {_last(curve)}"
        for panel in panels
        for curve in (*panel.curves, *panel.marks)
        if curve.values
    )
    return svg_document(LEFT + WIDE + 28, TOP + len(panels) * (TALL + GAP), title, parts, last)


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round numbers from low to high.

    >>> ticks(0.0, 1.0), ticks(3.0, 62.0)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [10.0, 20.0, 30.0, 40.0, 50.0, 60.0])
    """
    rough = (high - low) / count
    if not (math.isfinite(rough) and rough > 0):
        return [low]
    unit = 10.0 ** math.floor(math.log10(rough))
    step = min((unit * m for m in (1, 2, 5, 10)), key=lambda size: abs(size - rough))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{number * step:.12g}") for number in range(first, last + 1)]


def _panel(panel: Panel, across: tuple[float, float], top: float) -> list[str]:
    """Curves in their frame: grid, bands, lines, points, marks."""
    drawn = [*panel.curves, *panel.marks]
    bounds = [
        v
        for curve in drawn
        for vs in (curve.values, curve.low, curve.high)
        for v in vs
        if math.isfinite(v)
    ] or [0.0]
    low, high = min(bounds), max(bounds)
    # a little room above and below, also where all values are equal
    room = 0.06 * (high - low) or 0.5 * abs(high) or 1.0
    low, high = low - room, high + room

    def place(step: float, value: float) -> tuple[float, float]:
        x = LEFT + WIDE * (step - across[0]) / (across[1] - across[0])
        return x, top + TALL * (high - value) / (high - low)

    parts = _axes(panel, across, (low, high), top)
    for curve in drawn:
        parts += _band(curve, place)
    for number, curve in enumerate(panel.curves):
        parts += _line(curve, place, number % len(LINES))
    for curve in panel.marks:
        for step, value in zip(curve.steps, curve.values, strict=True):
            if math.isfinite(value):
                x, y = place(step, value)
                parts.append(f'<path d="M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z" fill="{LINES[1]}"/>')
    return parts


def _axes(
    panel: Panel, across: tuple[float, float], up: tuple[float, float], top: float
) -> list[str]:
    """The grid, the numbers and the names of both axes, and which curve is which."""
    low, high = up
    name = panel.name[:1].upper() + panel.name[1:]
    parts = [svg_text(LEFT, top - 12, name, size=13.0, weight=600), *_legend(panel, top)]
    for value in ticks(low, high):
        y = top + TALL * (high - value) / (high - low)
        parts.append(f'<path d="M{LEFT:.1f} {y:.1f}h{WIDE:g}" stroke="#e3e6ec"/>')
        label = f"{value:g}"
        parts.append(svg_text(LEFT - 8, y + 4, label, anchor="end", size=12.0, fill=QUIET))
    for step in ticks(*across):
        x = LEFT + WIDE * (step - across[0]) / (across[1] - across[0])
        label = f"{step:g}" if step < 1e6 else f"{step / 1e6:g}M"
        parts.append(svg_text(x, top + TALL + 18, label, anchor="middle", size=12.0, fill=QUIET))
    parts.append(f'<path d="M{LEFT:g} {top + TALL:g}h{WIDE:g}" stroke="{INK}"/>')
    centre, middle = LEFT + WIDE / 2, top + TALL / 2
    parts.append(svg_text(centre, top + TALL + 38, "step", anchor="middle", size=12.0, fill=QUIET))
    turned: dict[str, Any] = {"anchor": "middle", "size": 12.0, "fill": QUIET, "turned": -90}
    return [*parts, svg_text(20, middle, panel.name, **turned)]


def _legend(panel: Panel, top: float) -> list[str]:
    """The names of curves and marks in their colours, from right to left above the panel."""
    names = [
        (curve.name, LINES[number % len(LINES)])
        for number, curve in enumerate(panel.curves)
        if len(panel.curves) > 1
    ] + [(curve.name, LINES[1]) for curve in panel.marks]
    if any(curve.low for curve in panel.curves):
        names.insert(0, ("with its 95 % interval", QUIET))
    parts, right = [], LEFT + WIDE
    for name, colour in reversed(names):
        parts.append(svg_text(right, top - 12, name, anchor="end", size=12.0, fill=colour))
        right -= 0.75 * COLUMN_WIDTH * display_width(name) + 16
        if name in (mark.name for mark in panel.marks):
            parts.append(f'<path d="M{right:g} {top - 21:g}l5 5l-5 5l-5 -5z" fill="{colour}"/>')
            right -= 20
    return parts


Place = Callable[[float, float], tuple[float, float]]


def _band(curve: Curve, place: Place) -> list[str]:
    """The interval around a curve."""
    if not (curve.low and curve.high):
        return []
    parts = []
    for piece in _pieces(curve.values, curve.low, curve.high):
        up = [place(curve.steps[i], curve.high[i]) for i in piece]
        down = [place(curve.steps[i], curve.low[i]) for i in reversed(piece)]
        parts.append(
            f'<polygon points="{_points([*up, *down])}" fill="{BAND}" stroke="{BAND}" '
            f'stroke-width="2"/>'
        )
    return parts


def _line(curve: Curve, place: Place, number: int) -> list[str]:
    """A curve with its points, with gaps where values are not finite."""
    parts = []
    for piece in _pieces(curve.values):
        points = [place(curve.steps[i], curve.values[i]) for i in piece]
        parts.append(
            f'<polyline points="{_points(points)}" fill="none" stroke="{LINES[number]}" '
            f'stroke-width="2" stroke-linejoin="round"{DASHES[number]}/>'
        )
        if len(curve.steps) <= 60:
            for x, y in points:
                parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{LINES[number]}"/>')
    return parts


def _points(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _pieces(*columns: Sequence[float]) -> list[list[int]]:
    """Runs of indices where all columns are finite; anything else leaves a gap."""
    pieces: list[list[int]] = [[]]
    for i, values in enumerate(zip(*columns, strict=True)):
        if all(map(math.isfinite, values)):
            pieces[-1].append(i)
        elif pieces[-1]:
            pieces.append([])
    return [piece for piece in pieces if piece]


def _last(curve: Curve) -> str:
    return f"{curve.values[-1]:.4g} at step {curve.steps[-1]:g}"


def _metrics_record(line: str) -> dict[str, Any] | None:
    """The record in a line of metrics; None if the line is something else."""
    try:
        record = parse_json(line)
        name, metrics = record["main"], record["metrics"]
        usable = isinstance(name, str) and all(isinstance(m, dict) for m in metrics.values())
        usable = usable and isinstance(record.get("averaged", []), list)
        if usable and name in metrics and math.isfinite(record["step"]):
            return dict(record)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        pass
    return None


def _number(value: object) -> float:
    try:
        return float(value) if isinstance(value, int | float) else math.nan
    except OverflowError:
        return math.nan
