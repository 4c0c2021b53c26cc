"""Learning curves: points where they belong, gaps where nothing was measured."""

import json
import math
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.show.curves import LEFT, WIDE, Curve, draw, read, ticks

SVG = "{http://www.w3.org/2000/svg}"


def lines(values, low=0.5, high=0.5):
    return [
        json.dumps(
            {
                "step": 10 * (i + 1),
                "loss": 4.0 / (i + 1),
                "main": "f1",
                "metrics": {"f1": {"value": v, "low": v - low, "high": v + high}},
            }
        )
        for i, v in enumerate(values)
    ]


def points(element):
    return [tuple(map(float, pair.split(","))) for pair in element.get("points").split()]


def test_points_lie_at_their_steps_and_higher_values_higher():
    root = ElementTree.fromstring(draw(read(lines([10.0, 30.0, 20.0]))))
    loss, metric = (points(line) for line in root.iter(f"{SVG}polyline"))
    expected = [LEFT + WIDE * step / 30 for step in (10, 20, 30)]
    for curve in (loss, metric):
        assert [x for x, _ in curve] == pytest.approx(expected, abs=0.06)
    assert metric[1][1] < metric[2][1] < metric[0][1]
    assert metric[0][1] - metric[2][1] == pytest.approx(metric[2][1] - metric[1][1], abs=0.2)
    assert loss[0][1] < loss[1][1] < loss[2][1]


def test_the_band_goes_around_the_line():
    root = ElementTree.fromstring(draw(read(lines([10.0, 30.0, 20.0], low=2.0, high=4.0))))
    (band,) = root.iter(f"{SVG}polygon")
    *_, line = root.iter(f"{SVG}polyline")
    up, down = points(band)[:3], points(band)[:2:-1]
    for middle, above, below in zip(points(line), up, down, strict=True):
        assert above[0] == middle[0] == below[0]
        assert middle[1] - above[1] == pytest.approx(2 * (below[1] - middle[1]), abs=0.3)


def test_what_is_not_finite_leaves_a_gap():
    values = [1.0, 2.0, math.nan, 3.0, math.inf]
    root = ElementTree.fromstring(draw([Curve("f1", [1.0, 2.0, 3.0, 4.0, 5.0], values)]))
    assert [len(points(line)) for line in root.iter(f"{SVG}polyline")] == [2, 1]
    assert "nan" not in "".join(line.get("points") for line in root.iter(f"{SVG}polyline"))


def test_averages_at_the_end_and_empty_files_are_no_points():
    end = json.dumps({"averaged": ["a"], "step": 30, "main": "f1", "metrics": {}})
    assert [len(curve.values) for curve in read([*lines([1.0, 2.0]), end, ""])] == [2, 2]
    assert read([]) == []
    ElementTree.fromstring(draw([]))


numbers = st.floats(-1e9, 1e9) | st.sampled_from([math.nan, math.inf, 0.0])


@given(st.lists(st.tuples(st.integers(0, 10**9), numbers), max_size=9))
def test_whatever_was_measured_it_is_a_picture(measured):
    steps, values = [float(s) for s, _ in measured], [v for _, v in measured]
    text = draw([Curve("<x> & y", steps, values, values, values)])
    root = ElementTree.fromstring(text)
    for line in root.iter(f"{SVG}polyline"):
        assert all(math.isfinite(x) and math.isfinite(y) for x, y in points(line))


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_round_and_within(low, size):
    found = ticks(low, low + size)
    assert 2 <= len(found) <= 9
    assert all(low - 1e-6 * size <= tick <= low + size * (1 + 1e-6) for tick in found)
