"""Notebooks become pages: executed from top to bottom, with their outputs.

`make docs` executes those of the documentation; a cell that fails ends it.
"""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from tests.docs.code_blocks import ROOT

NOTEBOOKS = ROOT / "docs/notebooks"
SCRIPT = runpy.run_path(str(ROOT / "scripts/build_notebooks.py"))
VIEWER = '<iframe sandbox srcdoc=\\"&lt;p&gt;a viewer&lt;/p&gt;\\"></iframe>'


def notebook(path: Path, *sources: str) -> Path:
    """A notebook of one cell of text and cells of code."""
    code: dict[str, Any] = {"cell_type": "code", "execution_count": None, "outputs": []}
    title = {"cell_type": "markdown", "id": "t", "metadata": {}, "source": ["# Title\n", "\n", "x"]}
    cells = [
        {**code, "id": f"c{number}", "metadata": {}, "source": source}
        for number, source in enumerate(sources)
    ]
    whole = {"cells": [title, *cells], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(whole), "utf-8")
    return path


def test_a_page_has_the_code_and_what_it_printed(tmp_path: Path) -> None:
    path = notebook(
        tmp_path / "mine.ipynb",
        "import os\nx = 6\nprint(x, os.listdir())",
        "x * 7",
        "from IPython.display import HTML\nHTML('<p>\\n\\n<b>bold</b></p>')",
        f"class Looked:\n    def _repr_html_(self):\n        return '{VIEWER}'\n\nLooked()",
    )
    made = SCRIPT["page"]("mine", SCRIPT["execute"](path), tmp_path)
    assert made.startswith("# Title\n\nx\n")
    assert "](mine.ipynb), open" in made
    assert "```python\nx * 7\n```\n\n```text\n42\n```" in made
    assert "```text\n6 []\n```" in made  # each runs in an empty folder
    assert '<div class="notebook-output">\n<p>\n<b>bold</b></p>\n</div>' in made
    assert 'src="live/mine-4.html"' in made
    assert (tmp_path / "live/mine-4.html").read_text("utf-8") == "<p>a viewer</p>"


def test_a_cell_that_fails_ends_it(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="ZeroDivisionError"):
        SCRIPT["execute"](notebook(tmp_path / "mine.ipynb", "1 / 0", "print('never')"))


def test_the_repository_keeps_no_outputs_and_the_index_lists_all() -> None:
    index = (NOTEBOOKS / "index.md").read_text("utf-8")
    paths = sorted(NOTEBOOKS.glob("*.ipynb"))
    assert len(paths) >= 7
    for path in paths:
        cells = json.loads(path.read_text("utf-8"))["cells"]
        assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells), path
        assert f"({path.stem}.md)" in index
        assert f"notebooks/{path.stem}.md" in (ROOT / "mkdocs.yml").read_text("utf-8")
