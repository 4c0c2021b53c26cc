"""The compare screen: two looks on one scale, and their difference."""

import json
from itertools import groupby
from xml.etree import ElementTree

import numpy as np

from tests.browser.screens import STATES, TEXT


def merge_bytes(rows, tokens):
    """The mean row of the bytes of each character, which have its place in the text."""
    places = [(token.get("start"), token.get("end")) for token in tokens]
    groups = [list(group) for _, group in groupby(range(len(rows)), places.__getitem__)]
    return np.array([rows[group].mean(axis=0) for group in groups])


def test_compare_draws_the_difference_on_its_own_scale(app, ask_trace):
    window = app().open("compare", **STATES["compare"], specials="show")
    page = window.page
    assert window.colours(".rg-half[aria-label=First] canvas") > 10
    assert window.colours(".rg-half[aria-label=Second] canvas") > 10
    assert window.colours("rg-difference canvas") > 10
    first = ask_trace("pairs", TEXT)
    first = ask_trace("pairs", TEXT, target=first["output"])
    other = ask_trace("stack", TEXT, target=first["output"])
    matrix = np.array(next(look["weights"] for look in first["looks"] if look["name"] == "source"))
    last = max(look["layer"] for look in other["looks"] if look["name"] == "decoder.source")
    heads = [
        look["weights"]
        for look in other["looks"]
        if look["name"] == "decoder.source" and look["layer"] == last
    ]
    gap = merge_bytes(matrix - np.mean(heads, axis=0), first["sides"]["target"]["tokens"])
    page.locator("rg-difference .matrix-scroller").focus()
    window.press("Control+Home")
    assert window.status().endswith(f"difference {gap[0, 0]:+.2f}".replace("-", "−")) or (
        abs(gap[0, 0]) < 0.005
    )
    key = page.locator(".rg-difference-key").get_attribute("aria-label")
    assert f"{np.abs(gap).max():.2f}" in key
    page.locator(".rg-gaps button").first.click()
    row, column = (int(window.state()[name]) for name in ("row", "column"))
    assert abs(abs(gap[row, column]) - np.abs(gap).max()) < 1e-3
    window.press("t")
    line = page.locator(".rg-table tbody tr").first.locator("td").all_inner_texts()
    a, b, difference = (float(cell.replace("−", "-").replace("<", "")) for cell in line[1:])
    assert abs(a - b - difference) < 0.02


def test_both_signs_are_equally_light(app):
    """Contrast with white of the two hues, level by level."""
    window = app().open("compare", **STATES["compare"])
    gaps = window.page.evaluate(
        """async () => {
          const { palette } = await import("/page/colours.js");
          const light = css => {
            const part = css.match(/\\d+/g).map(n => n / 255).map(
              n => n <= 0.04045 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4);
            return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
          };
          return palette().css.map((css, i) => Math.abs(light(css) - light(palette(true).css[i])));
        }"""
    )
    assert max(gaps) < 0.12


def test_compare_two_heads_of_one_model(app):
    window = app().open("compare", model="stack", other="stack", text=TEXT)
    page = window.page
    assert page.get_by_label("Layer of A").input_value() == "1"
    assert page.get_by_label("Layer of B").input_value() == "0"
    page.get_by_label("Attention of A").select_option("encoder.self")
    window.ready()
    assert page.get_by_label("Attention of B").input_value() == "encoder.self"
    assert window.colours("rg-difference canvas") > 10
    page.get_by_label("Attention of B").select_option("decoder.source")
    page.wait_for_selector("text=have different words")


def test_all_three_maps_are_one_picture(app, tmp_path):
    window = app(color_scheme="dark").open("compare", **STATES["compare"])
    picture = ElementTree.parse(window.save("SVG", tmp_path)).getroot()
    names = [node.text for node in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {"A: pairs", "B: stack", "A − B", "A minus B", "each row sums to 0"} <= set(names)
    maps = picture.findall("{http://www.w3.org/2000/svg}svg")
    assert len(maps) == 3
    places = [float(one.get("x")) for one in maps]
    widths = [float(one.get("width")) for one in maps]
    assert all(x + w < y for x, w, y in zip(places, widths, places[1:], strict=False))
    both = json.loads(window.save("JSON", tmp_path).read_bytes())
    assert [both[name]["card"]["name"] for name in "ab"] == ["pairs", "stack"]
    table = window.save("CSV", tmp_path).read_text("utf-8").splitlines()
    assert table[0] == "query,key,A,B,A - B"
    assert len(table) > 4


def test_compare_opens_with_two_models_that_attend(app):
    """A model without attention is compared by its output, and can always be exchanged."""
    window = app().open("compare", text=TEXT)
    page = window.page
    first, second = page.get_by_label("Model of A"), page.get_by_label("Model of B")
    assert (first.input_value(), second.input_value()) == ("pairs", "stack")
    second.select_option("plain")
    window.ready()
    assert page.locator(".rg-no-attention:visible").inner_text() == "B has no attention."
    assert page.locator(".rg-its-answer:visible").count() == 2
    assert window.colours(".rg-half[aria-label=First] canvas") > 10
    assert not page.locator(".rg-third").is_visible()
    window.press("t")
    window.ready()
    assert page.locator(".rg-table tbody tr").count() == 2
    window.open("compare", model="plain", other="pairs", text="")
    assert "Type a text above" in page.locator("main").inner_text()
    assert page.get_by_label("Model of A").is_visible()
    assert page.get_by_role("alert").count() == 0
    first.select_option("views")
    window.ready()
    assert second.input_value() == "asking"
