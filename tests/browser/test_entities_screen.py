"""The entities screen: labels, what they were drawn from, gold ones beside them."""

import pytest

from tests.browser.screens import TEXTS


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
    shares = page.locator("[aria-label='Label of the selected word'] .bar-number").all_inner_texts()
    assert sum(float(one.replace("<", "")) for one in shares) == pytest.approx(1, abs=0.03)
    page.get_by_text("Compare with gold labels").click()
    page.get_by_label("Gold labels, one per word").fill("O B-X O")
    window.press("Enter")
    page.wait_for_selector(".rg-gold table")
    assert "3 labels for 4 words" in page.locator(".rg-gold").inner_text()
    assert window.state()["gold"] == "O B-X O"
    page.get_by_role("button", name="Matrix", exact=True).click()
    assert window.colours("regard-matrix canvas.matrix-canvas") > 10
