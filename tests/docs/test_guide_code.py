"""Every Python and shell block of the guide and tutorials runs, each page in an empty folder."""

from pathlib import Path

import pytest

from tests.docs.code_blocks import ROOT, code_blocks, run_page

DOCS = ROOT / "docs"
PAGES = [
    page
    for page in [
        DOCS / "first-model.md",
        DOCS / "from-other-tools.md",
        *sorted(DOCS.glob("train/*.md")),
        *DOCS.rglob("guide/*.md"),
    ]
    if {block.language for block in code_blocks(page)} & {"python", "sh"}
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_the_code_of_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    quick = {"train": ["--steps", "3"]} if page.stem == "first-model" else {}
    run_page(page, added=quick)
