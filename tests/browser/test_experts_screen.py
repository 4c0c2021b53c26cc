"""The experts screen: gates per word, and the words of each expert."""

from tests.browser.screens import TEXT


def test_each_word_shows_its_gates(app, ask_trace):
    window = app().open("experts", text=TEXT)
    page = window.page
    assert window.state()["model"] == "names"
    gates = [look for look in ask_trace("names", TEXT)["looks"] if look["name"].endswith("experts")]
    rows = gates[-1]["weights"]
    first = [1 + row.index(max(row)) for row in rows]
    assert page.locator(".rg-gate-number").all_inner_texts() == [str(n) for n in first]
    cards = page.locator(".rg-expert-list li")
    assert cards.count() == 3
    loads = [round(100 * sum(row[i] for row in rows) / len(rows)) for i in range(3)]
    shown = page.locator(".rg-expert-list h3 span").all_inner_texts()
    assert all(abs(int(t.split()[0]) - n) <= 1 for t, n in zip(shown, loads, strict=True))
    page.locator(".rg-routed-word").nth(1).click()
    assert window.status().startswith(f"‘film’ goes to expert {first[1]}, gate ")
    assert "now" in (cards.nth(first[1] - 1).get_attribute("class") or "")


def test_a_model_without_experts_names_the_option(app):
    window = app().open("experts", model="pairs", text=TEXT)
    assert "--experts" in window.page.locator(".rg-empty").inner_text()
