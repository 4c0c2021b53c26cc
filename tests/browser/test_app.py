"""The web app in a real browser, on models that were trained here: clicks, keys, pixels."""

import json
import re
from pathlib import Path

import pytest

from regard.serve import Server
from regard.trace import Trace

TEXTS = {
    "translation": "the film was great",
    "language": "the plot is not very bad",
    "self-attention": "the film was great",
    "sentiment": "the film was not bad",
    "entities": "the film was great",
}
SCREENS = tuple(TEXTS)
HOSTILE = (
    "</script><script>window.broken=1</script>",
    "<img src=x onerror=window.broken=1>",
    "\u202egnirts\u202c",
    "👩🏽‍🚀",
    "שלום",
)


def test_home_leads_to_a_model(app):
    window = app().open("")
    page = window.page
    assert page.locator(".rg-card.model").count() == 5
    page.get_by_role("link", name=re.compile("^views")).click()
    window.ready()
    assert page.url.endswith("/sentiment?model=views")
    assert page.get_by_role("heading", level=1).inner_text() == "Sentiment"
    page.get_by_role("navigation").get_by_role("link", name="Entities").click()
    window.ready()
    assert page.locator("rg-screen-entities").is_visible()
    page.go_back()
    page.wait_for_selector("rg-screen-sentiment")


def test_translation_by_click_and_key(app):
    window = app().open("translation", model="pairs", text=TEXTS["translation"])
    page = window.page
    assert window.colours("regard-matrix canvas.matrix-canvas") > 20
    window.press("Tab")
    page.locator(".matrix-scroller").focus()
    window.press("Control+Home")
    first = window.status()
    assert re.fullmatch(r"‘.+’ looks at ‘.+’, [01]\.\d\d", first)
    window.press("ArrowDown")
    assert window.status() != first
    assert window.state()["row"] == "1"
    window.press("End", "Home")
    assert window.state()["column"] == "0"
    words = page.locator(".rg-output .rg-word")
    words.nth(2).click()
    assert window.state()["row"] == "2"
    assert words.nth(2).get_attribute("aria-pressed") == "true"
    heading = page.locator("regard-row h2").first.inner_text()
    assert heading == f"{words.nth(2).inner_text()} looks at"
    assert page.locator("regard-row h2").nth(1).inner_text() == "What might stand here"
    assert page.locator(".rg-nbest li").count() >= 2


def test_links_text_and_table_share_the_selection(app):
    window = app().open("translation", model="pairs", text=TEXTS["translation"], row="1")
    page = window.page
    said = window.status()
    page.get_by_role("button", name="Links", exact=True).click()
    assert page.locator("regard-links path").count() >= 4
    assert window.status() == said
    page.get_by_role("button", name="Text", exact=True).click()
    assert page.locator("regard-text [aria-selected=true]").count() == 1
    window.press("t")
    rows = page.locator("regard-table tbody tr")
    assert "chosen" in (rows.nth(1).get_attribute("class") or "")
    assert window.state()["shape"] == "table"
    numbers = [float(cell.replace("<", "")) for cell in rows.nth(1).locator("td").all_inner_texts()]
    assert abs(sum(numbers) - 1) < 0.05
    window.press("T")
    assert page.locator("regard-text").is_visible()


def test_the_address_holds_all_that_was_chosen(app):
    window = app().open("translation", model="stack", text=TEXTS["translation"])
    page = window.page
    page.get_by_label("Layer", exact=True).select_option("0")
    page.get_by_label("Heads", exact=True).select_option("one")
    page.get_by_label("Head", exact=True).select_option("1")
    page.get_by_label("Shade").select_option("log")
    page.get_by_label("hide specials").check()
    page.get_by_label("Hide below").fill("0.1")
    title = page.locator(".rg-board-title").inner_text()
    assert "layer 0 · head 1" in title
    assert "· logarithm" in page.locator("regard-legend").inner_text()
    picture = page.locator("regard-matrix").screenshot()
    window.state()
    page.reload()
    window.ready()
    page.wait_for_timeout(300)
    assert page.locator(".rg-board-title").inner_text() == title
    assert page.locator("regard-matrix").screenshot() == picture
    page.get_by_label("Shade").select_option("linear")
    assert page.locator("regard-matrix").screenshot() != picture


