"""Learning curves: points where they belong, gaps where nothing was measured."""

import json
import math
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.show.curves import LEFT, WIDE, Curve, Panel, curves_svg, read_curves, ticks

SVG = "{http://www.w3.org/2000/svg}"


def lines(values, low=0.5, high=0.5):
    return [
        json.dumps(
            {
                "step": 10 * (i + 1),
                "loss": 4.0 / (i + 1),
                "validation_loss": 5.0 / (i + 1),
                "main": "f1",
                "metrics": {"f1": {"name": "F1", "value": v, "low": v - low, "high": v + high}},
            }
        )
        for i, v in enumerate(values)
    ]


def points(element):
    return [tuple(map(float, pair.split(","))) for pair in element.get("points").split()]


def test_points_lie_at_their_steps_and_higher_values_higher():
    root = ElementTree.fromstring(curves_svg(read_curves(lines([10.0, 30.0, 20.0]))))
    loss, validation, metric = (points(line) for line in root.iter(f"{SVG}polyline"))
    expected = [LEFT + WIDE * step / 30 for step in (10, 20, 30)]
    for curve in (loss, validation, metric):
        assert [x for x, _ in curve] == pytest.approx(expected, abs=0.06)
    assert metric[1][1] < metric[2][1] < metric[0][1]
    assert metric[0][1] - metric[2][1] == pytest.approx(metric[2][1] - metric[1][1], abs=0.2)
    assert loss[0][1] < loss[1][1] < loss[2][1]
    assert [y for _, y in validation] < [y for _, y in loss], "the larger loss is drawn higher"


def test_axes_and_curves_have_the_names_that_people_use():
    words = {x.text for x in ElementTree.fromstring(curves_svg(read_curves(lines([1.0])))).iter()}
    assert {"training", "validation", "loss", "step", "F1"} <= words
    assert "f1" not in words


def test_the_band_goes_around_the_line():
    root = ElementTree.fromstring(
        curves_svg(read_curves(lines([10.0, 30.0, 20.0], low=2.0, high=4.0)))
    )
    (band,) = root.iter(f"{SVG}polygon")
    *_, line = root.iter(f"{SVG}polyline")
    up, down = points(band)[:3], points(band)[:2:-1]
    for middle, above, below in zip(points(line), up, down, strict=True):
        assert above[0] == middle[0] == below[0]
        assert middle[1] - above[1] == pytest.approx(2 * (below[1] - middle[1]), abs=0.3)


def test_what_is_not_finite_leaves_a_gap():
    values = [1.0, 2.0, math.nan, 3.0, math.inf]
    root = ElementTree.fromstring(
        curves_svg([Panel("f1", [Curve("f1", [1.0, 2.0, 3.0, 4.0, 5.0], values)])])
    )
    assert [len(points(line)) for line in root.iter(f"{SVG}polyline")] == [2, 1]
    assert "nan" not in "".join(line.get("points") for line in root.iter(f"{SVG}polyline"))


@pytest.mark.parametrize("kept", [False, True])
def test_an_average_is_a_mark_if_it_was_kept_and_no_point_of_the_curve(kept):
    metrics = {"f1": {"name": "F1", "value": 5.0, "low": 4.0, "high": 6.0}}
    average = {"averaged": ["a", "b"], "kept": kept, "step": 20, "main": "f1", "metrics": metrics}
    panels = read_curves([*lines([1.0, 2.0]), json.dumps(average), ""])
    assert [len(curve.values) for panel in panels for curve in panel.curves] == [2, 2, 2]
    assert [mark.name for mark in panels[1].marks] == ["average of 2 checkpoints"] * kept
    assert ("average of 2 checkpoints" in curves_svg(panels)) == kept


def test_an_empty_file_is_an_empty_picture():
    assert read_curves([]) == []
    ElementTree.fromstring(curves_svg([]))


numbers = st.floats(-1e9, 1e9) | st.sampled_from([math.nan, math.inf, 0.0])


@given(st.lists(st.tuples(st.integers(0, 10**9), numbers), max_size=9))
def test_whatever_was_measured_it_is_a_picture(measured):
    steps, values = [float(s) for s, _ in measured], [v for _, v in measured]
    text = curves_svg([Panel("<x> & y", [Curve("<x> & y", steps, values, values, values)])])
    root = ElementTree.fromstring(text)
    for line in root.iter(f"{SVG}polyline"):
        assert all(math.isfinite(x) and math.isfinite(y) for x, y in points(line))


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_round_and_within(low, size):
    high = low + size
    marks = ticks(low, high)
    assert 2 <= len(marks) <= 9
    assert all(low - 1e-6 * size <= mark <= high + 1e-6 * size for mark in marks)
    # Round: all are multiples of 1, 2 or 5 times a power of ten, which is also the step between
    # neighbours, and no multiple between low and high is left out.
    steps = [m * 10.0**power for power in range(-5, 7) for m in (1, 2, 5)]
    step = min(steps, key=lambda one: abs(one - (marks[1] - marks[0])))
    numbers = [round(mark / step) for mark in marks]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    for mark, number in zip(marks, numbers, strict=True):
        assert mark == pytest.approx(number * step, rel=1e-11, abs=1e-9 * step)
    assert marks[0] - step < low + 1e-6 * size
    assert marks[-1] + step > high - 1e-6 * size


def test_a_value_without_an_interval_is_on_the_line_but_not_in_the_band():
    values, steps = [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]
    low, high = [math.nan, 1.5, 2.5, 3.5], [math.nan, 2.5, 3.5, 4.5]
    root = ElementTree.fromstring(
        curves_svg([Panel("f1", [Curve("f1", steps, values, low, high)])])
    )
    assert [len(points(line)) for line in root.iter(f"{SVG}polyline")] == [4]
    assert [len(points(band)) for band in root.iter(f"{SVG}polygon")] == [6]
