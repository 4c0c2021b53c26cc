"""Charts: values where they belong on both axes, and names that can be told apart."""

import math
import xml.etree.ElementTree as ElementTree

import pytest

from regard.show.charts import LEFT, TALL, TOP, WIDE, Axis, Bar, Series, interval_chart, line_chart

SVG = "{http://www.w3.org/2000/svg}"


def circles(root):
    return [(float(dot.get("cx")), float(dot.get("cy"))) for dot in root.iter(f"{SVG}circle")]


def texts(root):
    return [element.text for element in root.iter(f"{SVG}text")]


def test_points_lie_at_the_same_share_of_both_axes():
    """With 5 % of room on each side, equal steps of the values are equal steps in pixels."""
    line = Series("a", [0, 5, 10], [1.0, 2.0, 3.0])
    root = ElementTree.fromstring(line_chart("t", [line], Axis("x"), Axis("y")))
    (x0, y0), (x1, y1), (x2, y2) = circles(root)
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.11)
    assert y0 - y1 == pytest.approx(y1 - y2, abs=0.11)
    assert (x2 - x0) / WIDE == pytest.approx(1 / 1.1, abs=1e-3)
    assert (y0 - y2) / TALL == pytest.approx(1 / 1.1, abs=1e-3)
    assert LEFT < x0 < x2 < LEFT + WIDE
    assert TOP < y2 < y0 < TOP + TALL


def test_powers_are_equal_steps_on_a_logarithmic_axis_and_zero_has_no_place():
    line = Series("a", [1, 10, 100, 0], [1.0, 1.0, 1.0, 1.0])
    root = ElementTree.fromstring(line_chart("t", [line], Axis("x", log=True), Axis("y")))
    first, second, third = (x for x, _ in circles(root))
    assert second - first == pytest.approx(third - second, abs=0.11)


def test_a_value_that_is_not_known_leaves_its_row_empty():
    bars = [Bar("a", 1.0, 0.5, 1.5), Bar("b", math.nan, math.nan, math.nan)]
    root = ElementTree.fromstring(interval_chart("t", bars, "share"))
    assert len(circles(root)) == 1
    assert {"a", "b"} <= {*texts(root)}


def test_long_names_that_differ_at_their_end_can_be_told_apart():
    names = [f"encoder recurrent, attention scaled_dot, pooling {end}" for end in ("sum", "self")]
    across = "accuracy (%), higher is better"
    rows = ElementTree.fromstring(interval_chart("t", [Bar(n, 1, 0, 2) for n in names], across))
    assert {*names, across} <= {*texts(rows)}
    lines = [Series(name, [0, 1], [0, 1]) for name in names]
    drawn = ElementTree.fromstring(line_chart("t", lines, Axis(across), Axis("y")))
    assert {*names, across} <= {*texts(drawn)}
    legend = max(float(e.get("x")) for e in drawn.iter(f"{SVG}text") if e.text in names)
    assert float(drawn.get("width")) > legend + 6 * len(names[0])  # the picture is wide enough