def test_forcing_decodes_again_and_shows_the_difference(app):
    window = app().open("translation", model="pairs", text=TEXTS["translation"], row="0")
    page = window.page
    page.get_by_text("Force it to look elsewhere").click()
    again = page.get_by_role("button", name="Decode again")
    assert again.is_disabled()
    chips = page.locator(".rg-force .rg-chip")
    assert chips.all_inner_texts()[:2] == ["the", "film"]
    chips.nth(1).click()
    again.click()
    page.wait_for_selector("text=By itself it writes")
    assert window.state()["pins"] == "0:1"
    assert re.fullmatch("‘.+’ looks at ‘film’, 1.00", window.status())
    page.get_by_role("button", name="Let it look freely").click()
    page.wait_for_selector("text=By itself it writes", state="detached")
    assert "pins" not in window.state()


@pytest.mark.parametrize("kind", ["HTML", "SVG", "PNG", "JSON", "Pharaoh"])
def test_saving(app, browser, tmp_path, kind):
    window = app().open("translation", model="pairs", text=TEXTS["translation"])
    page = window.page
    page.locator("summary", has_text="Save").click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name=f"Save as {kind}").click()
    file = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(file)
    data = file.read_bytes()
    if kind == "JSON":
        assert Trace.from_json(data).task == "translation"
    elif kind == "SVG":
        assert b"each row sums to 1" in data
    elif kind == "PNG":
        assert data.startswith(b"\x89PNG")
    elif kind == "Pharaoh":
        assert re.fullmatch(r"(\d+-\d+ ?)+\n", data.decode())
    else:
        alone = browser.new_page()
        errors: list[str] = []
        alone.on("console", lambda message: errors.append(message.text))
        alone.goto(file.as_uri())
        alone.wait_for_selector("regard-viewer[data-ready]")
        assert alone.locator("regard-viewer h1").inner_text() == "source"
        assert not errors
        alone.close()


def test_language_walks_through_time(app):
    window = app().open("language", model="prose", text=TEXTS["language"])
    page = window.page
    tokens = page.locator("rg-history .rg-token:not(:first-child)")
    count = tokens.count()
    assert page.locator("rg-history .now").inner_text() == "…"
    window.press("ArrowLeft", "ArrowLeft")
    assert window.state()["row"] == str(count - 3)
    assert page.locator("rg-history .later").count() == 2
    now = page.locator("rg-history .now").inner_text()
    assert window.status().startswith(f"‘{now}’ looks at")
    assert page.locator("regard-row h2").nth(1).inner_text() == "What might stand here"
    window.press("Home")
    assert page.locator("rg-strip .now, .rg-strip .now").count() == 1
    assert page.locator("[role=slider]").get_attribute("aria-valuenow") == "1"
    assert "bits" in (page.locator("[role=slider]").get_attribute("aria-valuetext") or "")
    window.press("End")
    shades = page.locator("rg-history .rg-token").evaluate_all(
        "nodes => new Set(nodes.map(n => getComputedStyle(n).backgroundColor)).size"
    )
    assert shades > 3
    assert page.locator(".rg-strip span").count() == count - 1
    page.get_by_role("button", name="Matrix", exact=True).click()
    assert window.colours("regard-matrix canvas.matrix-canvas") > 20


def test_language_writes_on(app):
    window = app().open("language", model="prose", text=TEXTS["language"])
    page = window.page
    page.get_by_label("Tokens").fill("8")
    page.get_by_role("button", name="Continue").click()
    page.wait_for_function(
        "text => new URLSearchParams(location.search).get('text') !== text", arg=TEXTS["language"]
    )
    window.ready()
    assert window.state()["text"].startswith(TEXTS["language"])
    assert page.locator("textarea").input_value().startswith(TEXTS["language"])
    assert page.locator(".rg-strip span").count() > len(TEXTS["language"].split())


def test_self_attention_heads(app):
    window = app().open("self-attention", model="stack", text=TEXTS["self-attention"])
    page = window.page
    page.wait_for_selector("regard-heads[data-drawn='4']")
    assert window.colours("regard-heads .head canvas") > 5
    title = page.locator(".rg-board-title")
    assert "layer 1 · head 0" in title.inner_text()
    page.get_by_role("button", name="layer 0, head 1", exact=True).hover()
    page.wait_for_timeout(80)
    assert "layer 0 · head 1" in title.inner_text()
    page.mouse.move(5, 5)
    page.wait_for_timeout(80)
    assert "layer 1 · head 0" in title.inner_text()
    page.get_by_role("button", name="layer 1, head 0", exact=True).focus()
    window.press("ArrowUp", "Enter")
    assert "layer 0 · head 0" in title.inner_text()
    assert window.state()["layer"] == "0"
    window.press("]", "]")
    assert "layer 1 · head 0" in title.inner_text()
    window.press("[")
    assert "layer 0 · head 1" in title.inner_text()
    lines = page.locator(".rg-head-line")
    assert lines.count() == 4
    assert re.search(r"entropy \d\.\d\d bits", lines.nth(0).text_content() or "")
    lines.nth(3).click()
    assert "layer 1 · head 1" in title.inner_text()
    page.get_by_label("Heads", exact=True).select_option("max")
    assert "need not sum" in page.locator("regard-legend").inner_text()


