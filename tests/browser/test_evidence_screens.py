"""The screens Experiments and Comparisons: what was found, with picture, numbers and verdict."""

import json

from regard.serve import Server
from tests.browser.conftest import HOSTILE


def test_a_result_shows_claim_verdict_picture_and_numbers(app, evidence):
    window = app().open("experiments")
    page = window.page
    saved = json.loads((evidence / "permutation/result.json").read_text("utf-8"))
    assert "permutation" in page.locator("main section h2").inner_text()
    assert saved["claim"] in page.locator("p.rg-claim").inner_text()
    verdict = page.locator(".rg-verdict-line").inner_text()
    assert verdict == f"The claim {'held' if saved['held'] else 'did not hold'}: {saved['summary']}"
    assert "means nothing" in page.locator("main section > .hint").inner_text()  # the tiny size
    pictures = page.locator(".rg-figure img")
    assert pictures.count() == len(saved["pictures"])
    assert pictures.first.evaluate("img => img.decode().then(() => img.naturalWidth)") > 200
    assert pictures.first.get_attribute("alt")
    rows = page.locator(".rg-table tbody tr")
    assert rows.locator("th").all_inner_texts() == list(saved["numbers"])
    first = next(iter(saved["numbers"].values()))
    assert str(first["n"]) == rows.first.locator("td").last.inner_text()
    window.press("t")
    window.ready()
    assert pictures.count() == 0
    assert rows.count() == len(saved["numbers"])


def test_every_claim_is_listed_and_says_how_to_test_it(app):
    from regard.experiments.experiment_table import EXPERIMENTS

    window = app().open("experiments", experiment="foreign")
    page = window.page
    links = page.locator(".rg-claim-link")
    names = links.locator("strong").all_inner_texts()
    assert names == [*EXPERIMENTS, "foreign"]
    assert "did not hold" in page.locator(".rg-verdict-line").inner_text()
    links.filter(has=page.get_by_text("distance", exact=True)).click()
    window.ready()
    assert window.state()["experiment"] == "distance"
    assert page.get_by_role("heading", name="Not run yet").is_visible()
    assert page.locator("main pre").inner_text() == "regard experiment distance"


def test_a_hostile_result_runs_nothing(app, tmp_path):
    window = app().open("experiments", experiment="foreign")
    assert window.page.locator(".rg-figure img").count() == 1
    captions = window.page.locator(".rg-table caption").all_inner_texts()
    assert captions == ["What was measured", HOSTILE[1], "b"]
    assert HOSTILE[0] in window.page.locator(".rg-table").nth(1).inner_text()
    text = window.save("SVG", tmp_path).read_text("utf-8")
    assert "script" not in text
    window.open("comparisons", comparison="tiny", shape="table")
    assert window.page.evaluate("window.broken") is None
    assert window.page.locator("rg-app img").count() == 0


def test_a_comparison_shows_verdict_intervals_lengths_and_tests(app, evidence):
    window = app().open("comparisons")
    page = window.page
    report = json.loads((evidence / "tiny/report.json").read_text("utf-8"))
    assert page.locator(".rg-verdict-line").inner_text() == report["verdict"]
    lines = page.locator(".rg-intervals li").all_inner_texts()
    assert len(lines) == 3
    for line, system in zip(lines, report["systems"], strict=True):
        assert f"{100 * system['estimate']['value']:.1f}" in line
    assert "pooling self" in lines[0]
    assert page.locator("rg-chart svg circle").count() == 6
    assert "Not possible: pooling none" in page.locator("main section").first.inner_text()
    window.press("t")
    window.ready()
    systems, differences, lengths = page.locator(".rg-table table").all()
    assert systems.locator("tbody tr").count() == 3
    assert differences.locator("tbody tr").count() == len(report["pairs"])
    seen = differences.locator("tbody tr td:last-child").all_inner_texts()
    assert sorted(seen) == sorted("yes" if p["differs"] else "not seen" for p in report["pairs"])
    assert lengths.locator("thead th").all_inner_texts() == ["length", "0–10", "11–20"]


def test_a_comparison_that_is_not_finished_says_so(app):
    window = app().open("comparisons", comparison="begun")
    assert window.page.get_by_role("heading", name="Not finished yet").is_visible()
    window.page.get_by_label("Comparison").select_option("tiny")
    window.ready()
    assert window.page.locator(".rg-verdict-line").is_visible()


def test_without_results_both_screens_say_what_to_type(app, runs):
    with Server([runs["views"]]) as server:
        window = app(url=server.url).open("comparisons")
        assert window.page.get_by_role("heading", name="No comparison yet").is_visible()
        assert "regard compare" in window.page.locator("main pre").inner_text()
        window.open("experiments")
        assert window.page.get_by_role("heading", name="Not run yet").is_visible()
