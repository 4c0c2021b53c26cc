"""Learning curves: what was measured as training went on, with the band of its uncertainty."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from regard.show.colours import INK, QUIET
from regard.show.drawing import frame, text

LINE, BAND = "#1f5fbf", "#c6d8f2"
WIDE, TALL, LEFT, TOP, GAP = 560.0, 200.0, 64.0, 80.0, 76.0


@dataclass(frozen=True)
class Curve:
    """Values by step, and perhaps an interval around each."""

    name: str
    steps: Sequence[float]
    values: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


def read(lines: Iterable[str]) -> list[Curve]:
    """The curves in lines of metrics: the training loss, and the main metric with its interval.

    >>> line = '{"step": 5, "loss": 2.5, "main": "f1", "metrics": {"f1": {"value": 3}}}'
    >>> [(curve.name, *curve.values) for curve in read([line])]
    [('training loss', 2.5), ('f1', 3.0)]
    """
    found = [json.loads(line) for line in lines if line.strip()]
    looks = [one for one in found if "loss" in one and one.get("main") in one.get("metrics", {})]
    if not looks:
        return []
    name, steps = looks[0]["main"], [float(one["step"]) for one in looks]
    measured = [one["metrics"].get(name, {}) for one in looks]
    values, low, high = (
        [_number(one.get(key)) for one in measured] for key in ("value", "low", "high")
    )
    loss = [_number(one["loss"]) for one in looks]
    return [
        Curve("training loss", steps, loss),
        Curve(name.replace("_", " "), steps, values, low, high),
    ]


def draw(curves: Sequence[Curve], title: str = "Learning curves") -> str:
    """Curves as SVG, one panel below the other, on the same steps."""
    steps = [step for curve in curves for step in curve.steps]
    across = (0.0, float(max(steps, default=1)) or 1.0)
    parts = []
    for number, curve in enumerate(curves):
        parts += _panel(curve, across, TOP + number * (TALL + GAP))
    last = "; ".join(_last(curve) for curve in curves if curve.values)
    return frame(LEFT + WIDE + 28, TOP + len(curves) * (TALL + GAP), title, parts, last)


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers from low to high, about `count` of them.

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


def _panel(curve: Curve, across: tuple[float, float], top: float) -> list[str]:
    """One curve in its frame: grid, band, line, points."""
    bounds = [
        v for vs in (curve.values, curve.low, curve.high) for v in vs if math.isfinite(v)
    ] or [0.0]
    low, high = min(bounds), max(bounds)
    room = 0.06 * (high - low) or 0.5 * abs(high) or 1.0
    low, high = low - room, high + room

    def place(step: float, value: float) -> str:
        x = LEFT + WIDE * (step - across[0]) / (across[1] - across[0])
        return f"{x:.1f},{top + TALL * (high - value) / (high - low):.1f}"

    parts = [text(LEFT, top - 12, curve.name, size=13.0, weight=600)]
    if curve.low and curve.high:
        said = "with its confidence interval"
        parts.append(text(LEFT + WIDE, top - 12, said, anchor="end", size=12.0, fill=QUIET))
    for value in ticks(low, high):
        x, y = place(0.0, value).split(",")
        parts.append(f'<path d="M{x} {y}h{WIDE:g}" stroke="#e3e6ec"/>')
        parts.append(
            text(LEFT - 8, float(y) + 4, f"{value:g}", anchor="end", size=12.0, fill=QUIET)
        )
    for step in ticks(*across):
        x = place(step, low).split(",")[0]
        said = f"{step:g}" if step < 1e6 else f"{step / 1e6:g}M"
        parts.append(text(float(x), top + TALL + 18, said, anchor="middle", size=12.0, fill=QUIET))
    parts.append(f'<path d="M{LEFT:g} {top + TALL:g}h{WIDE:g}" stroke="{INK}"/>')
    parts.append(text(LEFT + WIDE, top + TALL + 36, "step", anchor="end", size=12.0, fill=QUIET))
    for piece in _pieces(curve):
        steps = [float(curve.steps[i]) for i in piece]
        if curve.low and curve.high:
            up = [place(s, curve.high[i]) for s, i in zip(steps, piece, strict=True)]
            down = [place(s, curve.low[i]) for s, i in zip(steps, piece, strict=True)]
            around = " ".join([*up, *reversed(down)])
            parts.append(
                f'<polygon points="{around}" fill="{BAND}" stroke="{BAND}" stroke-width="2"/>'
            )
        points = [place(s, curve.values[i]) for s, i in zip(steps, piece, strict=True)]
        parts.append(
            f'<polyline points="{" ".join(points)}" fill="none" stroke="{LINE}" '
            f'stroke-width="2" stroke-linejoin="round"/>'
        )
        if len(curve.steps) <= 60:
            for point in points:
                x, y = point.split(",")
                parts.append(f'<circle cx="{x}" cy="{y}" r="2.5" fill="{LINE}"/>')
    return parts


def _pieces(curve: Curve) -> list[list[int]]:
    """Runs of numbers that can be drawn; what is not finite leaves a gap."""
    pieces: list[list[int]] = [[]]
    banded = bool(curve.low) and bool(curve.high)
    for i, value in enumerate(curve.values):
        around = (curve.low[i], curve.high[i]) if banded else ()
        if all(map(math.isfinite, (value, *around))):
            pieces[-1].append(i)
        elif pieces[-1]:
            pieces.append([])
    return [piece for piece in pieces if piece]


def _last(curve: Curve) -> str:
    return f"{curve.name}: {curve.values[-1]:.4g} at step {curve.steps[-1]:g}"


def _number(found: object) -> float:
    return float(found) if isinstance(found, int | float) else math.nan
