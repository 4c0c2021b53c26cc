"""The translation screen: matrix, links and text with one selection, forcing, saving."""

import re

import pytest

from regard.trace import Trace
from tests.browser.screens import TEXTS


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
    assert window.state()["row"] == "1"  # another byte of one character may have the same status
    window.press("End", "Home")
    assert window.state()["column"] == "0"
    words = page.locator(".rg-output .rg-word")
    words.nth(2).click()
    assert window.state()["row"] == "2"
    assert words.nth(2).get_attribute("aria-pressed") == "true"
    heading = page.locator("regard-row h2").first.inner_text()
    assert heading == f"{words.nth(2).inner_text()} looks at"
    assert page.locator("regard-row h2").nth(1).inner_text() == "Alternatives"
    rest = page.locator(".rg-nbest li bdi").all_inner_texts()
    assert len(rest) == 4
    best, *others = page.evaluate(
        "document.querySelector('rg-trace-panel').trace.prediction.nbest.map(one => one.output)"
    )
    assert rest == others
    path = "".join(page.locator(".rg-tree li.chosen > .rg-branch bdi").all_inner_texts())
    assert "".join(path.removesuffix("(end)").split()) == "".join(best.split())
    scores = [float(one.replace("−", "-")) for one in page.locator(".bar-number").all_inner_texts()]
    assert scores[-4:] == sorted(scores[-4:], reverse=True)
    title = page.locator(".rg-board-title").inner_text()
    assert title.startswith("Attention to the source")
    assert "rows: words of the translation" in title


def test_the_end_token_is_shown_on_request(app):
    window = app().open("translation", model="pairs", text=TEXTS["translation"])
    page = window.page
    assert "(end)" not in page.locator(".rg-output").inner_text()
    page.get_by_label("hide special tokens").uncheck()
    window.ready()
    assert window.state()["specials"] == "show"
    ended = page.evaluate("document.querySelector('rg-trace-panel').trace.prediction.finished")
    assert ("(end)" in page.locator(".rg-output").inner_text()) == ended


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
    page.get_by_label("Scale", exact=True).select_option("log")
    page.get_by_label("hide special tokens").check()
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
    page.get_by_label("Scale", exact=True).select_option("linear")
    assert page.locator("regard-matrix").screenshot() != picture


def test_forcing_decodes_again_and_shows_the_difference(app):
    window = app().open("translation", model="pairs", text=TEXTS["translation"], row="0")
    page = window.page
    page.get_by_text("Constrain attention").click()
    again = page.get_by_role("button", name="Translate again")
    assert again.is_disabled()
    chips = page.locator(".rg-force .rg-chip")
    assert chips.all_inner_texts()[:2] == ["the", "film"]
    chips.nth(1).click()
    again.click()
    page.wait_for_selector("text=Translation without constraints")
    assert window.state()["pins"] == "0:1"
    assert re.fullmatch("‘.+’ looks at ‘film’, 1.00", window.status())
    page.get_by_role("button", name="Remove constraints").click()
    page.wait_for_selector("text=Translation without constraints", state="detached")
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
        assert alone.locator("regard-viewer h1").inner_text() == "Attention to the source"
        assert not errors
        alone.close()
