"""The steps screen: sums by hand, and the numbers of models."""

import hashlib

import numpy as np
import pytest

from regard.attention.worked_example import early_bird
from tests.browser.screens import TEXT


def test_steps_of_the_sentence_by_space(app):
    window = app().open("steps")
    page = window.page
    assert page.get_by_role("heading", level=2, name="Where does bird look?").is_visible()
    assert window.status().startswith("Step 1, project. ‘bird’: q₂ = ")
    product = "0.00·0.00 + 0.00·0.00 + 1.00·2.00 + 0.50·0.00 = 2.00"
    assert product in page.locator(".rg-sum").inner_text()
    assert page.locator(".rg-projection").count() == 3
    window.press("Space")
    assert window.status() == "Step 2, score. ‘bird’ and ‘early’: 3.00"
    product = "0.00·0.00 + 2.00·1.50 + 0.50·0.00 + 1.25·0.00 = 3.00"
    assert product in page.locator(".rg-sum").inner_text()
    said = []
    for _ in range(4):
        window.press("Space")
        said.append(window.status())
    assert said == [
        "Step 3, scale. ‘bird’ and ‘early’: 1.50",
        "Step 4, mask. ‘bird’ and ‘early’: 1.50",
        "Step 5, softmax. ‘bird’ and ‘early’: 0.344",
        "Step 6, sum. ‘bird’ and ‘early’: 0.344",
    ]
    assert window.state() == {"step": "6"}
    weights = [float(w) for w in page.locator(".rg-weight").all_inner_texts()]
    powers = np.exp([0.0, 1.5, 0.5625, 1.25, 0.0, 0.25])
    np.testing.assert_allclose(weights, powers / powers.sum(), atol=6e-4)
    shades = page.locator(".rg-weight").evaluate_all(
        "all => new Set(all.map(one => getComputedStyle(one).backgroundColor)).size"
    )
    assert shades == 5
    page.get_by_label("Score", exact=True).select_option("additive")
    window.ready()
    assert window.state()["score"] == "additive"
    assert "tanh" in page.locator(".rg-steps-grid").inner_text()
    page.get_by_role("button", name="worm", exact=True).click()
    assert window.ready().status().startswith("Step 6, sum. ‘worm’ and")
    page.locator(".rg-steps-grid").focus()
    window.press("Home")
    window.ready()
    assert window.status().startswith("Step 6, sum. ‘worm’ and ‘The’")
    window.press("ArrowRight")
    assert window.state()["column"] == "1"
    window.press("Space")
    assert window.status().startswith("Step 1")


def test_space_belongs_to_a_button_that_has_the_focus(app):
    window = app().open("steps")
    window.page.get_by_role("button", name="Scale", exact=True).focus()
    window.press("Space")
    assert window.state() == {"step": "3"}


def test_mask_normalizer_and_temperature_change_the_steps(app):
    window = app().open(
        "steps", step="5", mask="causal", normalize="sum", temperature="0.5", score="dot"
    )
    page = window.page
    cells = page.locator(".rg-steps-grid tbody tr").nth(2).locator("td").all_inner_texts()
    assert cells[:6] == ["allowed"] * 3 + ["masked"] * 3
    weights = [float(w) for w in page.locator(".rg-weight").all_inner_texts()]
    products = np.array([0.0, 3.0, 1.125, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(weights, products / products.sum(), atol=6e-4)
    mask = page.get_by_label("Mask", exact=True)
    mask.focus()
    mask.select_option("none")
    window.ready()
    assert mask.evaluate("node => node === document.activeElement")
    assert "mask" not in window.state()
    assert page.get_by_text("masked").count() == 0


PROJECTED = {"pairs": 2, "stack": 3, "prose": 0, "views": 2, "names": 3}
"""How many matrices the attention of each model has: a score's, a head's, or none."""


@pytest.mark.parametrize("model", PROJECTED)
def test_steps_with_the_numbers_of_a_model(app, ask_trace, model):
    window = app().open("steps", model=model, text=TEXT, step="4", row="0", shape="table")
    page = window.page
    trace = ask_trace(model, TEXT)
    chosen = page.locator(".rg-steps-of select")
    names = [chosen.nth(i).input_value() for i in range(1, 4)]
    looks = [look for look in trace["looks"] if not names[0] or look["name"] == names[0]]
    layers = [str(look["layer"]) for look in looks if "layer" in look]
    look = next(
        look
        for look in looks
        if (not layers or str(look["layer"]) == max(layers)) and look.get("head", 0) == 0
    )
    cells = page.locator(".rg-table tbody tr td:nth-child(6)").all_inner_texts()
    weights = [float(cell.replace("−", "-")) for cell in cells]
    np.testing.assert_allclose(weights, look["weights"][0][: len(weights)], atol=6e-4)
    page.goto(f"{window.url}/steps?model={model}&text={TEXT}&row=0")
    first = window.ready().status()
    pictures = page.locator(".rg-projections figure")
    assert pictures.count() == PROJECTED[model]
    assert first.startswith("Step 1, project." if PROJECTED[model] else "Step 1, score.")
    if PROJECTED[model]:
        # the bias, the largest products and the rest make a number of the query
        total = page.locator(".rg-sum").inner_text().split("= ")[-1]
        query = page.locator(".rg-query .rg-vector").last.get_attribute("aria-label")
        assert query.endswith("…") or total in query.split(": ")[1].split(", ")


def test_any_sentence_without_a_model(app):
    """Four numbers by the letters of each word; the rest is a sum by hand."""
    window = app().open("steps", step="5")
    page = window.page
    page.locator("textarea").fill("Many worms fear  the early bird")
    window.press("Enter")
    page.wait_for_selector("text=These numbers are made up")
    window.ready()
    words = ["Many", "worms", "fear", "the", "early", "bird"]
    assert page.locator(".rg-key-name").all_inner_texts() == words
    drawn = [hashlib.sha256(word.encode()).digest()[:4] for word in words]
    vectors = np.array([[byte % 5 / 2 for byte in row] for row in drawn])
    bird = early_bird()
    query, key, _ = (vectors @ m.numpy() for m in (bird.to_query, bird.to_key, bird.to_value))
    powers = np.exp(query[2] @ key.T / 2)
    weights = [float(w) for w in page.locator(".rg-weight").all_inner_texts()]
    np.testing.assert_allclose(weights, powers / powers.sum(), atol=6e-4)
    page.get_by_role("group", name="Query word").get_by_role("button", name="bird").click()
    window.ready()
    assert page.get_by_role("heading", name="Where does bird look?").is_visible()
    page.reload()
    window.ready()
    assert page.locator(".rg-key-name").all_inner_texts() == words
    page.get_by_role("button", name="A watched pot never boils").click()
    window.ready()
    assert page.locator(".rg-key-name").count() == 5
    page.locator("textarea").fill("word " * 300)
    window.press("Enter")
    assert "the limit is 1000" in page.get_by_role("alert").inner_text()
