"""The frame around the screens: the way in, addresses, keys, and plain words on what fails."""

import json
import re
import shutil
from pathlib import Path

from regard.serve import Server
from tests.browser.conftest import RUNS
from tests.browser.screens import TEXTS


def test_home_leads_to_a_model(app):
    window = app().open("")
    page = window.page
    assert page.locator(".rg-card.model").count() == len(RUNS)
    page.get_by_role("link", name=re.compile("^views")).click()
    window.ready()
    assert page.url.endswith("/sentiment?model=views")
    assert page.get_by_role("heading", level=1).inner_text() == "Sentiment"
    page.get_by_role("navigation").get_by_role("link", name="Entities").click()
    window.ready()
    assert page.locator("rg-screen-entities").is_visible()
    page.go_back()
    page.wait_for_selector("rg-screen-sentiment")


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


def test_what_the_server_refuses_is_said(app):
    window = app()
    window.expected = ["422"]
    window.open("sentiment", text="x" * 10_000)
    alert = window.page.get_by_role("alert").inner_text()
    assert alert.count("The text has 10,000 characters; at most") == 1
    assert "/text" not in alert
    window.page.locator("textarea").fill("the film")
    window.page.get_by_role("button", name="Classify").click()
    window.page.wait_for_selector("rg-verdict .rg-verdict-word")
    assert window.page.get_by_role("alert").count() == 0


def test_an_empty_box_asks_for_a_text(app):
    window = app().open("translation", model="pairs", text=" ")
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
        window.page.get_by_role("link", name="HTTP interface").click()
        window.page.wait_for_selector("#operations h2")


def test_help_lists_the_keys(app):
    window = app().open("sentiment", text=TEXTS["sentiment"])
    window.press("?")
    dialog = window.page.locator("dialog")
    assert dialog.is_visible()
    assert "previous head" in dialog.inner_text()
    window.press("Escape")
    assert not dialog.is_visible()


def test_nothing_of_the_app_lies_elsewhere():
    static = Path(__file__).parents[2] / "regard/serve/static"
    for file in [*static.rglob("*.js"), *static.rglob("*.css"), *static.rglob("*.html")]:
        text = file.read_text("utf-8")
        outside = set(re.findall(r"https?://[^\s\"'`)]+", text))
        assert {url for url in outside if "www.w3.org" not in url} == set(), file
    assert json.loads((Path(__file__).parent / "package.json").read_text())["private"]


def test_the_browsers_back_button_undoes_what_was_asked(app):
    window = app().open("sentiment", model="views", text="the film was bad")
    page = window.page
    box = page.locator("textarea")
    box.fill("the plot is great")
    window.press("Enter")
    window.ready()
    page.get_by_role("navigation").get_by_role("link", name="Translation").click()
    page.wait_for_selector("rg-screen-translation")
    window.ready()
    page.go_back()
    page.wait_for_selector("rg-screen-sentiment .rg-verdict-word")
    assert box.input_value() == "the plot is great"
    page.go_back()
    page.wait_for_function("document.querySelector('textarea').value === 'the film was bad'")
    window.ready()
    assert page.locator(".rg-verdict-word").last.inner_text() == "bad"
    page.go_forward()
    page.wait_for_function("document.querySelector('textarea').value === 'the plot is great'")


def test_a_model_that_is_not_served_is_told(app):
    window = app().open("sentiment", model="nobody", text="the film")
    told = window.page.locator(".rg-unknown")
    assert told.inner_text().startswith("No model named ‘nobody’ is served here. Available: pairs,")
    window.page.get_by_label("Model").select_option("views")
    window.ready()
    assert window.page.locator(".rg-verdict-word").count() == 2 or told.is_hidden()
    window.open("compare", model="pairs", other="ghost", text="the film")
    assert "‘ghost’" in told.inner_text()


def test_too_long_a_text_is_told_and_not_cut(app):
    window = app().open("sentiment", model="views", text="the film")
    page = window.page
    box = page.locator("textarea")
    box.fill("word " * 900)
    assert "4499 characters; the limit is 4000" in page.get_by_role("alert").inner_text()
    window.press("Enter")
    assert window.state()["text"] == "the film"
    assert len(box.input_value()) == 4500
    box.fill("the plot")
    assert page.get_by_role("alert").count() == 0
    window.press("Enter")
    window.ready()
    assert window.state()["text"] == "the plot"


def test_what_a_model_did_not_read_is_told(app):
    window = app().open("translation", model="pairs", text="film " * 200)
    assert "Only its beginning was read" in window.page.locator("main").inner_text()
    window.open("translation", model="pairs", text="film")
    assert "Only its beginning" not in window.page.locator("main").inner_text()


def test_a_folder_that_goes_away_and_two_of_one_name(app, runs, tmp_path):
    """The model stays in memory and answers; curves and reports are empty."""
    shutil.copytree(runs["views"], tmp_path / "a/run")
    shutil.copytree(runs["names"], tmp_path / "b/run")
    with Server([tmp_path / "a/run", tmp_path / "b/run"]) as server:
        window = app(server.url).open("")
        page = window.page
        assert page.locator(".rg-card.model strong").all_inner_texts() == ["run", "run-2"]
        shutil.rmtree(tmp_path / "a")
        window.open("sentiment", text="the film was bad")
        assert page.locator(".rg-verdict-word").count() == 4
        window.open("entities", text="the film was bad")
        assert page.locator("rg-entities .rg-word").count() == 4
        for screen in ("training", "length", "trust", "gradient"):
            window.open(screen, model="run", text="the film")
            assert page.get_by_role("alert").count() == 0
        page.goto("about:blank")


def test_an_empty_box_is_no_error(app):
    window = app()
    for screen in ("training", "steps", "gradient"):
        window.open(screen, model="copy", text=" ")
        assert window.page.get_by_role("alert").count() == 0, screen
        assert "Type a text above" in window.page.locator("main").inner_text()


def test_no_toolbar_is_shown_before_it_is_filled(app):
    window = app()
    for path in ("**/explain", "**/v1/steps"):
        window.page.route(path, lambda route: None)
    for screen in ("translation", "sentiment", "compare", "gradient", "steps"):
        window.page.goto(f"{window.url}/{screen}?text=the+film")
        window.page.wait_for_selector(".rg-loading")
        empty = window.page.locator("main select:visible").evaluate_all(
            "all => all.filter(one => !one.options.length).map(one => one.ariaLabel)"
        )
        assert empty == [], screen
        assert window.page.locator("rg-drawbar:visible").count() == 0
    window.page.goto("about:blank")
