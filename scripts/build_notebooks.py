"""Executes the notebooks of the documentation, and makes a page of the site of each.

    python scripts/build_notebooks.py             # all of them, before each build of the site
    python scripts/build_notebooks.py attention   # one of them

The repository keeps docs/notebooks/*.ipynb without outputs. Each is executed from top to bottom in
an empty folder, by a kernel of its own; a cell that fails ends the build. The page (the same name
with .md) and the viewers in its outputs (docs/notebooks/live) are not kept.
"""

import argparse
import json
import re
import sys
import tempfile
from html import unescape
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).parents[1] / "docs/notebooks"
SECONDS = 1800
"""Time that a cell may take."""
VIEWER = re.compile(r'<iframe [^>]*srcdoc="([^"]*)"')
TERMINAL_CODE = re.compile(r"\x1b\[[0-9;]*m")
NOTE = (
    "*This page is a notebook with the outputs of its last run. [Download it]({name}.ipynb), open "
    "it with Jupyter, and change it.*\n"
)
FRAME = (
    '<iframe class="live" src="live/{file}" title="an output of the cell above" loading="lazy" '
    'width="100%" height="640" style="border: 1px solid #8888; border-radius: 4px"></iframe>\n'
)


def execute(notebook: Path) -> list[dict[str, Any]]:
    """The cells of a notebook with their outputs; raises where a cell fails."""
    import nbformat
    from nbclient import NotebookClient

    document = nbformat.read(notebook, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(document, timeout=SECONDS, resources=resources).execute()
    cells: list[dict[str, Any]] = json.loads(nbformat.writes(document))["cells"]
    return cells


def joined(text: str | list[str]) -> str:
    """A text that a notebook may keep as a list of lines."""
    return text if isinstance(text, str) else "".join(text)


def fenced(text: str, language: str) -> str:
    """A block of code or of printed text."""
    return f"```{language}\n{text.rstrip()}\n```\n"


def output_markdown(output: dict[str, Any], file: Path) -> str:
    """One output of a cell; a viewer goes into a file of its own."""
    if output["output_type"] == "stream":
        return fenced(TERMINAL_CODE.sub("", joined(output["text"])), "text")
    data = {kind: joined(value) for kind, value in output["data"].items() if "json" not in kind}
    html = data.get("text/html", "")
    if viewer := VIEWER.search(html):
        file.parent.mkdir(exist_ok=True)
        file.write_text(unescape(viewer[1]), encoding="utf-8")
        return FRAME.format(file=file.name)
    if html or "image/svg+xml" in data:
        drawn = html or data["image/svg+xml"]
        lines = [line for line in drawn.splitlines() if line.strip()]  # a blank line ends HTML
        return '<div class="notebook-output">\n' + "\n".join(lines) + "\n</div>\n"
    return fenced(data.get("text/plain", ""), "text")


def page(name: str, cells: list[dict[str, Any]], folder: Path) -> str:
    """The Markdown of an executed notebook; its first cell has the title."""
    parts, outputs = list[str](), 0
    for number, cell in enumerate(cells):
        source = joined(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source + "\n")
            if not number:
                parts.append(NOTE.format(name=name))
            continue
        parts.append(fenced(source, "python"))
        for output in cell["outputs"]:
            outputs += 1
            parts.append(output_markdown(output, folder / f"live/{name}-{outputs}.html"))
    return "\n".join(parts)


def main() -> int:
    """Execute the notebooks that were named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="notebooks (default: all)")
    names = parser.parse_args().names or sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))
    for name in names:
        cells = execute(NOTEBOOKS / f"{name}.ipynb")
        (NOTEBOOKS / f"{name}.md").write_text(page(name, cells, NOTEBOOKS), encoding="utf-8")
        print(f"{name}: {sum(cell['cell_type'] == 'code' for cell in cells)} cells executed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
