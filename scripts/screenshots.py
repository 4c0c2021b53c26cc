"""Take a picture of every screen of the web app, on a large and on a small window.

    python scripts/screenshots.py runs/en-fr runs/reviews … [--to docs/screenshots] [--only steps …]

Give runs of several tasks (translation, language, classify, tag; one of them a transformer): a
screen without a model that fits says so. Needs Chromium and the packages playwright and pillow.
"""

import argparse
import io
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from regard.serve import Server
from regard.serve.pages import SCREENS

SIZES = {"large": (1440, 900), "small": (390, 844)}
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
LARGEST = 180_000
"""Bytes of a picture that keeps all of its colours."""
CHANGED = {
    "text": "The terrace is by no means annoying .",
    "was": "The terrace is annoying .",
}
STATES: dict[str, dict[str, str]] = {
    "translation": {"text": "When did my girl give his doctor 's violins to you ?", "row": "7"},
    "language": {"row": "24"},
    "sentiment": CHANGED,
    "entities": {"row": "3"},
    "gradient": {"output": "2"},
    "steps": {"step": "5"},
    "compare": {"row": "2", "column": "1"},
}
"""What is chosen on a screen; the rest is as it comes."""
MORE: tuple[tuple[str, str, dict[str, str], str], ...] = (
    ("translation-links", "translation", {"shape": "links", "row": "1"}, "light"),
    ("translation-forced", "translation", {"pins": "2:4", "force": "1", "row": "2"}, "light"),
    ("translation-dark", "translation", STATES["translation"], "dark"),
    ("self-attention-dark", "self-attention", {}, "dark"),
)
"""Further pictures, of the large window alone."""


def shoot(
    browser: Browser, url: str, file: Path, size: tuple[int, int], scheme: str = "light"
) -> int:
    """One picture, in fewer colours where it would be large; its size in bytes."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
        device_scale_factor=2 if size[0] < 500 else 1,
    )
    page = context.new_page()
    page.goto(url)
    page.wait_for_selector("rg-app[data-ready]", timeout=60_000)
    page.wait_for_selector("main:not([aria-busy])", timeout=60_000)
    page.wait_for_timeout(1500)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    context.close()
    picture.save(file, optimize=True)
    if file.stat().st_size > LARGEST:
        picture.quantize(256, dither=Image.Dither.NONE).save(file, optimize=True)
    return file.stat().st_size


def main() -> None:
    """All screens, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("runs", nargs="+", type=Path, help="folders of runs")
    parser.add_argument("--to", type=Path, default=Path("docs/screenshots"))
    parser.add_argument("--only", nargs="*", default=[], help="names of screens")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    given = parser.parse_args()
    given.to.mkdir(parents=True, exist_ok=True)
    wanted = [
        (f"{name}-{kind}", name, STATES.get(name, {}), "light", size)
        for name in SCREENS
        for kind, size in SIZES.items()
    ]
    wanted += [(*more, SIZES["large"]) for more in MORE]
    with Server(given.runs) as server, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=given.chromium, args=FLAGS)
        for name, screen, state, scheme, size in wanted:
            if given.only and screen not in given.only:
                continue
            query = f"?{urlencode(state)}" if state else ""
            url = f"{server.url}/{screen}{query}"
            size_in_bytes = shoot(browser, url, given.to / f"{name}.png", size, scheme)
            print(f"{name}: {size_in_bytes / 1000:.0f} kB")
        browser.close()


if __name__ == "__main__":
    main()
