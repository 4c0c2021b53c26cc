"""The self-attention screen: every head, previewed and kept."""

import re

from tests.browser.screens import TEXTS


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
    page.get_by_label("Sort by").select_option("entropy")
    window.ready()
    entropies = re.findall(r"entropy (\d+\.\d\d)", " ".join(lines.all_text_contents()))
    assert len(entropies) == 4
    assert entropies == sorted(entropies, key=float)
    assert "Encoder self-attention" in title.inner_text()
    page.get_by_label("Heads", exact=True).select_option("max")
    assert "need not sum" in page.locator("regard-legend").inner_text()