def test_sentiment_changes_with_its_words(app):
    window = app().open("sentiment", model="views", text=TEXTS["sentiment"])
    page = window.page
    assert page.locator(".rg-class").count() == 2
    words = page.locator("rg-verdict .rg-verdict-word")
    assert words.all_inner_texts() == TEXTS["sentiment"].split()
    before = page.locator(".rg-classes").inner_text()
    words.nth(3).click()
    assert window.status().startswith("‘The verdict’ looks at ‘not’")
    window.press("Delete")
    page.wait_for_selector("text=Back to how it was")
    window.ready()
    assert words.all_inner_texts() == ["the", "film", "was", "bad"]
    assert "was" in page.locator(".rg-classes").inner_text()
    assert page.locator(".rg-classes").inner_text() != before
    words.nth(3).click()
    page.get_by_label("The word instead").fill("great")
    page.get_by_role("button", name="Change").click()
    page.wait_for_function("new URLSearchParams(location.search).get('text').endsWith('great')")
    window.ready()
    assert words.all_inner_texts() == ["the", "film", "was", "great"]
    page.get_by_role("button", name="Back to how it was").click()
    page.wait_for_function("!new URLSearchParams(location.search).has('was')")
    window.ready()
    assert words.all_inner_texts() == TEXTS["sentiment"].split()
    words.nth(0).focus()
    window.press("End", "ArrowLeft")
    assert page.locator("rg-verdict [aria-pressed=true]").inner_text() == "not"


def test_entities_and_gold(app):
    window = app().open("entities", model="names", text=TEXTS["entities"])
    page = window.page
    words = page.locator("rg-entities .rg-word")
    assert words.all_inner_texts() == TEXTS["entities"].split()
    words.nth(2).click()
    assert window.status().startswith("‘was’ looks at")
    shades = words.evaluate_all("all => new Set(all.map(n => n.style.backgroundColor)).size")
    assert shades > 1
    window.press("ArrowLeft")
    assert window.status().startswith("‘film’ looks at")
    assert page.locator(".rg-panel h2").first.inner_text().startswith("film is")
    page.get_by_text("Compare with gold labels").click()
    page.get_by_label("Gold labels, one for each word").fill("O B-X O")
    window.press("Enter")
    page.wait_for_selector(".rg-gold table")
    assert "3 labels for 4 words" in page.locator(".rg-gold").inner_text()
    assert window.state()["gold"] == "O B-X O"
    page.get_by_role("button", name="Matrix", exact=True).click()
    assert window.colours("regard-matrix canvas.matrix-canvas") > 10


@pytest.mark.parametrize("screen", SCREENS)
def test_every_screen_says_range_sums_and_doubt(app, screen):
    window = app().open(screen, text=TEXTS[screen])
    legend = window.page.locator("regard-legend")
    assert "each row sums to 1" in legend.inner_text()
    assert window.colours("regard-legend canvas") > 200
    footer = window.page.locator("rg-app > footer")
    assert "where it looked" in footer.inner_text()
    link = footer.get_by_role("link").get_attribute("href")
    window.page.goto(f"{window.url}{link}")
    assert "--faithfulness" in window.page.locator("main").inner_text()


@pytest.mark.parametrize("screen", SCREENS)
def test_a_small_screen_needs_no_sideways_scrolling(app, screen):
    window = app(viewport={"width": 390, "height": 844}).open(screen, text=TEXTS[screen])
    assert not window.sideways()
    window.page.get_by_role("button", name="Screens").click()
    assert window.page.get_by_role("link", name="Gradient flow").is_visible()
    window.press("Escape")
    assert not window.page.get_by_role("link", name="Gradient flow").is_visible()
    window.page.get_by_text("Options").click()
    assert window.page.get_by_label("Shade").is_visible()
    assert not window.sideways()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", ["", *SCREENS])
def test_axe_finds_nothing(app, screen, scheme):
    window = app(color_scheme=scheme, bypass_csp=True, reduced_motion="reduce")
    window.open(screen, **({"text": TEXTS[screen]} if screen else {}))
    assert not window.findings()
    if screen:
        window.press("t")
        assert not window.findings()


