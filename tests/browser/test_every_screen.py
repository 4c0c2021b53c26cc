"""What holds on every screen: room, keys, tables, files to save, no harm from words."""

import json

import pytest

from tests.browser.screens import HOSTILE, SCREENS, SIZES, STATES, TEXT, TEXTS, WITHOUT_TEXT

INSIDE = """() => [...document.querySelectorAll('main button, main select, main h2, main canvas')]
  .filter(node => node.checkVisibility() && !node.closest(
    '.rg-examples, .rg-strips, .rg-steps-grid, .table-scroller, .matrix-scroller, .rg-menu-items'))
  .filter(node => {
    const box = node.getBoundingClientRect();
    return box.right > innerWidth + 1 || box.left < -1;
  }).map(node => node.outerHTML.slice(0, 120))"""
"""What stands outside of the window, and cannot be scrolled to."""


@pytest.mark.parametrize("screen", TEXTS)
def test_every_drawing_says_range_sums_and_doubt(app, screen):
    window = app().open(screen, text=TEXTS[screen])
    legend = window.page.locator("regard-legend")
    assert "each row sums to 1" in legend.inner_text()
    assert window.colours("regard-legend canvas") > 200
    footer = window.page.locator("rg-app > footer")
    assert "where the model looked" in footer.inner_text()
    assert footer.get_by_role("link").get_attribute("href") == "/trust"


@pytest.mark.parametrize("screen", SCREENS)
def test_every_width_has_room(app, screen):
    window = app(viewport={"width": 1440, "height": 900}).open(screen, **STATES[screen])
    for width, height in (*SIZES[:3], (768, 844), SIZES[3]):
        window.page.set_viewport_size({"width": width, "height": height})
        for scheme in ("light", "dark"):
            window.page.emulate_media(color_scheme=scheme)
            window.ready()
            assert not window.sideways()
            assert window.page.evaluate(INSIDE) == []
            window.press("t")
        window.ready()
        if screen not in ("trust", "length", "experiments", "comparisons"):
            spoken = window.page.locator("rg-app > footer [role=status]")
            assert spoken.bounding_box()["width"] > min(260, width * 0.6)


@pytest.mark.parametrize("screen", TEXTS)
def test_a_small_screen_folds_its_menu_and_options(app, screen):
    window = app(viewport={"width": 390, "height": 844}).open(screen, text=TEXTS[screen])
    window.page.get_by_role("button", name="Screens").click()
    assert window.page.get_by_role("link", name="Gradient flow").is_visible()
    window.press("Escape")
    assert not window.page.get_by_role("link", name="Gradient flow").is_visible()
    window.page.get_by_text("Options").click()
    assert window.page.get_by_label("Scale", exact=True).is_visible()
    assert not window.sideways()


@pytest.mark.parametrize("screen", ["translation", "language"])
def test_in_a_frame_the_drawing_is_in_view_and_its_options_fold(app, screen):
    window = app(viewport={"width": 960, "height": 640}).open(screen, text=TEXTS[screen])
    scale = window.page.get_by_label("Scale", exact=True)
    stage = window.page.locator(".rg-stage")
    assert not scale.is_visible()
    footer = window.page.locator("rg-app > footer").bounding_box()["y"]
    assert footer - stage.bounding_box()["y"] > 150
    window.page.get_by_text("Options").click()
    assert scale.is_visible()
    window.page.set_viewport_size({"width": 1440, "height": 900})
    assert scale.is_visible()


@pytest.mark.parametrize("screen", ["", *SCREENS])
def test_axe_finds_nothing(app, screen):
    window = app(bypass_csp=True, reduced_motion="reduce")
    window.open(screen, **STATES.get(screen, {}))
    for scheme in ("light", "dark"):
        window.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        window.page.wait_for_timeout(60)
        assert not window.findings()
        if screen:
            window.press("t")
            window.ready()
            assert not window.findings()
            window.press("t")
            window.ready()


