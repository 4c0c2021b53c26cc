"""The page beside bertviz 1.4.1 on the same weights: size, time until it is drawn, another head.

    pip install --no-deps bertviz==1.4.1 && pip install ipython
    npm install --prefix /tmp/cdn requirejs@2.3.6 jquery@2.2.4 d3@5.7.0
    python benchmarks/page.py --cdn /tmp/cdn/node_modules

bertviz takes three libraries from a network, which are answered here from files on the disk at
once; without them its page stays blank, and only its size is measured. Times are those of headless
Chromium, the least of some repeats: from the navigation until the picture is there, and from a key
until the other head is painted on the canvas. `cpu` is the time of the page's main thread alone,
which a busy machine does not change.
"""

import argparse
import json
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from playwright.sync_api import Page, Route, sync_playwright

from regard.show import render_page, trace_from_looks
from regard.trace import Trace
from regard.trace.look import Look

CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
LAYERS, HEADS, TOKENS, LONG = 6, 8, 200, 1000
CDN = {
    "require.min.js": "requirejs/require.js",
    "jquery.min.js": "jquery/dist/jquery.min.js",
    "d3.min.js": "d3/dist/d3.min.js",
}


def softmax(scores: np.ndarray) -> np.ndarray:
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True)


def weights(layers: int, heads: int, tokens: int) -> np.ndarray:
    """[l, h, q, k]: softmax of normal scores with a diagonal, which is hard to compress."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(layers, heads, tokens, tokens))
    for layer in range(layers):
        for head in range(heads):
            scores[layer, head] += 4 * np.eye(tokens, k=int(rng.integers(-3, 4)))
    return softmax(scores)


def trace(numbers: np.ndarray) -> Trace:
    words = tuple(f"word{i}" for i in range(numbers.shape[-1]))
    return trace_from_looks(
        *(
            Look(numbers[layer, head], words, words, "self", layer, head, "text", "text")
            for layer in range(numbers.shape[0])
            for head in range(numbers.shape[1])
        )
    )


def opened(tab: Page, file: Path, drawn: str, patience: int) -> dict[str, float]:
    """Seconds until a selector is there, by the page's own clock, and of its main thread."""
    session = tab.context.new_cdp_session(tab)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent() -> float:
        found = session.send("Performance.getMetrics")["metrics"]
        return next(one["value"] for one in found if one["name"] == "TaskDuration")

    tab.goto("about:blank")
    before, start = spent(), time.perf_counter()
    tab.goto(file.as_uri(), wait_until="commit")
    tab.wait_for_selector(drawn, timeout=patience * 1000, state="attached")
    wall, cpu = time.perf_counter() - start, spent() - before
    session.detach()
    return {"ready": wall, "cpu": cpu}


def ours(tab: Page, file: Path, repeats: int) -> dict[str, float]:
    """Our page: ready by its own clock, which starts with the navigation."""
    runs = []
    for _ in range(repeats):
        found = opened(tab, file, "regard-viewer[data-ready]", 60)
        clock = float(tab.eval_on_selector("regard-viewer", "v => v.dataset.ready"))
        runs.append({"ready": clock / 1000, "cpu": found["cpu"]})
    least = {name: min(run[name] for run in runs) for name in runs[0]}
    switches = tab.evaluate(
        """async () => {
            const viewer = document.querySelector("regard-viewer"), times = [];
            const heads = new Set();
            for (let i = 0; i < 40; i++) {
                await new Promise((done) => setTimeout(done, 20));
                const start = performance.now();
                const press = new KeyboardEvent("keydown", {key: "]", bubbles: true});
                document.body.dispatchEvent(press);
                viewer.parts.matrix.flush();
                const canvas = viewer.querySelector("regard-matrix canvas");
                canvas.getContext("2d").getImageData(0, 0, 1, 1);
                times.push(performance.now() - start);
                heads.add(viewer.view.title);
            }
            if (heads.size < Math.min(20, viewer.trace.looks.length)) throw new Error("no switch");
            return times.sort((a, b) => a - b)[20];
        }"""
    )
    return {**least, "switch": switches / 1000}


def bertviz(tab: Page, numbers: np.ndarray, folder: Path, cdn: Path | None) -> dict[str, float]:
    """bertviz's view of all heads, and its view of one layer, on the same weights."""
    import torch
    from bertviz import head_view, model_view

    layers = [torch.tensor(layer[None], dtype=torch.float32) for layer in numbers]
    words = [f"word{i}" for i in range(numbers.shape[-1])]
    found: dict[str, float] = {}
    for name, view, drawn in (
        ("all heads", model_view, "#vis svg path, [id^=bertviz] svg line"),
        ("one layer", head_view, "[id^=bertviz] svg line, #vis svg line"),
    ):
        html = view(layers, words, html_action="return").data
        file = folder / f"{name.replace(' ', '-')}.html"
        file.write_text(f"<!doctype html><meta charset=utf-8><body>{html}", encoding="utf-8")
        found[f"{name}: megabytes"] = file.stat().st_size / 1e6
        if cdn is not None:
            try:
                for key, value in opened(tab, file, drawn, 240).items():
                    found[f"{name}: {key}"] = value
            except Exception as error:
                print(f"bertviz, {name}: not drawn ({str(error).splitlines()[0]})")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cdn", type=Path, help="node_modules with requirejs, jquery and d3")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--without-bertviz", action="store_true")
    chosen = parser.parse_args()
    numbers = weights(LAYERS, HEADS, TOKENS)
    results: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        tab = browser.new_page(viewport={"width": 1440, "height": 900})
        cases = {
            f"{TOKENS} tokens, {LAYERS} × {HEADS} heads": numbers,
            f"{LONG} × {LONG}, one look": weights(1, 1, LONG),
        }
        for case, given in cases.items():
            file = folder / "page.html"
            file.write_text(render_page(trace(given)), encoding="utf-8")
            size = {"megabytes": file.stat().st_size / 1e6}
            results[f"regard, {case}"] = {**size, **ours(tab, file, chosen.repeats)}
            print(f"regard, {case}", json.dumps(results[f"regard, {case}"]), flush=True)
        if find_spec("bertviz") is None:
            print("bertviz: left out, it is not installed (see the top of this file)")
        elif not chosen.without_bertviz:
            tab.close()
            tab = browser.new_page(viewport={"width": 1440, "height": 900})
            if chosen.cdn is not None:
                answer(tab, chosen.cdn)
            results["bertviz"] = bertviz(tab, numbers, folder, chosen.cdn)
            print("bertviz", json.dumps(results["bertviz"]))
        browser.close()


def answer(tab: Page, cdn: Path) -> None:
    """Answer requests for libraries from files, as fast as a disk can."""
    headers = {"content-type": "text/javascript", "access-control-allow-origin": "*"}

    def send(route: Route) -> None:
        name = route.request.url.rsplit("/", 1)[-1]
        route.fulfill(body=(cdn / CDN[name]).read_text("utf-8"), headers=headers)

    for name in CDN:
        tab.route(f"**/{name}", send)


if __name__ == "__main__":
    main()