def test_axe_finds_nothing_in_what_opens(app):
    window = app(bypass_csp=True, reduced_motion="reduce")
    window.open("translation", text=TEXTS["translation"], pins="0:1", force="1")
    window.page.locator("summary", has_text="Save").click()
    assert not window.findings()
    window.press("Escape")
    window.page.get_by_role("button", name="Help").click()
    assert not window.findings()
    window.press("Escape")
    window.open("sentiment", text="the film", was="the film was bad")
    assert not window.findings()
    window.page.goto(f"{window.url}/static/trust.html")
    assert not window.findings()


@pytest.mark.parametrize("screen", SCREENS)
def test_hostile_words_change_nothing(app, screen):
    window = app()
    text = " ".join([*HOSTILE, "x" * 2000])
    window.open(screen, text=text, model="names" if screen == "self-attention" else "")
    page = window.page
    tabs = page.locator(".tabs button")
    for i in range(tabs.count()):
        tabs.nth(i).click()
        page.wait_for_timeout(100)
    assert page.evaluate("window.broken") is None
    assert page.locator("rg-app img").count() == 0
    assert page.locator("script").count() == 1
    assert not window.sideways()
    shown = "[...document.querySelectorAll('rg-board, footer')].map(n => n.innerText).join(' ')"
    assert "\u202e" not in page.evaluate(shown)


def test_a_hostile_address_changes_nothing(app):
    window = app()
    bad = "<script>window.broken=1</script>"
    names = ("model", "look", "layer", "head", "scale", "threshold", "row", "shape", "pins")
    state = dict.fromkeys((*names, "column", "aggregate", "__proto__"), bad)
    window.open("translation", text="the film", **state)
    assert window.page.evaluate("window.broken") is None
    assert window.colours("regard-matrix canvas.matrix-canvas") > 5


def test_what_the_server_refuses_is_said(app):
    window = app()
    window.expected = ["422"]
    window.open("sentiment", text="x" * 10_000)
    alert = window.page.get_by_role("alert").inner_text()
    assert "10000 characters: at most" in alert
    window.page.locator("textarea").fill("the film")
    window.page.get_by_role("button", name="Judge").click()
    window.page.wait_for_selector("rg-verdict .rg-verdict-word")
    assert window.page.get_by_role("alert").count() == 0


def test_an_empty_box_asks_for_a_text(app):
    window = app().open("translation", model="pairs")
    assert "Type a text above" in window.page.locator("main").inner_text()
    window.page.locator("textarea").fill("the plot")
    window.press("Enter")
    window.page.wait_for_selector(".rg-output .rg-word")
    assert window.state()["text"] == "the plot"


def test_examples_are_one_click_away(app):
    window = app().open("sentiment", model="views")
    chip = window.page.locator(".rg-examples .rg-chip").nth(1)
    chip.click()
    window.ready()
    assert window.state()["text"] == chip.inner_text()


def test_right_to_left_text(app):
    window = app().open("sentiment", model="views", text="החתול ישן על הכיסא")
    group = window.page.get_by_role("group", name="Words by weight")
    assert group.evaluate("node => getComputedStyle(node).direction") == "rtl"
    words = window.page.locator("rg-verdict .rg-verdict-word")
    words.nth(0).click()
    words.nth(0).focus()
    window.press("ArrowLeft")
    assert window.status().startswith("‘The verdict’ looks at ‘ישן’")


def test_a_screen_without_its_model_says_how_to_get_one(app, runs):
    with Server([runs["views"]], token="a-secret-token") as server:
        window = app(server.url)
        window.expected = ["401"]
        window.page.goto(f"{server.url}/translation")
        assert "#token=" in window.page.get_by_role("alert").inner_text()
        window.page.goto("about:blank")
        window.page.goto(f"{server.url}/translation#token=a-secret-token")
        window.ready()
        assert "regard train translation" in window.page.locator("main").inner_text()
        window.page.get_by_role("link", name="Sentiment").first.click()
        window.page.wait_for_selector("rg-verdict .rg-verdict-word")
        assert window.page.url.endswith("#token=a-secret-token")


def test_help_lists_the_keys(app):
    window = app().open("sentiment", text=TEXTS["sentiment"])
    window.press("?")
    dialog = window.page.locator("dialog")
    assert dialog.is_visible()
    assert "the head before" in dialog.inner_text()
    window.press("Escape")
    assert not dialog.is_visible()


def test_nothing_of_the_app_lies_elsewhere():
    static = Path(__file__).parents[2] / "regard/serve/static"
    for file in [*static.rglob("*.js"), *static.rglob("*.css"), *static.rglob("*.html")]:
        text = file.read_text("utf-8")
        outside = set(re.findall(r"https?://[^\s\"'`)]+", text))
        assert {url for url in outside if "www.w3.org" not in url} == set(), file
    assert json.loads((Path(__file__).parent / "package.json").read_text())["private"]