@pytest.mark.parametrize("screen", SCREENS)
def test_every_screen_has_a_button_for_its_table(app, screen):
    window = app().open(screen, **STATES[screen])
    page = window.page
    button = page.get_by_role("button", name="Table", exact=True)
    button.focus()
    window.press("Enter")
    window.ready()
    assert window.state()["shape"] == "table"
    assert button.get_attribute("aria-pressed") == "true"
    assert button.evaluate("node => node === document.activeElement")
    assert page.locator("main table").first.is_visible()
    window.press("t")
    window.ready()
    assert "shape" not in window.state()


@pytest.mark.parametrize("screen", SCREENS)
def test_every_screen_saves_in_every_form(app, browser, tmp_path, screen):
    window = app(color_scheme="dark").open(screen, **STATES[screen])
    saved = {kind: window.save(kind, tmp_path) for kind in ("HTML", "SVG", "PNG", "JSON")}
    assert json.loads(saved["JSON"].read_bytes())
    assert saved["PNG"].read_bytes().startswith(b"\x89PNG")
    alone = browser.new_page()
    errors: list[str] = []
    alone.on("console", lambda message: errors.append(message.text))
    alone.on("pageerror", lambda error: errors.append(str(error)))
    alone.goto(saved["SVG"].as_uri())
    assert alone.evaluate("document.documentElement.tagName") == "svg"
    box = alone.evaluate("[innerWidth, document.documentElement.getBBox().width]")
    assert box[1] > 200
    assert "#ffffff" in saved["SVG"].read_text("utf-8")
    alone.goto(saved["HTML"].as_uri())
    alone.wait_for_selector("regard-viewer[data-ready], svg")
    assert not errors
    alone.close()


@pytest.mark.parametrize("screen", [s for s in SCREENS if s not in WITHOUT_TEXT])
def test_hostile_words_change_nothing(app, screen):
    window = app()
    slow = ("gradient", "steps", "scores", "compare", "training")  # these ask several times
    long = "x" * (200 if screen in slow else 2000)
    state = STATES[screen] | {"text": " ".join([*HOSTILE, long])}
    if screen == "self-attention":
        state |= {"model": "names"}
    page = window.open(screen, **state).page
    tabs = page.locator("main .tabs button")
    for i in range(tabs.count()):
        if tabs.nth(i).is_visible():  # a switch between queries is hidden where there is one
            tabs.nth(i).click()
            page.wait_for_timeout(100)
    window.ready()
    assert page.evaluate("window.broken") is None
    assert page.locator("rg-app img").count() == 0
    assert page.locator("script").count() == 1
    assert not window.sideways()
    drawn = page.locator("rg-trace-panel, .rg-panel-card, footer").all_inner_texts()
    assert "\u202e" not in "".join(drawn)


def test_hostile_words_of_a_model_that_takes_them_apart(app):
    window = app().open("steps", of="views", model="views", text=" ".join(HOSTILE), shape="table")
    assert window.page.evaluate("window.broken") is None
    assert window.page.locator("rg-app img").count() == 0


@pytest.mark.parametrize("screen", SCREENS)
def test_a_hostile_address_changes_nothing(app, screen):
    bad = "<script>window.broken=1</script>"
    names = ("model", "other", "of", "score", "step", "look", "layer", "head", "row", "column")
    more = (
        "detached",
        "output",
        "at",
        "point",
        "metric",
        "runs",
        "bucket",
        "evaluation",
        "report",
        "experiment",
        "comparison",
    )
    last = ("scale", "threshold", "shape", "pins", "aggregate", "specials", "__proto__")
    window = app()
    text = STATES[screen].get("text", TEXT)
    window.open(screen, text=text, **dict.fromkeys((*names, *more, *last), bad))
    assert window.page.evaluate("window.broken") is None
    assert window.page.get_by_role("alert").count() == 0
    assert "No model named" in window.page.locator(".rg-unknown").inner_text()


@pytest.mark.parametrize("screen", ["language", "entities", "self-attention"])
def test_a_thousand_words_are_drawn(app, screen):
    window = app()
    text = " ".join(f"w{i % 90}" for i in range(1000))
    model = "prose" if screen == "language" else "names"
    page = window.open(screen, model=model, text=text, shape="matrix").page
    assert window.colours("regard-matrix canvas.matrix-canvas") > 3
    assert not window.sideways()
    window.press("t")
    assert page.locator("regard-table tbody tr").count() >= 400
