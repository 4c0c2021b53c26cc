"""The page in a real browser: clicks, keys, pixels; nothing asked of anybody, nothing run but ours.

Needs Chromium at /usr/bin/chromium, the Python package playwright, and `npm ci` in this folder
(axe-core and typescript). Where one of them is missing the tests are skipped; under CI they fail.
"""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from regard.show import render_page, trace_from_looks
from regard.trace import Alternative, Attribution, Side, Token, Trace
from regard.trace.look import Look

HERE = Path(__file__).parent
AXE = HERE / "node_modules/axe-core/axe.min.js"
TSC = HERE / "node_modules/.bin/tsc"
HOSTILE = (
    "</script><script>window.broken=1</script>",
    "<img src=x onerror=window.broken=1>",
    "\u202egnirts",
    "x" * 10_000,
    "👩🏽‍🚀",
    "\n",
    "",
    "שלום",
    "\ud800",
)


def need(present: bool, what: str) -> None:
    if present:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} is missing, and under CI these tests must run")
    pytest.skip(f"{what} is missing")


def side(text: str, last: str = "") -> Side:
    tokens, place = [], 0
    for number, word in enumerate(text.split()):
        place = text.index(word, place)
        tokens.append(Token(word, place, place + len(word), word=number))
        place += len(word)
    if last:
        tokens.append(Token(last, len(text), len(text), special=True))
    return Side(text, tuple(tokens))


def translation() -> Trace:
    rng = np.random.default_rng(0)
    source, target = side("the black cat sleeps", "</s>"), side("le chat noir dort", "</s>")
    keys, queries = (tuple(t.text for t in s.tokens) for s in (source, target))
    looks = []
    for layer in range(2):
        for head in range(3):
            weights = rng.dirichlet(np.full(5, 0.5), 5)
            looks.append(Look(weights, keys, keys, "encoder.self", layer, head, "source", "source"))
    sharp = np.full((5, 5), 0.0475)
    sharp[[0, 1, 2, 3, 4], [0, 2, 1, 3, 4]] = 0.81
    looks.append(Look(sharp, queries, keys, "decoder.source", 0, 0, "target", "source"))
    return Trace(
        "translation",
        {"source": source, "target": target},
        tuple(looks),
        target.text,
        alternatives=tuple((Alternative(word, 0.7), Alternative("autre", 0.3)) for word in queries),
        attributions=(Attribution("gradient", "source", np.array([1.0, -0.5, 0.3, 0.0, 0.1])),),
        alignment=((0, 0), (2, 1), (1, 2), (3, 3)),
        card={"name": "tiny"},
    )


