"""Runs the shell blocks of pages in an empty folder, and writes what they print into the pages.

    python scripts/fill_outputs.py                       # the tutorial and the pages of docs/train
    python scripts/fill_outputs.py docs/first-model.md

A block ```text right after a block ```sh is replaced by the output of that block, on one thread.
Progress lines of training are kept; lines of more than 110 characters end in an ellipsis.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "docs/first-model.md", *sorted((ROOT / "docs/train").glob("*.md"))]
BLOCK = re.compile(r"^```sh\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
WIDTH = 110


def output_of(code: str, folder: Path) -> str:
    """What a shell block prints, in the order in which it appears at a terminal."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code],
        cwd=folder,
        env=os.environ | {"PATH": path, "OMP_NUM_THREADS": "1", "COLUMNS": "100"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{code}\n{done.stdout}")
    lines = [line.rstrip() for line in done.stdout.rstrip().splitlines()]
    return "\n".join(f"{line[:WIDTH]}…" if len(line) > WIDTH else line for line in lines) + "\n"


def fill(page: Path) -> None:
    """Run a page from top to bottom, and replace its outputs."""
    with tempfile.TemporaryDirectory() as folder:

        def replace(match: re.Match[str]) -> str:
            printed = output_of(match[1], Path(folder))
            if match[2] is None:
                return match[0]
            return f"```sh\n{match[1]}```\n\n```text\n{printed}```\n"

        text = page.read_text(encoding="utf-8")
        page.write_text(BLOCK.sub(replace, text), encoding="utf-8")


if __name__ == "__main__":
    for page in [Path(name) for name in sys.argv[1:]] or PAGES:
        fill(page)
