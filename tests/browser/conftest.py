"""A browser, a server with tiny trained runs, and windows that note every error and request."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest

from tests.browser.screens import HOSTILE
from tests.training.tiny import OPTIONS, write_data

HERE = Path(__file__).parent
CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
AXE = HERE / "node_modules/axe-core/axe.min.js"
TRANSFORMER = {"model": "transformer", "layers": 2, "heads": 2}
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "pairs": ("translation", {}),
    "stack": ("translation", TRANSFORMER),
    "prose": ("language", {"attention": "dot", "learning_rate": 0.01, "steps": 3, "ngrams": 0}),
    "views": ("classify", {}),
    "asking": ("classify", {"pooling": "fixed", "queries": 2, "encoder": "none"}),
    "names": ("tag", {"encoder": "transformer", "layers": 1, "heads": 2, "experts": 3}),
    "plain": ("translation", {"attention": "none"}),
    "copy": ("algorithm", {"longest": 4, "slots": 7, "slot_width": 6, "write_heads": 2}),
}
"""What is served: a name, its task, and options besides those of every tiny run."""


def need(present: bool, what: str) -> None:
    """Skip without it; under CI fail."""
    if present:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} is missing, and under CI these tests must run")
    pytest.skip(f"{what} is missing")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium; one for each file, since two drivers cannot run in one thread."""
    need(Path(CHROMIUM).exists(), CHROMIUM)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        need(False, "the package playwright")
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of runs by name."""
    import regard

    made = {}
    for name, (task, more) in RUNS.items():
        folder = tmp_path_factory.mktemp(f"app-{name}")
        options = OPTIONS.get(task, {"width": 8}) | {"steps": 6, "average": 1} | more
        data = write_data(folder, task) if task in OPTIONS else None
        run = regard.train(task, data, out=folder / name, **options)
        made[name] = run.folder.path
    measure(made["pairs"], made["views"])
    return made


def measure(pairs: Path, views: Path) -> None:
    """What people leave in folders of runs: an evaluation with a hostile sentence, weights of
    earlier steps, and a report of faithfulness."""
    from regard.inference import evaluations, load
    from regard.inference.explain import faithfulness_reports as reports
    from regard.inference.explain.faithfulness import faithfulness
    from regard.training.tensor_files import read_tensors, write_tensors

    found = load(pairs)
    files = [str(pairs.parent / "train.aa"), str(pairs.parent / "train.bb")]
    evaluations.save_evaluation(found.folder, "test", found.evaluate(files, beam=1))
    lines = found.folder.evaluations / "test.jsonl"
    hostile = {"source": " ".join(HOSTILE), "reference": HOSTILE[0], "translation": HOSTILE[1]}
    lines.write_text(json.dumps(hostile) + "\n" + lines.read_text("utf-8"), "utf-8")
    tensors, told = read_tensors(found.folder.model)
    for step, share in ((2, 0.1), (4, 0.5)):
        less = {name: tensor * share for name, tensor in tensors.items()}
        path = found.folder.checkpoints / f"step-{step}.safetensors"
        write_tensors(path, less, told)
    judge = load(views)
    texts = [
        f"the {thing} {words}"
        for thing in ("film", "plot")
        for words in ("was great", "is not very bad", "was not great", "is bad", "was not bad")
    ]
    reports.save_report(judge.folder, "some", faithfulness(judge, texts, shuffles=2))


@pytest.fixture(scope="session")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment that was run, one whose claim did not hold, and two comparisons."""
    from regard.compare.comparison_folder import FORMAT
    from regard.experiments.experiment_results import run_experiment

    folder = tmp_path_factory.mktemp("evidence")
    run_experiment("permutation", folder / "permutation", "tiny")
    result = json.loads((folder / "permutation/result.json").read_text("utf-8"))
    svg = (folder / "permutation" / result["pictures"][0]).read_text("utf-8")
    harm = "<script>window.broken=1</script>"
    hostile = {"name": "foreign", "claim": HOSTILE[0], "summary": HOSTILE[1], "held": False}
    hostile["tables"] = {HOSTILE[1]: {"columns": HOSTILE, "rows": [[*HOSTILE], 3, None]}, "b": 1}
    for name in ("foreign", "tiny", "begun"):
        (folder / name).mkdir()
    (folder / "foreign/result.json").write_text(json.dumps(result | hostile), "utf-8")
    (folder / "foreign" / result["pictures"][0]).write_text(
        svg.replace("</title>", f"</title>{harm}")
    )
    plan = json.dumps({"format": FORMAT, "task": "classify", "seeds": 2})
    (folder / "tiny/comparison.json").write_text(plan)
    (folder / "tiny/report.json").write_text(json.dumps(comparison_record()), "utf-8")
    (folder / "begun/comparison.json").write_text(plan)
    return folder


