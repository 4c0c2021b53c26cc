"""The length screen: quality by length, and the sentences behind a point."""

import json


def test_length_by_bucket(app, runs):
    window = app().open("length", runs="pairs")
    page = window.page
    kept = json.loads((runs["pairs"] / "evaluations/test.json").read_text("utf-8"))
    assert page.get_by_label("Evaluation").input_value() == "test"
    assert page.locator("rg-chart circle").count() == len(kept["by_length"])
    page.locator(".rg-chart-frame").focus()
    window.press("Home")
    window.ready()
    bucket, found = next(iter(kept["by_length"].items()))
    assert window.state()["bucket"] == bucket
    assert window.status().startswith(f"words {bucket}: {found['name']}")
    assert f"{found['n']} examples" in window.status()
    assert page.locator(".rg-lines li").count() > 5
    assert page.evaluate("window.broken") is None
    page.get_by_label("Evaluation").select_option("validation")
    window.ready()
    page.locator("rg-chart svg").click(position={"x": 300, "y": 100})
    window.ready()
    assert "No sentences saved" in page.locator("main").inner_text()
    window.press("t")
    assert page.locator(".rg-table tbody tr").count() >= 1


def test_length_of_several_runs(app):
    window = app().open("length", runs="pairs,stack", evaluation="validation")
    page = window.page
    assert page.locator(".rg-series-name").all_inner_texts() == ["pairs", "stack"]
    page.get_by_role("button", name="stack · translation").click()
    assert window.state()["runs"] == "pairs"
    page.get_by_role("button", name="views · classify").click()
    window.ready()
    assert window.state()["runs"] == "views"
    page.get_by_role("button", name="names · tag").click()
    window.ready()
    assert page.locator(".rg-series-name").all_inner_texts() == ["names"]
