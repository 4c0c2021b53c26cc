"""Take a picture of every screen of the web app, on a large and on a small window.

    python scripts/screenshots.py [runs/en-fr …] [--to docs/screenshots] [--only steps …]

Give runs of several tasks (translation, language, classify, tag; one of them a transformer): a
screen without a model that fits says so. Without any it trains them, on built-in data, for so many
minutes each. Needs Chromium and the packages playwright and pillow.
"""

import argparse
import io
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

import regard
from regard.cli import main as main_of_regard
from regard.serve import Limits, Server
from regard.serve.pages import SCREENS

Wanted = tuple[str, str, dict[str, str], str, tuple[int, int]]
"""The name of a picture, its screen, what is chosen there, light or dark, the window."""
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


OWN: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("en-fr", "translation", {"save_every": 100}),
    ("en-fr-transformer", "translation", {"model": "transformer", "layers": 2, "heads": 4}),
    ("stories", "language", {"attention": "scaled_dot"}),
    ("reviews", "classify", {}),
    ("names", "tag", {"encoder": "self"}),
)
"""Runs for who has none: a name, a task, options."""


def train_runs(folder: Path, minutes: float) -> list[Path]:
    """Runs of every task, with what the last screens show: evaluations and a report."""
    made: dict[str, Path] = {}
    for name, task, options in OWN:
        print(f"training {name}", flush=True)
        regard.train(task, out=folder / name, minutes=minutes, **options)
        made[name] = folder / name
    for task in ("translation", "classify"):
        main_of_regard(["data", "make", task, "--out", str(folder / task)])
    pairs = [str(folder / "translation" / f"test.{language}") for language in ("en", "fr")]
    both = [str(made["en-fr"]), str(made["en-fr-transformer"])]
    main_of_regard(["evaluate", *both, "--data", *pairs])
    asked = ["--data", str(folder / "classify/test.tsv"), "--faithfulness", "--limit", "60"]
    main_of_regard(["explain", str(made["reviews"]), *asked])
    return list(made.values())


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
    page.wait_for_selector("rg-app[data-ready]", timeout=300_000)
    page.wait_for_selector("main:not([aria-busy])", timeout=300_000)
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
    parser.add_argument("runs", nargs="*", type=Path, help="folders of runs; trained here if none")
    parser.add_argument(
        "--minutes", type=float, default=5, help="of training for each (default: 5)"
    )
    parser.add_argument("--to", type=Path, default=Path("docs/screenshots"))
    parser.add_argument("--only", nargs="*", default=[], help="names of screens")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    given = parser.parse_args()
    given.to.mkdir(parents=True, exist_ok=True)
    wanted: list[Wanted] = [
        (f"{name}-{kind}", name, STATES.get(name, {}), "light", size)
        for name in SCREENS
        for kind, size in SIZES.items()
    ]
    wanted += [(*more, SIZES["large"]) for more in MORE]
    with TemporaryDirectory() as own:
        take(given.runs or train_runs(Path(own), given.minutes), wanted, given)


def take(runs: list[Path], wanted: list[Wanted], given: argparse.Namespace) -> None:
    """Serve the runs and take the pictures."""
    reported = [run.name for run in runs if (run / "faithfulness").is_dir()]
    with Server(runs, limits=Limits(seconds=300)) as server, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=given.chromium, args=FLAGS)
        for name, screen, state, scheme, size in wanted:
            if given.only and screen not in given.only:
                continue
            if screen == "trust" and reported:
                state = {"model": reported[0], **state}
            query = f"?{urlencode(state)}" if state else ""
            url = f"{server.url}/{screen}{query}"
            size_in_bytes = shoot(browser, url, given.to / f"{name}.png", size, scheme)
            print(f"{name}: {size_in_bytes / 1000:.0f} kB")
        browser.close()


if __name__ == "__main__":
    main()
