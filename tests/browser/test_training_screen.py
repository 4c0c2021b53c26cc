"""The training screen: curves as they grow, and weights replayed."""

import json
import re
import shutil

import pytest

from regard.serve import Server
from tests.browser.screens import STATES


def test_training_curves_and_samples(app, runs):
    window = app().open("training", **STATES["training"])
    page = window.page
    page.wait_for_selector(".rg-live.finished")
    written = (runs["pairs"] / "metrics.jsonl").read_text("utf-8")
    lines = [json.loads(line) for line in written.splitlines()]
    charts = page.locator("rg-chart")
    losses = [line["loss"] for line in lines if line.get("loss") is not None]
    both = [line["validation_loss"] for line in lines]
    assert charts.nth(0).locator("circle").count() == len(losses) + len(both)
    assert page.locator(".rg-series-name").all_inner_texts() == ["training", "validation"]
    charts.nth(1).locator(".rg-chart-frame").focus()
    window.press("Home")
    assert window.status().startswith(f"step {lines[0]['step']}: BLEU")
    assert f"at step {lines[0]['step']}" in page.locator(".rg-samples").inner_text()
    assert window.state()["point"] == str(lines[0]["step"])
    window.press("t")
    assert page.locator(".rg-two table").count() == 2
    first = page.locator(".rg-two table").first.locator("tbody tr").first.inner_text().split()
    assert float(first[1]) == pytest.approx(losses[0], abs=0.01)
    assert float(first[2]) == pytest.approx(both[0], abs=0.01)


def test_training_replays_checkpoints(app, server):
    window = app().open("training", **STATES["training"])
    page = window.page
    slider = page.get_by_label("Checkpoint")
    last = int(slider.get_attribute("max"))
    assert last >= 1
    assert slider.get_attribute("aria-valuetext") == "final weights"
    canvas = page.locator(".rg-replay regard-matrix")
    final = canvas.screenshot()
    slider.focus()
    window.press("Home")
    window.ready()
    assert window.state()["at"].startswith("step-")
    assert re.match(r"step \d+: ‘.+’ looks at ‘.+’, [01]\.\d\d", window.status())
    assert window.colours(".rg-replay canvas") > 5
    assert canvas.screenshot() != final
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_function(
        "last => document.querySelector('.rg-track input').value === last", arg=str(last)
    )
    page.wait_for_selector(".rg-player button:has-text('Play')")
    assert "at" not in window.state()


def test_training_follows_a_run_in_progress(app, runs, tmp_path):
    folder = tmp_path / "growing"
    folder.mkdir()
    shutil.copy(runs["views"] / "config.json", folder)
    lines = (runs["views"] / "metrics.jsonl").read_text("utf-8").splitlines()
    (folder / "metrics.jsonl").write_text("", "utf-8")
    with Server([folder]) as server:
        window = app(server.url).open("training")
        page = window.page
        assert "Waiting for the first validation" in page.locator("main").inner_text()
        assert "no weights yet" in page.locator("[aria-label=Replay]").inner_text()
        with (folder / "metrics.jsonl").open("a") as file:
            file.write(lines[0] + "\n")
        page.wait_for_selector(".rg-live.live")
        step = str(json.loads(lines[0])["step"])
        page.wait_for_function(
            "step => document.querySelector('.rg-tile-value')?.textContent === step", arg=step
        )
        with (folder / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(json.loads(lines[0]) | {"step": 4321, "loss": 0.125}) + "\n")
        page.wait_for_selector(".rg-tile-value:has-text('4321')")
        assert "0.125" in page.locator(".rg-tiles").inner_text()
        page.goto("about:blank")


@pytest.mark.parametrize("kept", [False, True])
def test_screens_tell_of_the_weights_that_the_run_has(app, runs, tmp_path, kept):
    """An average that was not better is not the model: nothing shows its metrics or its outputs."""
    folder = tmp_path / "averaged"
    folder.mkdir()
    shutil.copy(runs["pairs"] / "config.json", folder)
    lines = [json.loads(x) for x in (runs["pairs"] / "metrics.jsonl").read_text().splitlines()]

    def line(step, bleu, **more):
        metric = {"name": "BLEU", "value": bleu, "low": bleu - 1, "high": bleu + 1, "n": 9}
        values = {"metrics": {"bleu": metric}, "by_length": {"0–10": metric}}
        samples = [{"given": "a", "expected": "b", "predicted": f"output of {bleu}"}]
        return json.dumps(lines[0] | values | {"step": step, "samples": samples} | more)

    written = [line(3, 61.5, best=True), line(6, 50.25, best=False)]
    written.append(line(6, 72.75, averaged=["step-3", "step-6"], kept=kept))
    (folder / "metrics.jsonl").write_text("\n".join(written) + "\n", "utf-8")
    with Server([folder]) as server:
        window = app(server.url).open("training")
        page = window.page
        page.wait_for_selector(".rg-tile-value")
        tiles = page.locator(".rg-tiles").inner_text()
        assert ("72.8" in tiles, "61.5" in tiles) == (kept, not kept)
        assert "50.3" in tiles, "the last validation is that of the last update"
        chosen = "average of 2 checkpoints" if kept else "step 3"
        assert f"of the saved weights: {chosen}" in tiles
        assert page.locator(".rg-chart-mark").count() == int(kept)
        samples = page.locator(".rg-samples")
        assert f"output of {72.75 if kept else 61.5}" in samples.text_content()
        assert "of the saved weights" in samples.locator("summary").inner_text()
        window.open("length")
        words = page.locator("main").inner_text()
        assert ("average of the best 2" if kept else "the weights of step 3") in words
        page.locator(".rg-chart-frame").focus()
        window.press("Home")
        assert window.status().startswith(f"words 0–10: BLEU {'72.8' if kept else '61.5'}")
        page.goto("about:blank")