class Window:
    """A page of the browser that notes every error and every request."""

    def __init__(self, browser, folder: Path, trace: Trace, **options):
        self.context = browser.new_context(
            viewport={"width": 1200, "height": 800}, accept_downloads=True, **options
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(20_000)
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.errors.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        file = folder / "page.html"
        file.write_text(render_page(trace), encoding="utf-8")
        self.page.goto(file.as_uri())
        self.page.wait_for_selector("regard-viewer[data-ready]")

    def status(self) -> str:
        return self.page.locator("regard-status [role=status]").inner_text()

    def title(self) -> str:
        return self.page.locator("regard-viewer h1").inner_text()

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def tab(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()

    def colours(self, selector: str) -> int:
        return self.page.eval_on_selector(
            selector,
            """canvas => new Set(new Uint32Array(canvas.getContext('2d').getImageData(
                0, 0, canvas.width, canvas.height).data.buffer)).size""",
        )

    def quiet(self) -> None:
        outside = [url for url in self.requests if not url.startswith(("file:", "data:", "blob:"))]
        assert not outside
        assert not self.errors


@pytest.fixture
def opened(browser, tmp_path):
    windows = []

    def start(trace: Trace, **options) -> Window:
        windows.append(Window(browser, tmp_path, trace, **options))
        return windows[-1]

    yield start
    for window in windows:
        window.quiet()
        window.context.close()


def test_a_click_selects_a_cell_and_says_it(opened):
    window = opened(translation())
    assert window.title() == "Decoder attention to the source · layer 0 · head 0"
    canvas = window.page.locator("regard-matrix canvas")
    box = canvas.bounding_box()
    # the cell of row 1, column 2 is darkest in its row: find it by its colour
    spot = canvas.evaluate(
        """canvas => {
            const ratio = canvas.width / canvas.clientWidth, context = canvas.getContext('2d');
            const data = [...context.getImageData(0, 0, canvas.width, canvas.height).data];
            const dark = [];
            for (let y = 0; y < canvas.height; y++) for (let x = 0; x < canvas.width; x++) {
                const i = 4 * (y * canvas.width + x);
                const [red, green, blue] = data.slice(i, i + 3);
                if (red === 14 && green === 47 && blue === 102) dark.push([x / ratio, y / ratio]);
            }
            const xs = [...new Set(dark.map(p => Math.floor(p[0])))].sort((a, b) => a - b);
            return {count: dark.length, left: xs[0], right: xs[xs.length - 1],
                top: Math.min(...dark.map(p => p[1])), bottom: Math.max(...dark.map(p => p[1]))};
        }"""
    )
    assert spot["count"] > 1000
    cell = (spot["right"] + 1 - spot["left"]) / 5
    window.page.mouse.click(
        box["x"] + spot["left"] + 2.5 * cell, box["y"] + spot["top"] + 1.5 * cell
    )
    assert window.status() == "‘chat’ looks at ‘cat’, 0.81"
    assert window.page.locator("regard-row h2").first.inner_text() == "chat looks at"
    assert "autre" in window.page.locator("regard-row").inner_text()


def test_canvas_has_the_colours_of_the_weights(opened):
    window = opened(translation())
    assert window.colours("regard-matrix canvas") > 20
    window.page.wait_for_timeout(200)
    assert window.colours(".legend-bar") > 200


def test_keys_walk_switch_heads_and_open_the_table(opened):
    window = opened(translation())
    window.page.locator(".matrix-scroller").focus()
    window.press("Control+Home")
    assert window.status() == "‘le’ looks at ‘the’, 0.81"
    window.press("ArrowDown", "ArrowRight", "ArrowRight")
    assert window.status() == "‘chat’ looks at ‘cat’, 0.81"
    window.press("End")
    assert window.status() == "‘chat’ looks at ‘</s>’, 0.05"
    window.press("Control+End")
    assert window.status() == "‘</s>’ looks at ‘</s>’, 0.81"
    window.press("t")
    cells = window.page.locator("regard-table tbody td")
    assert cells.count() == 25
    assert cells.nth(0).inner_text() == "0.81"
    window.press("T")
    assert window.page.locator("regard-matrix").is_visible()
    window.press("?")
    assert window.page.locator("dialog").is_visible()
    window.press("Escape")
    assert not window.page.locator("dialog").is_visible()


def test_brackets_go_from_head_to_head(opened):
    window = opened(translation())
    window.page.get_by_label("Attention", exact=True).select_option("encoder.self")
    window.page.get_by_label("Layer", exact=True).select_option("0")
    window.page.get_by_label("Heads", exact=True).select_option("one")
    assert window.title() == "Encoder self-attention · layer 0 · head 0"
    window.press("]", "]", "]")
    assert window.title() == "Encoder self-attention · layer 1 · head 0"
    window.press("[")
    assert window.title() == "Encoder self-attention · layer 0 · head 2"
    window.page.wait_for_selector("regard-heads[data-drawn='6']")
    window.page.get_by_role("button", name="layer 1, head 1").click()
    assert window.title() == "Encoder self-attention · layer 1 · head 1"
    window.press("ArrowLeft", "Enter")
    assert window.title() == "Encoder self-attention · layer 1 · head 0"
    assert window.colours("regard-heads .head canvas") > 5


def test_passing_over_a_head_previews_it(opened):
    window = opened(translation())
    window.page.get_by_label("Attention", exact=True).select_option("encoder.self")
    before = window.title()
    window.page.get_by_role("button", name="layer 0, head 2").hover()
    assert window.title() == "Encoder self-attention · layer 0 · head 2"
    window.page.mouse.move(5, 5)
    assert window.title() == before


def shown_numbers(window) -> list[float]:
    window.tab("Table")
    cells = window.page.locator("regard-table tbody td").all_inner_texts()
    return [float(cell.replace("<", "")) for cell in cells]


def test_heads_come_together(opened):
    trace = translation()
    window = opened(trace)
    window.page.get_by_label("Attention", exact=True).select_option("encoder.self")
    window.page.get_by_label("Layer", exact=True).select_option("1")
    stack = np.stack([look.weights for look in trace.looks[3:6]])
    for name, expected in (("mean", stack.mean(axis=0)), ("max", stack.max(axis=0))):
        window.page.get_by_label("Heads", exact=True).select_option(name)
        assert np.abs(np.array(shown_numbers(window)) - expected.ravel()).max() < 0.0051
    words = window.page.locator("regard-legend").inner_text()
    assert "rows need not sum to 1" in words


def test_legend_says_range_and_sums(opened):
    window = opened(translation())
    words = window.page.locator("regard-legend").inner_text()
    assert "0.81" in words
    assert "each row sums to 1" in words
    assert "where the model looked" in window.page.locator("footer").inner_text()


def test_scale_threshold_and_specials_change_the_picture(opened):
    window = opened(translation())
    page = window.page
    before = page.locator("regard-matrix").screenshot()
    page.get_by_label("Scale", exact=True).select_option("log")
    logarithm = page.locator("regard-matrix").screenshot()
    assert logarithm != before
    page.get_by_label("scale each row").check()
    page.get_by_label("Hide below").fill("0.1")
    hidden = page.locator("regard-matrix").screenshot()
    assert hidden != logarithm
    page.get_by_label("hide special tokens").check()
    assert "including hidden tokens" in page.locator("regard-legend").inner_text()
    assert len(shown_numbers(window)) == 16


def test_links_text_and_matrix_share_one_selection(opened):
    window = opened(translation())
    window.tab("Links")
    assert window.page.locator("regard-links path").count() >= 5
    window.page.locator("regard-links text", has_text="noir").click()
    assert window.status() == "‘noir’ looks at ‘black’, 0.81"
    window.tab("Text")
    chosen = window.page.locator("regard-text [aria-selected=true]")
    assert chosen.inner_text() == "noir"
    shade = window.page.locator("regard-text .key-word", has_text="black").evaluate(
        "node => getComputedStyle(node).backgroundColor"
    )
    assert shade == "rgb(14, 47, 102)"
    assert window.page.locator("regard-strip .word").count() == 5
    window.page.locator("regard-text [role=listbox]").focus()
    window.press("ArrowRight")
    assert window.status() == "‘dort’ looks at ‘sleeps’, 0.81"


def test_links_by_key(opened):
    window = opened(translation())
    window.tab("Links")
    window.page.locator(".links-scroller").focus()
    window.press("ArrowDown")
    assert window.status().startswith("‘chat’ looks at")
    window.press("Tab")
    assert window.page.evaluate("document.activeElement !== document.body")


@pytest.mark.parametrize("kind", ["SVG", "PNG", "JSON"])
def test_exports(opened, kind):
    window = opened(translation())
    with window.page.expect_download() as waiting:
        window.page.get_by_role("button", name=f"Save as {kind}").click()
    data = Path(waiting.value.path()).read_bytes()
    assert waiting.value.suggested_filename == f"regard-decoder.source.{kind.lower()}"
    if kind == "JSON":
        assert Trace.from_json(data).looks[0].name == "encoder.self"
    elif kind == "SVG":
        assert b"<svg" in data
        assert "0.81" in data.decode()
    else:
        assert data.startswith(b"\x89PNG")


@pytest.mark.parametrize("shape", ["Matrix", "Links", "Text", "Table"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(opened, shape, scheme):
    need(AXE.exists(), "axe-core (npm ci in tests/browser)")
    window = opened(translation(), color_scheme=scheme, bypass_csp=True, reduced_motion="reduce")
    window.tab(shape)
    window.page.evaluate(AXE.read_text("utf-8"))
    found = window.page.evaluate("axe.run().then(result => result.violations)")
    assert not [(one["id"], [n["html"][:200] for n in one["nodes"]]) for one in found]


def test_hostile_words_change_nothing(opened):
    size = len(HOSTILE)
    weights = np.full((size, size), 0.02) + np.eye(size) * (1 - 0.02 * size)
    trace = trace_from_looks(
        Look(weights, HOSTILE, HOSTILE, "</script><b>", 0, 0, "__proto__", "__proto__")
    )
    window = opened(trace)
    for shape in ("Links", "Text", "Table", "Matrix"):
        window.tab(shape)
        window.page.wait_for_timeout(100)
    assert window.page.evaluate("window.broken") is None
    assert window.page.locator("img, b").count() == 0
    assert window.page.locator("script").count() == 2
    assert window.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert "\u202e" not in window.page.evaluate("document.body.innerText")
    window.page.locator(".matrix-scroller").focus()
    window.press("Control+Home")
    assert window.status().startswith("‘</script><script>")


def test_right_to_left_text(opened):
    words = ("החתול", "ישן", "על", "הכיסא")
    window = opened(
        trace_from_looks(Look(np.eye(4), words, words, query_side="text", key_side="text"))
    )
    window.tab("Text")
    listbox = window.page.locator("regard-text [role=listbox]")
    assert listbox.evaluate("node => getComputedStyle(node).direction") == "rtl"
    listbox.focus()
    window.press("Home", "ArrowLeft")
    assert window.status() == "‘ישן’ looks at ‘ישן’, 1.00"


SIZES = ((1440, 900), (1280, 720), (1080, 640), (1024, 768), (960, 640), (768, 900), (390, 844))
OVERLAPS = """() => {
  const boxes = [...document.querySelectorAll('.rail, .board, .side, .controls, .texts, .top')]
    .filter(node => node.checkVisibility())
    .map(node => [node.className, node.getBoundingClientRect()]);
  const found = [];
  for (const [i, [one, a]] of boxes.entries()) for (const [other, b] of boxes.slice(i + 1)) {
    const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (across > 1 && down > 1) found.push(one + ' over ' + other);
  }
  const [a, b] = ['regard-matrix', '.board'].map(s =>
    document.querySelector(s).getBoundingClientRect());
  if (a.bottom > b.bottom + 1) found.push('the matrix leaves its board');
  return found;
}"""
"""Parts of the viewer that are drawn over others."""


@pytest.mark.parametrize("look", ["decoder.source", "encoder.self"])
def test_nothing_overlaps_at_any_width(opened, look):
    window = opened(translation())
    page = window.page
    page.get_by_label("Attention", exact=True).select_option(look)
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(120)
        assert page.evaluate(OVERLAPS) == [], (width, height)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        side = 24 if width < 400 else 30
        cell = page.locator(".matrix-filler").bounding_box()["height"] / 7
        assert cell > side, (width, height)
        status = page.locator("regard-status span").first
        assert status.evaluate("node => node.scrollWidth <= node.clientWidth"), (width, height)
    assert window.colours("regard-matrix canvas") > 20


def test_a_long_matrix_zooms(opened):
    rng = np.random.default_rng(0)
    words = tuple(f"w{i}" for i in range(300))
    look = Look(rng.dirichlet(np.full(300, 0.1), 300), words, words, query_side="t", key_side="t")
    window = opened(trace_from_looks(look))
    window.page.locator(".matrix-scroller").focus()
    window.press("+", "+", "+", "+", "+", "Control+End")
    assert window.status().startswith("‘w299’ looks at ‘w299’")
    place = window.page.eval_on_selector(".matrix-scroller", "n => [n.scrollLeft, n.scrollTop]")
    assert min(place) > 500
    assert window.colours("regard-matrix canvas") > 20


def test_a_notebook_shows_the_viewer_in_its_sandbox(browser, tmp_path):
    file = tmp_path / "notebook.html"
    file.write_text(f"<!doctype html><p>cell</p>{translation()._repr_html_()}", encoding="utf-8")
    tab = browser.new_page()
    tab.goto(file.as_uri())
    frame = tab.frame_locator("iframe")
    frame.locator("regard-viewer[data-ready]").wait_for()
    title = frame.locator("regard-viewer h1").inner_text()
    assert title == "Decoder attention to the source · layer 0 · head 0"
    for width in (1100, 800, 480):
        tab.set_viewport_size({"width": width, "height": 700})
        tab.wait_for_timeout(250)
        inside = frame.locator("html").evaluate("node => [node.scrollHeight, innerHeight]")
        assert inside[0] == inside[1], width
        assert inside[1] > 400, width
    frame.get_by_role("button", name="Table", exact=True).click()
    assert tab.locator("table").is_hidden()
    tab.close()


def test_types_of_the_modules_hold():
    need(TSC.exists(), "typescript (npm ci in tests/browser)")
    found = subprocess.run(
        [TSC, "-p", HERE / "tsconfig.json"], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout
    assert json.loads((HERE / "package.json").read_text())["private"]
