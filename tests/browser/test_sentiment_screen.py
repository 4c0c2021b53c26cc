"""The sentiment screen: words that are left out and changed; from right to left too."""

from tests.browser.screens import TEXTS


def test_sentiment_changes_with_its_words(app):
    window = app().open("sentiment", model="views", text=TEXTS["sentiment"])
    page = window.page
    assert page.locator(".rg-class").count() == 2
    words = page.locator("rg-verdict .rg-verdict-word")
    assert words.all_inner_texts() == TEXTS["sentiment"].split()
    before = page.locator(".rg-classes").inner_text()
    words.nth(3).click()
    assert window.status().startswith("‘prediction’ looks at ‘not’")
    window.press("Delete")
    page.wait_for_selector("text=Restore original")
    window.ready()
    assert words.all_inner_texts() == ["the", "film", "was", "bad"]
    assert "was" in page.locator(".rg-classes").inner_text()
    assert page.locator(".rg-classes").inner_text() != before
    words.nth(3).click()
    page.get_by_label("Replacement").fill("great")
    page.get_by_role("button", name="Replace").click()
    page.wait_for_function("new URLSearchParams(location.search).get('text').endsWith('great')")
    window.ready()
    assert words.all_inner_texts() == ["the", "film", "was", "great"]
    page.get_by_role("button", name="Restore original").click()
    page.wait_for_function("!new URLSearchParams(location.search).has('was')")
    window.ready()
    assert words.all_inner_texts() == TEXTS["sentiment"].split()
    words.nth(0).focus()
    window.press("End", "ArrowLeft")
    assert page.locator("rg-verdict [aria-pressed=true]").inner_text() == "not"


def test_every_query_has_its_words(app, ask_trace):
    window = app().open("sentiment", model="asking", text=TEXTS["sentiment"])
    page = window.page
    weights = next(
        look["weights"]
        for look in ask_trace("asking", TEXTS["sentiment"])["looks"]
        if look["name"] == "pooling"
    )
    queries = page.get_by_role("group", name="Query").get_by_role("button")
    assert queries.all_inner_texts() == ["query 1", "query 2"]
    for row, query in enumerate(queries.all()):
        query.click()
        assert query.get_attribute("aria-pressed") == "true"
        words = TEXTS["sentiment"].split()
        most = words[weights[row].index(max(weights[row]))]
        assert window.status().startswith(f"‘query {row + 1}’ looks at ‘{most}’")
        page.wait_for_selector(".rg-near li")
        assert page.locator(".rg-near li").count() == 8
    assert page.get_by_text("the underline shows it relative").is_visible()


def test_right_to_left_text(app):
    window = app().open("sentiment", model="views", text="החתול ישן על הכיסא")
    group = window.page.get_by_role("group", name="Words by weight")
    assert group.evaluate("node => getComputedStyle(node).direction") == "rtl"
    words = window.page.locator("rg-verdict .rg-verdict-word")
    words.nth(0).click()
    words.nth(0).focus()
    window.press("ArrowLeft")
    assert window.status().startswith("‘prediction’ looks at ‘ישן’")