def comparison_record() -> dict[str, Any]:
    """The report of a comparison of three systems, with values to find again on the screen."""
    from regard.compare.comparison_result import make_result

    def record(seed: int, shift: float) -> dict[str, Any]:
        value = 0.8 + shift + 0.01 * seed
        measured = {"name": "accuracy", "unit": "share", "value": value}
        interval = {"low": value - 0.02, "high": value + 0.02}
        return {
            "label": f"seed {seed}",
            "metric": measured | interval,
            "higher": True,
            "examples": 100,
            "resampled": [value + 0.001 * (i % 7) for i in range(50)],
            "parameters": 1234,
            "by_length": {"0–10": {"value": value}, "11–20": {"value": value - 0.1}},
            "items_per_second": 100.0,
            "processor_seconds": 3.0,
            "peak_memory": 2e8,
            "updates": 10,
        }

    systems = {"pooling sum": 0.0, "pooling self": 0.1, HOSTILE[1]: 0.05}
    records = {name: [record(seed, shift) for seed in (1, 2)] for name, shift in systems.items()}
    impossible = {"pooling none": "no such network"}
    return make_result(records, task="classify", budget="10 steps", impossible=impossible).record()


@pytest.fixture(scope="session")
def server(runs: dict[str, Path], evidence: Path) -> Iterator[Any]:
    """All runs and results behind one server."""
    from regard.serve import Server

    told: list[str] = []
    with Server(list(runs.values()), evidence=[evidence], on_error=told.append) as made:
        yield made
    assert told == []


class AppWindow:
    """A window of the app."""

    def __init__(self, browser: Any, url: str, **options: Any) -> None:
        wanted = {"viewport": {"width": 1440, "height": 900}, "accept_downloads": True} | options
        self.url = url
        self.context = browser.new_context(**wanted)
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.expected: list[str] = []
        """Parts of errors that a test brings about."""
        self.page.on("console", lambda message: self.errors.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def open(self, screen: str, **state: str) -> "AppWindow":
        """Go to a screen and wait until it has drawn."""
        query = f"?{urlencode(state)}" if state else ""
        self.page.goto(f"{self.url}/{screen}{query}")
        return self.ready()

    def ready(self) -> "AppWindow":
        """Wait until nothing is under way."""
        self.page.wait_for_selector("rg-app[data-ready]")
        self.page.wait_for_selector("main:not([aria-busy])")
        self.page.wait_for_timeout(60)
        return self

    def status(self) -> str:
        """What is spoken."""
        return str(self.page.locator("rg-app > footer [role=status]").inner_text())

    def press(self, *keys: str) -> None:
        """Keys, one after the other."""
        for key in keys:
            self.page.keyboard.press(key)
        self.page.wait_for_timeout(60)

    def colours(self, selector: str) -> int:
        """Distinct colours of a canvas."""
        found = self.page.eval_on_selector(
            selector,
            """canvas => new Set(new Uint32Array(canvas.getContext('2d').getImageData(
                0, 0, canvas.width, canvas.height).data.buffer)).size""",
        )
        return int(found)

    def state(self) -> dict[str, str]:
        """The query of the address."""
        self.page.wait_for_timeout(200)
        found: dict[str, str] = self.page.evaluate(
            "Object.fromEntries(new URLSearchParams(location.search))"
        )
        return found

    def findings(self) -> list[Any]:
        """What axe-core has against the page."""
        need(AXE.exists(), "axe-core (npm ci in tests/browser)")
        self.page.evaluate(AXE.read_text("utf-8"))
        found = self.page.evaluate("axe.run().then(result => result.violations)")
        return [
            (
                one["id"],
                [(n["html"][:160], n.get("failureSummary", "")[-260:]) for n in one["nodes"]],
            )
            for one in found
        ]

    def sideways(self) -> bool:
        """Whether the page is wider than its window."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth > innerWidth"))

    def save(self, kind: str, folder: Path, which: int = 0) -> Path:
        """What one of the menus saves."""
        menu = self.page.locator(".rg-menu-box").filter(has_text="Save").nth(which)
        menu.locator("summary").click()
        with self.page.expect_download() as waiting:
            menu.get_by_role("button", name=f"Save as {kind}", exact=True).click()
        file = folder / waiting.value.suggested_filename
        waiting.value.save_as(file)
        return file

    def quiet(self) -> None:
        """Nothing was said in the console, and nobody else was asked."""
        own = (self.url, "data:", "blob:")
        assert not [url for url in self.requests if not url.startswith(own)]
        assert not [e for e in self.errors if not any(part in e for part in self.expected)]


@pytest.fixture
def app(browser: Any, server: Any) -> Iterator[Callable[..., AppWindow]]:
    """Opens windows; each must have been quiet in the end."""
    windows: list[AppWindow] = []

    def start(url: str = server.url, **options: Any) -> AppWindow:
        windows.append(AppWindow(browser, url, **options))
        return windows[-1]

    yield start
    for window in windows:
        window.quiet()
        window.context.close()


@pytest.fixture
def ask_trace(server: Any) -> Callable[..., Any]:
    """What the server itself says of a text."""

    def ask(model: str, text: str, **more: Any) -> Any:
        body = json.dumps({"text": text, **more}).encode()
        kind = {"content-type": "application/json"}
        with urlopen(Request(f"{server.url}/v1/models/{model}/explain", body, kind)) as answer:
            return json.load(answer)

    return ask
