"""Take a screenshot of every screen of the web app, in a large and in a small window.

    python scripts/screenshots.py [runs/en-fr …] [--to docs/screenshots] [--only steps …]

Pass runs of several tasks (translation, language, classify, tag; one of them a transformer): a
screen without a suitable model says so. Without runs, small models are trained on built-in data,
each for `--minutes`. Needs Chromium and the packages playwright and pillow.
"""

import argparse
import io
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

import regard
from regard.cli import main as run_command
from regard.serve import Limits, Server
from regard.serve.static_files import SCREENS


class Shot(NamedTuple):
    """One screenshot."""

    name: str
    screen: str
    state: dict[str, str]
    """What is selected on the screen, as parameters of its address."""
    scheme: str
    """light or dark"""
    window: tuple[int, int]


WINDOWS = {"large": (1440, 900), "small": (390, 844)}
CHROMIUM_FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
FULL_COLOUR_BYTES = 180_000
"""Larger pictures are reduced to 256 colours."""
STATES: dict[str, dict[str, str]] = {
    "translation": {"text": "When did my girl give his doctor 's violins to you ?", "row": "7"},
    "language": {"row": "24"},
    "sentiment": {
        "text": "The terrace is by no means annoying .",
        "was": "The terrace is annoying .",
    },
    "entities": {"row": "3"},
    "gradient": {"output": "2"},
    "steps": {"step": "6"},
    "scores": {"mask": "causal", "normalize": "sparsemax"},
    "memory": {"text": "3 1 4 1 5 9 2 6"},
    "compare": {"row": "2", "column": "1"},
}
"""What is selected on a screen, where it is not the default."""
LARGE_ONLY: tuple[tuple[str, str, dict[str, str], str], ...] = (
    ("home-large", "", {}, "light"),
    ("presentation", "translation", {"view": "present"}, "dark"),
    ("translation-links", "translation", {"shape": "links", "row": "1"}, "light"),
    ("translation-forced", "translation", {"pins": "2:4", "force": "1", "row": "2"}, "light"),
    ("translation-dark", "translation", STATES["translation"], "dark"),
    ("self-attention-dark", "self-attention", {}, "dark"),
)
"""Further screenshots, of the large window only: name, screen, state, scheme."""
SMALL_TRANSLATOR = {
    "width": 128,
    "batch_tokens": 512,
    "learning_rate": 0.002,
    "evaluate_every": 300,
}
TRAINED_RUNS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("en-fr", "translation", {**SMALL_TRANSLATOR, "keep_every": 150}),
    (
        "en-fr-transformer",
        "translation",
        {**SMALL_TRANSLATOR, "model": "transformer", "layers": 2, "heads": 4},
    ),
    ("stories", "language", {"attention": "scaled_dot", "width": 96, "word_size": 96}),
    ("reviews", "classify", {"width": 64, "word_size": 64, "batch_tokens": 512}),
    ("names", "tag", {"encoder": "transformer", "experts": 4, "width": 64, "word_size": 64}),
    ("copy", "algorithm", {"kind": "copy", "longest": 8}),
)
"""The runs that are trained where none are given: name, task, options."""


def train_runs(folder: Path, minutes: float) -> list[Path]:
    """Runs of several tasks, with the evaluations and the report that the last screens show."""
    runs = {name: folder / name for name, _, _ in TRAINED_RUNS}
    for name, task, options in TRAINED_RUNS:
        print(f"training {name}", flush=True)
        regard.train(task, out=runs[name], minutes=minutes, **options)
    evaluate_runs(runs, folder)
    return list(runs.values())


def evaluate_runs(runs: dict[str, Path], folder: Path) -> None:
    """Evaluate the translators, and report the faithfulness of the classifier."""
    for task in ("translation", "classify"):
        run_command(["data", "make", task, "--out", str(folder / task)])
    pairs = [str(folder / "translation" / f"test.{language}") for language in ("en", "fr")]
    translators = [str(runs["en-fr"]), str(runs["en-fr-transformer"])]
    run_command(["evaluate", *translators, "--data", *pairs])
    texts = str(folder / "classify/test.tsv")
    run_command(
        ["explain", str(runs["reviews"]), "--data", texts, "--faithfulness", "--limit", "60"]
    )


def take(browser: Browser, url: str, file: Path, shot: Shot) -> int:
    """Save one screenshot, in fewer colours if it would be large; its size in bytes."""
    width, height = shot.window
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if shot.scheme == "dark" else "light",
        reduced_motion="reduce",
        device_scale_factor=2 if width < 500 else 1,
    )
    page = context.new_page()
    page.goto(url)
    page.wait_for_selector("rg-app[data-ready]", timeout=300_000)
    page.wait_for_selector("main:not([aria-busy])", timeout=300_000)
    page.wait_for_timeout(1500)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    context.close()
    picture.save(file, optimize=True)
    if file.stat().st_size > FULL_COLOUR_BYTES:
        picture.quantize(256, dither=Image.Dither.NONE).save(file, optimize=True)
    return file.stat().st_size


def all_shots() -> list[Shot]:
    """Every screen in both windows, and further states of some."""
    shots = [
        Shot(f"{screen}-{size}", screen, STATES.get(screen, {}), "light", window)
        for screen in SCREENS
        for size, window in WINDOWS.items()
    ]
    return shots + [Shot(*fields, WINDOWS["large"]) for fields in LARGE_ONLY]


def take_all(runs: list[Path], shots: list[Shot], folder: Path, chromium: str) -> None:
    """Serve the runs and take the screenshots."""
    reported = [run.name for run in runs if (run / "faithfulness").is_dir()]
    with Server(runs, limits=Limits(request_seconds=300)) as server, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
        for shot in shots:
            state = shot.state
            if shot.screen == "trust" and reported:
                state = {"model": reported[0], **state}
            query = f"?{urlencode(state)}" if state else ""
            url = f"{server.url}/{shot.screen}{query}"
            size_in_bytes = take(browser, url, folder / f"{shot.name}.png", shot)
            print(f"{shot.name}: {size_in_bytes / 1000:.0f} kB", flush=True)
        browser.close()


def main() -> None:
    """Take the screenshots of all screens, or of the named ones."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("runs", nargs="*", type=Path, help="run folders (default: trained here)")
    parser.add_argument(
        "--minutes", type=float, default=3, help="training time of each run (default: 3)"
    )
    parser.add_argument("--to", type=Path, default=Path("docs/screenshots"))
    parser.add_argument("--only", nargs="*", default=[], help="names of screens")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    options = parser.parse_args()
    options.to.mkdir(parents=True, exist_ok=True)
    shots = [shot for shot in all_shots() if not options.only or shot.screen in options.only]
    with TemporaryDirectory() as folder:
        runs = options.runs or train_runs(Path(folder), options.minutes)
        take_all(runs, shots, options.to, options.chromium)


if __name__ == "__main__":
    main()
