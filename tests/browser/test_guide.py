"""The live pictures of the guide work from files, without a network."""

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs/guide"
FRAME = re.compile(r'<iframe [^>]*src="live/([\w-]+)\.html"[^>]*></iframe>')
CHAPTERS = {
    page.stem: FRAME.findall(page.read_text("utf-8"))
    for page in sorted(GUIDE.glob("*.md"))
    if FRAME.search(page.read_text("utf-8"))
}


def guide_script() -> Any:
    """`scripts/build_guide.py` as a module."""
    spec = importlib.util.spec_from_file_location("build_guide", ROOT / "scripts/build_guide.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all live pages."""
    folder = tmp_path_factory.mktemp("guide")
    guide_script().build_live(folder / "live")
    return folder


def test_every_chapter_has_a_live_picture() -> None:
    numbered = re.findall(
        r"^\| \d+\. \[[^]]+\]\((.+)\.md\)", (GUIDE / "index.md").read_text(), re.M
    )
    assert len(numbered) == 12
    assert set(numbered) <= set(CHAPTERS)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_live_pictures_of_a_chapter_work_offline(
    browser: Any, built: Path, chapter: str
) -> None:
    """The frames as the chapter has them, in a page opened from disk; the network is off."""
    frames = [match[0] for match in FRAME.finditer((GUIDE / f"{chapter}.md").read_text("utf-8"))]
    page_file = built / f"{chapter}.html"
    page_file.write_text("<!doctype html>" + "\n".join(frames).replace('loading="lazy"', ""))
    context = browser.new_context(offline=True, viewport={"width": 1000, "height": 900})
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda r: None if r.url.startswith("file:") else problems.append(r.url))
    page.goto(page_file.as_uri())
    assert len(page.frames) == 1 + len(frames)
    for frame in page.frames[1:]:
        frame.wait_for_selector("regard-matrix canvas")
        colours = frame.eval_on_selector(
            "regard-matrix canvas",
            """canvas => new Set(new Uint32Array(canvas.getContext('2d').getImageData(
                0, 0, canvas.width, canvas.height).data.buffer)).size""",
        )
        assert colours > 2, frame.url
        assert frame.inner_text("regard-row").strip(), frame.url
    assert problems == []
    context.close()
