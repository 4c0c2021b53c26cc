"""The first minute: a live example, a path, cards; presenting, sharing, and the HTTP interface."""

from collections.abc import Iterator
from typing import Any

import pytest

from regard.serve import Server
from regard.serve.api import measurements

LAST_DARK_PIXEL = """canvas => {
    const { width, height } = canvas;
    const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
    const dark = i => data[4 * i] < 40 && data[4 * i + 1] < 80 && data[4 * i + 2] > 80;
    let i = width * height - 1;
    while (!(dark(i) && dark(i - 3) && dark(i - 3 * width))) i--;
    return [(i % width - 1) / width, (Math.floor(i / width) - 1) / height];
}"""


@pytest.fixture(scope="module")
def examples() -> Iterator[Any]:
    """A server with two of the runs that come with the package."""
    with Server(["example:translation", "example:sentiment"]) as server:
        yield server


def shade(page: Any, word: str) -> str:
    found = page.locator(".rg-live-word", has_text=word).first
    return str(found.evaluate("node => getComputedStyle(node).backgroundColor"))


def test_home_begins_with_words_that_light_up(app, examples):
    window = app(examples.url, bypass_csp=True, reduced_motion="reduce", color_scheme="light")
    page = window.open("").page
    page.locator(".rg-live-word", has_text="chat").hover()
    assert "For ‘chat’ the model looked most at ‘cat’" in page.locator("main").inner_text()
    lit, unlit = shade(page, "cat"), shade(page, "table")
    page.locator(".rg-live-word", has_text="table").first.hover()  # of the source
    assert "‘table’ was looked at most for ‘table’" in page.locator("main").inner_text()
    assert shade(page, "chat") != lit
    assert unlit != lit
    assert page.locator(".rg-path a").evaluate_all("all => all.map(one => one.pathname)") == [
        "/translation",
        "/sentiment",
        "/steps",
    ]
    card = page.locator(".rg-card.model").nth(1).inner_text()
    for words in ("classify", "accuracy", "data: built-in", "20"):
        assert words in card
    assert not window.findings()
    page.get_by_role("button", name="Model card of sentiment").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("70,178").wait_for()
    assert "regard predict example:sentiment" in dialog.inner_text()
    assert not window.findings()
    dialog.get_by_role("button", name="Close").click()
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Switch between light and dark").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    assert not window.findings()
    for width, height in ((1280, 720), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        assert not window.sideways()
    page.reload()
    window.ready()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_a_screen_is_presented_shared_and_shown_in_words(app, examples):
    options = {"viewport": {"width": 1280, "height": 720}, "bypass_csp": True}
    window = app(examples.url, permissions=["clipboard-read", "clipboard-write"], **options)
    text = "The unbelievable 🦊 sleeps ."
    page = window.open("translation", text=text, shape="table", specials="hide").page
    heads = page.locator("regard-table thead th").all_inner_texts()
    assert heads.count("🦊") == 1  # four bytes, one column
    assert "unbelievable" not in heads
    page.get_by_label("Units").select_option("words")
    page.locator("regard-table thead th", has_text="unbelievable").wait_for()
    cells = page.locator("regard-table tbody tr").first.locator("td").all_inner_texts()
    assert sum(float(cell.replace("<", "")) for cell in cells) == pytest.approx(1, abs=0.06)
    window.open("translation", text="The black cat sleeps under the table .")
    window.press("p")
    assert not page.get_by_role("navigation").is_visible()
    matrix = page.locator("regard-matrix canvas").bounding_box()
    assert matrix["y"] + matrix["height"] <= 720
    assert not window.sideways()
    assert not window.findings()
    # the pointer finds its cell although the page is zoomed: a dark one has a large weight
    x, y = page.eval_on_selector("regard-matrix canvas", LAST_DARK_PIXEL)
    page.mouse.click(matrix["x"] + x * matrix["width"], matrix["y"] + y * matrix["height"])
    page.wait_for_timeout(100)
    assert float(window.status().rpartition(", ")[2]) > 0.5
    assert window.state()["view"] == "present"
    window.press("Escape")
    assert page.get_by_role("navigation").is_visible()
    page.get_by_label("Share", exact=True).click()
    page.get_by_role("button", name="Copy link").click()
    page.wait_for_timeout(100)
    link = page.evaluate("navigator.clipboard.readText()")
    assert link.startswith(f"{examples.url}/translation?text=The+black+cat")
    assert "view=" not in link
    page.get_by_label("Share", exact=True).click()
    page.get_by_role("button", name="Embed…").click()
    assert "view=embed" in page.get_by_role("dialog").inner_text()
    assert "--allow-embedding" in page.get_by_role("dialog").inner_text()
    assert not window.findings()


def test_the_http_interface_can_be_tried(app, examples):
    window = app(examples.url, bypass_csp=True)
    page = window.page
    page.goto(f"{examples.url}/docs")
    page.wait_for_selector("body[data-ready]")
    page.locator(".rg-operation summary", has_text="/v1/models/sentiment/predict").click()
    page.get_by_role("button", name="Try it: POST /v1/models/sentiment/predict").click()
    page.get_by_label("Response", exact=True).get_by_text("positive").wait_for()
    opened = page.locator(".rg-operation[open]").inner_text()
    assert f"curl {examples.url}/v1/models/sentiment/predict" in opened
    assert "urlopen(request)" in opened
    assert not window.findings()
    page.get_by_role("textbox").fill('{"inputs": 3}')
    window.expected.append("422")
    page.get_by_role("button", name="Try it: POST /v1/models/sentiment/predict").click()
    alert = page.get_by_role("alert")
    alert.wait_for()
    assert "/inputs" not in alert.inner_text()
    page.get_by_role("link", name="Back to the app").click()
    page.wait_for_selector("rg-screen-home")


def test_the_server_measures_when_asked(app, examples, monkeypatch):
    monkeypatch.setattr(measurements, "MAX_TEXTS", 10)
    page = app(examples.url).open("trust", model="sentiment").page
    page.get_by_role("button", name="Measure now").click()
    page.locator("rg-measure-now progress").wait_for()
    page.wait_for_selector(".rg-intervals")
    assert "10 texts" in page.locator("main").inner_text()
    assert page.locator(".rg-verdict-line").inner_text()
