"""The trust screen: kept reports of faithfulness, or how to make one."""

import json
import shutil

from regard.serve import Server


def test_the_note_leads_to_the_report_of_the_model_that_is_looked_at(app, runs):
    window = app().open("sentiment", text="the film was not bad")
    page = window.page
    page.get_by_role("link", name="not why it answered").click()
    page.wait_for_selector("rg-screen-trust .rg-intervals")
    window.ready()
    assert window.state() == {"model": "views"}
    report = json.loads((runs["views"] / "faithfulness/some.json").read_text("utf-8"))
    assert page.locator(".rg-verdict-line").inner_text() == report["verdict"]
    assert window.status().startswith(report["verdict"][:40])
    named = page.locator(".rg-intervals").first.locator("li").all_inner_texts()
    own = report["comprehensiveness"]
    assert len(named) == len(own)
    for line, (method, found) in zip(named, own.items(), strict=True):
        assert line.startswith(method)
        assert f"{found['value']:.2f}".replace("-", "−") in line
    widths = page.locator(".rg-interval").evaluate_all("all => all.map(n => n.offsetWidth)")
    assert len(set(widths)) > 1
    window.press("t")
    rows = page.locator(".rg-table tbody tr")
    parts = ("comprehensiveness", "sufficiency", "agreement", "flips")
    known = [one for part in parts for one in report[part].values() if one["value"] is not None]
    assert rows.count() == len(known)


def test_without_a_report_it_says_how_to_make_one(app, runs):
    window = app().open("trust", model="names")
    told = window.page.locator("main").inner_text()
    assert f"regard explain {runs['names']} --data FILE --faithfulness" in told
    assert "not why it answered" in told
    window.page.get_by_label("Model").select_option("views")
    window.page.wait_for_selector(".rg-intervals")
    window.page.go_back()
    window.page.wait_for_selector("text=Not measured yet")


def test_a_report_on_other_weights_says_so(app, runs, tmp_path):
    shutil.copytree(runs["views"], tmp_path / "views")
    path = tmp_path / "views/faithfulness/some.json"
    report = json.loads(path.read_text("utf-8")) | {"weights": "others"}
    path.write_text(json.dumps(report | {"verdict": "<b onclick=window.broken=1>no</b>"}))
    with Server([tmp_path / "views"]) as server:
        window = app(server.url).open("trust")
        page = window.page
        assert "has been trained further since" in page.locator("main").inner_text()
        assert page.locator(".rg-verdict-line").inner_text().startswith("<b onclick")
        assert page.locator(".rg-verdict-line b").count() == 0
        page.goto("about:blank")
