"""The gradient screen: strips that are the attributions, bar by bar."""

import numpy as np

from tests.browser.screens import STATES, TEXT, wait_for_address


def test_gradient_strips_are_the_attributions(app, ask_trace):
    window = app().open("gradient", **STATES["gradient"])
    page = window.page
    words = page.locator(".rg-strip-word")
    assert words.locator(".rg-strip-name").all_inner_texts() == TEXT.split()
    trace = ask_trace("views", TEXT, attributions=True)
    by_method = {one["method"]: one["values"] for one in trace["attributions"]}
    own, apart = by_method["gradient"], by_method["gradient through values"]
    most = max(own + apart)
    heights = page.locator(".rg-strip-bar.lane-1").evaluate_all(
        "all => all.map(bar => bar.getBoundingClientRect().height / bar.parentNode.clientHeight)"
    )
    np.testing.assert_allclose(heights, [value / most for value in own], atol=0.03)
    held = page.locator(".rg-strip-cell:nth-child(3) .apart").evaluate_all(
        "all => all.map(bar => bar.getBoundingClientRect().height / bar.parentNode.clientHeight)"
    )
    np.testing.assert_allclose(held, [max(0.015, value / most) for value in apart], atol=0.03)
    words.nth(1).click()
    assert window.status().startswith("‘film’: weight")
    page.locator(".rg-strips").focus()
    window.press("ArrowRight")
    assert window.status().startswith("‘was’: weight")
    wait_for_address(window, row="2")
    window.press("Home")
    assert words.nth(0).get_attribute("aria-selected") == "true"
    before = page.locator(".rg-strip-frame").screenshot()
    page.get_by_label("Detach attention", exact=True).select_option("around")
    window.ready()
    assert page.locator(".rg-strip-frame").screenshot() != before
    window.press("t")
    assert page.locator(".rg-table tbody tr").count() == 4


def test_gradient_of_one_of_several_answers(app):
    window = app().open("gradient", model="pairs", text=TEXT)
    opened = window.page.locator(".rg-card-head h2").inner_text()
    assert opened.startswith("What “")
    assert "(end)" not in opened
    assert window.page.get_by_text("Attention gates the gradient").is_visible()
    picker = window.page.get_by_label("Output")
    picker.select_option(index=0)
    window.ready()
    heading = window.page.locator(".rg-card-head h2").inner_text()
    assert picker.locator("option").first.inner_text().split(". ")[1] in heading
    assert window.state()["output"] == "0"


def test_right_to_left_words_are_walked_from_the_right(app):
    window = app().open("gradient", model="views", text="החתול ישן על הכיסא", row="0")
    window.page.locator(".rg-strips").focus()
    window.press("ArrowLeft")
    assert window.status().startswith("‘ישן’")
    wait_for_address(window, row="1")


def test_too_long_a_text_is_refused_in_words(app):
    window = app().open("gradient", model="views", text="word " * 300)
    assert "the limit for gradients is 1000" in window.page.get_by_role("alert").inner_text()


def test_small_bars_and_special_tokens_are_hidden(app, tmp_path):
    window = app().open("gradient", model="prose", text=TEXT)
    page = window.page
    words = page.locator(".rg-strip-word")
    count, special = words.count(), page.locator(".rg-strip-word.special").count()
    assert special >= 1
    page.get_by_label("hide special tokens").check()
    window.ready()
    assert words.count() == count - special
    assert window.state()["specials"] == "hide"
    words.nth(1).click()
    said, chosen = window.status(), window.state()["row"]
    page.get_by_label("hide special tokens").uncheck()
    page.reload()
    window.ready()
    slider = page.get_by_label("Hide below")
    slider.focus()
    for _ in range(100):
        page.keyboard.press("ArrowRight")
    window.ready()
    assert slider.evaluate("node => node === document.activeElement")
    assert window.state()["threshold"] == "0.5"
    below = page.locator(".rg-strip-bar.below")
    bars = page.locator(".rg-strip-bar")
    assert 0 < below.count() < bars.count()
    heights = bars.evaluate_all(
        """all => all.map(bar => [bar.classList.contains('below'),
          bar.getBoundingClientRect().height / bar.parentNode.clientHeight])"""
    )
    assert all(hidden == (height < 0.5) for hidden, height in heights if abs(height - 0.5) > 0.02)
    assert said.startswith("‘")
    assert chosen != "0"
