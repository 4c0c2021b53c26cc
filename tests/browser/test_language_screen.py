"""The language screen: walking through time, and writing on."""

import regard
from regard.serve import Server
from tests.browser.screens import TEXTS
from tests.training.tiny import OPTIONS, write_data


def test_language_walks_through_time(app):
    window = app().open("language", model="prose", text=TEXTS["language"])
    page = window.page
    tokens = page.locator("rg-history .rg-token:not(:first-child)")
    count = tokens.count()
    assert page.locator("rg-history .now").inner_text() == "bad"
    assert page.locator("rg-history .rg-token").first.inner_text() == "(start)"
    window.press("End")
    assert page.locator("rg-history .now").inner_text() == "…"
    window.press("ArrowLeft", "ArrowLeft")
    assert window.state()["row"] == str(count - 3)
    assert page.locator("rg-history .later").count() == 2
    now = page.locator("rg-history .now").inner_text()
    assert window.status().startswith(f"‘{now}’ looks at")
    assert page.locator("regard-row h2").nth(1).inner_text() == "Alternatives"
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
    page.get_by_label("Tokens", exact=True).fill("8")
    page.get_by_role("button", name="Continue").click()
    page.wait_for_function(
        "text => new URLSearchParams(location.search).get('text') !== text", arg=TEXTS["language"]
    )
    window.ready()
    assert window.state()["text"].startswith(TEXTS["language"])
    assert page.locator("textarea").input_value().startswith(TEXTS["language"])
    assert page.locator(".rg-strip span").count() > len(TEXTS["language"].split())


def test_what_might_come_next_is_told_without_attention_too(app, tmp_path):
    folder = write_data(tmp_path, "language")
    options = OPTIONS["language"] | {"attention": "none", "steps": 3, "average": 1}
    run = regard.train("language", folder, out=tmp_path / "blind", **options)
    with Server([run.folder.path]) as server:
        window = app(server.url).open("language", text=TEXTS["language"], row="2")
        page = window.page
        assert page.locator("regard-row h2").all_inner_texts() == ["Alternatives"]
        assert page.locator("regard-row li").count() >= 3
        assert "has no attention" in page.locator("rg-app > footer").inner_text()
        page.goto("about:blank")
