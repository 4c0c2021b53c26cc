"""The notebook of the documentation, executed: its answers, the size of its outputs, its viewer."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser.test_page import OVERLAPS

NOTEBOOK = Path(__file__).parents[2] / "docs/notebooks/first-model.ipynb"
MAX_LINES, MAX_COLUMNS = 30, 120
MAX_HEIGHT = 1000
"""Pixels of an output: about a screen."""


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the executed notebook, as notebook and as HTML."""
    folder = tmp_path_factory.mktemp("notebook")
    shutil.copy(NOTEBOOK, folder)  # it makes its run beside itself
    root = str(NOTEBOOK.parents[2])
    environment = os.environ | {"PYTHONPATH": root, "OMP_NUM_THREADS": "1"}
    for command in (
        ["--to", "notebook", "--execute", "--ExecutePreprocessor.timeout=600", NOTEBOOK.name],
        ["--to", "html", "done.ipynb"],
    ):
        converted = subprocess.run(
            [sys.executable, "-m", "nbconvert", *command, "--output", "done"],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=900,
        )
        assert not converted.returncode, converted.stderr[-2000:]
    return folder


def test_its_answers_are_right_and_short(executed):
    cells = json.loads((executed / "done.ipynb").read_text("utf-8"))["cells"]
    outputs = {
        "".join(cell["source"]).splitlines()[-1]: [
            "".join(output.get("text", output.get("data", {}).get("text/plain", "")))
            for output in cell["outputs"]
        ]
        for cell in cells
        if cell["cell_type"] == "code"
    }
    for source, texts in outputs.items():
        for text in texts:
            lines = text.splitlines()
            assert len(lines) <= MAX_LINES, source
            assert max(map(len, lines)) <= MAX_COLUMNS or len(lines) == 1, source
    assert outputs["run.predict(text)"] == ["Prediction('positive'; details: probabilities)"]
    (accuracy,) = outputs["run.evaluate(test)"]
    assert float(accuracy.removeprefix("Evaluation(accuracy ").split()[0]) > 90
    assert outputs["    print(error)"] == ["data[0]: 1 value: expected (text, label)\n"]
    stored = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    assert not any(cell.get("outputs") for cell in stored)  # the repository keeps none


def test_every_output_fits_a_screen_and_the_viewer_its_frame(executed, browser):
    page = browser.new_page(viewport={"width": 1100, "height": 900})
    page.goto((executed / "done.html").as_uri(), wait_until="domcontentloaded")
    frame = page.frame_locator("iframe")
    page.locator("iframe").scroll_into_view_if_needed()
    frame.locator("regard-viewer[data-ready]").wait_for()
    for width in (1100, 800, 1400):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(250)
        assert frame.locator("html").evaluate(OVERLAPS) == [], width
        inside = frame.locator("html").evaluate(
            "node => [node.scrollHeight - innerHeight, node.scrollWidth - innerWidth]"
        )
        assert inside == [0, 0], width
        heights = page.locator(".jp-OutputArea-output").evaluate_all(
            "nodes => nodes.map(node => node.getBoundingClientRect().height)"
        )
        assert len(heights) >= 10
        assert max(heights) <= MAX_HEIGHT, (width, heights)
    page.set_viewport_size({"width": 1100, "height": 900})
    assert 850 <= page.locator("iframe").bounding_box()["width"] <= 1050
    page.close()
