"""Gradient flow, steps, training, compare and length in a real browser: clicks, keys, pixels."""

import json
import re
import shutil

import numpy as np
import pytest
import safetensors.torch

from regard.inference import load
from regard.inference.evaluations import keep
from regard.serve import Server
from regard.training.checkpoints import read_tensors

TEXT = "the film was great"
SCREENS = {
    "gradient": {"model": "views", "text": TEXT},
    "steps": {"step": "5"},
    "training": {"model": "pairs", "text": TEXT},
    "compare": {"model": "pairs", "other": "stack", "text": TEXT},
    "length": {"runs": "pairs", "bucket": "0–10"},
}
HOSTILE = (
    "</script><script>window.broken=1</script>",
    "<img src=x onerror=window.broken=1>",
    "\u202egnirts\u202c",
    "👩🏽‍🚀",
    "שלום",
)


@pytest.fixture
def app(app):
    """Windows with patience: some of these screens ask a model several times."""

    def start(*given, **options):
        window = app(*given, **options)
        window.page.set_default_timeout(60_000)
        return window

    return start


@pytest.fixture(scope="module", autouse=True)
def measured(runs):
    """In the folder of one run: sentences, one of them hostile, and weights of earlier steps."""
    found = load(runs["pairs"])
    folder = runs["pairs"].parent
    pairs = [str(folder / "train.aa"), str(folder / "train.bb")]
    keep(found.folder, "test", found.evaluate(pairs, beam=1))
    tensors, told = read_tensors(found.folder.model)
    for step, share in ((2, 0.1), (4, 0.5)):
        less = {name: tensor * share for name, tensor in tensors.items()}
        path = found.folder.checkpoints / f"step-{step}.safetensors"
        path.parent.mkdir(exist_ok=True)
        safetensors.torch.save_file(less, path, {"regard": json.dumps(told)})
    lines = found.folder.evaluations / "test.jsonl"
    hostile = {"source": " ".join(HOSTILE), "reference": HOSTILE[0], "translation": HOSTILE[1]}
    lines.write_text(json.dumps(hostile) + "\n" + lines.read_text("utf-8"), "utf-8")


def wait_for_address(window, **state):
    """The address follows what was chosen, a little later."""
    for name, value in state.items():
        window.page.wait_for_function(
            "([name, value]) => new URLSearchParams(location.search).get(name) === value",
            arg=[name, value],
        )


def test_steps_of_the_sentence_by_space(app):
    window = app().open("steps")
    page = window.page
    assert page.get_by_role("heading", level=2, name="Where does bird look?").is_visible()
    assert window.status() == "Step 1, compare. ‘bird’ and ‘early’: 3"
    assert "0·0 + 2·1.50 + 0.500·0 + 1.25·0 = 3" in page.locator(".rg-sum").inner_text()
    said = []
    for _ in range(4):
        window.press("Space")
        said.append(window.status())
    assert said == [
        "Step 2, scale. ‘bird’ and ‘early’: 1.50",
        "Step 3, mask. ‘bird’ and ‘early’: 1.50",
        "Step 4, softmax. ‘bird’ and ‘early’: 0.344",
        "Step 5, sum. ‘bird’ and ‘early’: 0.344",
    ]
    assert window.state() == {"step": "5"}
    weights = [float(w) for w in page.locator(".rg-weight").all_inner_texts()]
    powers = np.exp([0.0, 1.5, 0.5625, 1.25, 0.0, 0.25])
    np.testing.assert_allclose(weights, powers / powers.sum(), atol=6e-4)
    shades = page.locator(".rg-weight").evaluate_all(
        "all => new Set(all.map(one => getComputedStyle(one).backgroundColor)).size"
    )
    assert shades == 5
    page.get_by_role("button", name="Additive").click()
    assert window.state()["score"] == "additive"
    assert "tanh" in page.locator(".rg-steps-grid").inner_text()
    page.get_by_role("button", name="worm").click()
    assert window.status().startswith("Step 5, sum. ‘worm’ and")
    page.locator(".rg-steps-grid").focus()
    window.press("Home")
    assert window.status().startswith("Step 5, sum. ‘worm’ and ‘The’")
    window.press("ArrowRight")
    assert window.state()["column"] == "1"
    window.press("Space")
    assert window.status().startswith("Step 1")


def test_space_belongs_to_a_button_that_has_the_focus(app):
    window = app().open("steps")
    window.page.get_by_role("button", name="Bilinear").focus()
    window.press("Space")
    assert window.state() == {"score": "bilinear"}


@pytest.mark.parametrize("model", ["pairs", "stack", "prose", "views", "names"])
def test_steps_with_the_numbers_of_a_model(app, ask_trace, model):
    window = app().open("steps", of=model, model=model, text=TEXT, step="4", row="0", shape="table")
    page = window.page
    trace = ask_trace(model, TEXT)
    chosen = page.locator(".rg-steps-of select")
    names = [chosen.nth(i).input_value() for i in range(1, 4)]
    looks = [look for look in trace["looks"] if not names[0] or look["name"] == names[0]]
    layers = [str(look["layer"]) for look in looks if "layer" in look]
    look = next(
        look
        for look in looks
        if (not layers or str(look["layer"]) == max(layers)) and look.get("head", 0) == 0
    )
    cells = page.locator(".rg-table tbody tr td:nth-child(6)").all_inner_texts()
    weights = [float(cell.replace("−", "-")) for cell in cells]
    np.testing.assert_allclose(weights, look["weights"][0][: len(weights)], atol=6e-4)


@pytest.fixture
def ask_trace(server):
    from urllib.request import Request, urlopen

    def ask(model, text, **more):
        body = json.dumps({"text": text, **more}).encode()
        request = Request(
            f"{server.url}/v1/models/{model}/explain",
            body,
            {"content-type": "application/json"},
        )
        with urlopen(request) as answer:
            return json.load(answer)

    return ask


def test_gradient_strips_are_the_attributions(app, ask_trace):
    window = app().open("gradient", **SCREENS["gradient"])
    page = window.page
    words = page.locator(".rg-strip-word")
    assert words.locator(".rg-strip-name").all_inner_texts() == TEXT.split()
    trace = ask_trace("views", TEXT, attributions=True)
    by_method = {one["method"]: one["values"] for one in trace["attributions"]}
    own, apart = by_method["gradient"], by_method["gradient through values"]
    most = max(own + apart)
    heights = page.locator(".rg-strip-bar.lane-1").evaluate_all(
        "all => all.map(bar => bar.getBoundingClientRect().height / bar.parentNode.clientHeight)"
    )
    np.testing.assert_allclose(heights, [value / most for value in own], atol=0.03)
    held = page.locator(".rg-strip-cell:nth-child(3) .apart").evaluate_all(
        "all => all.map(bar => bar.getBoundingClientRect().height / bar.parentNode.clientHeight)"
    )
    np.testing.assert_allclose(held, [max(0.015, value / most) for value in apart], atol=0.03)
    words.nth(1).click()
    assert window.status().startswith("‘film’: weight")
    page.locator(".rg-strips").focus()
    window.press("ArrowRight")
    assert window.status().startswith("‘was’: weight")
    wait_for_address(window, row="2")
    window.press("Home")
    assert words.nth(0).get_attribute("aria-selected") == "true"
    before = page.locator(".rg-strip-frame").screenshot()
    page.get_by_label("Detached", exact=True).select_option("around")
    window.ready()
    assert page.locator(".rg-strip-frame").screenshot() != before
    window.press("t")
    assert page.locator(".rg-table tbody tr").count() == 4


def test_gradient_of_one_of_several_answers(app):
    window = app().open("gradient", model="pairs", text=TEXT)
    picker = window.page.get_by_label("Answer")
    picker.select_option(index=0)
    window.ready()
    heading = window.page.locator(".rg-card-head h2").inner_text()
    assert picker.locator("option").first.inner_text().split(". ")[1] in heading
    assert window.state()["output"] == "0"


def test_compare_draws_the_difference_on_its_own_scale(app, ask_trace):
    window = app().open("compare", **SCREENS["compare"])
    page = window.page
    assert window.colours(".rg-half[aria-label=First] canvas") > 10
    assert window.colours(".rg-half[aria-label=Second] canvas") > 10
    assert window.colours("rg-difference canvas") > 10
    first = ask_trace("pairs", TEXT)
    first = ask_trace("pairs", TEXT, target=first["output"])
    other = ask_trace("stack", TEXT, target=first["output"])
    matrix = np.array(next(look["weights"] for look in first["looks"] if look["name"] == "source"))
    last = max(look["layer"] for look in other["looks"] if look["name"] == "decoder.source")
    heads = [
        look["weights"]
        for look in other["looks"]
        if look["name"] == "decoder.source" and look["layer"] == last
    ]
    gap = matrix - np.mean(heads, axis=0)
    page.locator("rg-difference .matrix-scroller").focus()
    window.press("Control+Home")
    assert window.status().endswith(f"difference {gap[0, 0]:+.2f}".replace("-", "−")) or (
        abs(gap[0, 0]) < 0.005
    )
    key = page.locator(".rg-difference-key").get_attribute("aria-label")
    assert f"{np.abs(gap).max():.2f}" in key
    page.locator(".rg-gaps button").first.click()
    row, column = (int(window.state()[name]) for name in ("row", "column"))
    assert abs(abs(gap[row, column]) - np.abs(gap).max()) < 1e-3
    window.press("t")
    line = page.locator(".rg-table tbody tr").first.locator("td").all_inner_texts()
    a, b, difference = (float(cell.replace("−", "-").replace("<", "")) for cell in line[1:])
    assert abs(a - b - difference) < 0.02


def test_both_signs_are_equally_light(app):
    """Contrast with white of the two hues, level by level."""
    window = app().open("compare", **SCREENS["compare"])
    gaps = window.page.evaluate(
        """async () => {
          const { palette } = await import("/page/colours.js");
          const light = css => {
            const part = css.match(/\\d+/g).map(n => n / 255).map(
              n => n <= 0.04045 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4);
            return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
          };
          return palette().css.map((css, i) => Math.abs(light(css) - light(palette(true).css[i])));
        }"""
    )
    assert max(gaps) < 0.12


def test_compare_two_heads_of_one_model(app):
    window = app().open("compare", model="stack", other="stack", text=TEXT)
    page = window.page
    assert page.get_by_label("Layer of A").input_value() == "1"
    assert page.get_by_label("Layer of B").input_value() == "0"
    page.get_by_label("Look of A").select_option("encoder.self")
    window.ready()
    assert page.get_by_label("Look of B").input_value() == "encoder.self"
    assert window.colours("rg-difference canvas") > 10
    page.get_by_label("Look of B").select_option("decoder.source")
    page.wait_for_selector("text=do not have the same words")


def test_training_curves_and_samples(app, runs):
    window = app().open("training", **SCREENS["training"])
    page = window.page
    page.wait_for_selector(".rg-live.finished")
    written = (runs["pairs"] / "metrics.jsonl").read_text("utf-8")
    lines = [json.loads(line) for line in written.splitlines()]
    charts = page.locator("rg-chart")
    losses = [line["loss"] for line in lines if line.get("loss") is not None]
    assert charts.nth(0).locator("circle").count() == len(losses)
    charts.nth(1).locator(".rg-chart-frame").focus()
    window.press("Home")
    assert window.status().startswith(f"step {lines[0]['step']}: BLEU")
    assert f"at step {lines[0]['step']}" in page.locator(".rg-samples").inner_text()
    assert window.state()["point"] == str(lines[0]["step"])
    window.press("t")
    assert page.locator(".rg-two table").count() == 2
    first = page.locator(".rg-two table").first.locator("tbody tr").first.inner_text().split()
    assert float(first[1]) == pytest.approx(losses[0], abs=0.01)


def test_training_replays_checkpoints(app, server):
    window = app().open("training", **SCREENS["training"])
    page = window.page
    slider = page.get_by_label("Checkpoint")
    last = int(slider.get_attribute("max"))
    assert last >= 1
    assert slider.get_attribute("aria-valuetext") == "final weights"
    canvas = page.locator(".rg-replay regard-matrix")
    final = canvas.screenshot()
    slider.focus()
    window.press("Home")
    window.ready()
    assert window.state()["at"].startswith("step-")
    assert re.match(r"step \d+: ‘.+’ looks at ‘.+’, [01]\.\d\d", window.status())
    assert window.colours(".rg-replay canvas") > 5
    assert canvas.screenshot() != final
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_function(
        "last => document.querySelector('.rg-track input').value === last", arg=str(last)
    )
    page.wait_for_selector(".rg-player button:has-text('Play')")
    assert "at" not in window.state()


def test_training_follows_a_run_in_progress(app, runs, tmp_path):
    folder = tmp_path / "growing"
    folder.mkdir()
    shutil.copy(runs["views"] / "config.json", folder)
    lines = (runs["views"] / "metrics.jsonl").read_text("utf-8").splitlines()
    (folder / "metrics.jsonl").write_text("", "utf-8")
    with Server([folder]) as server:
        window = app(server.url).open("training")
        page = window.page
        assert "Waiting for the first look" in page.locator("main").inner_text()
        assert "no weights yet" in page.locator("[aria-label=Replay]").inner_text()
        with (folder / "metrics.jsonl").open("a") as file:
            file.write(lines[0] + "\n")
        page.wait_for_selector(".rg-live.live")
        step = str(json.loads(lines[0])["step"])
        page.wait_for_function(
            "step => document.querySelector('.rg-tile-value')?.textContent === step", arg=step
        )
        with (folder / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(json.loads(lines[0]) | {"step": 4321, "loss": 0.125}) + "\n")
        page.wait_for_selector(".rg-tile-value:has-text('4321')")
        assert "0.125" in page.locator(".rg-tiles").inner_text()
        page.goto("about:blank")


def test_length_by_bucket(app, runs):
    window = app().open("length", runs="pairs")
    page = window.page
    kept = json.loads((runs["pairs"] / "evaluations/test.json").read_text("utf-8"))
    assert page.get_by_label("Evaluation").input_value() == "test"
    assert page.locator("rg-chart circle").count() == len(kept["by_length"])
    page.locator(".rg-chart-frame").focus()
    window.press("Home")
    window.ready()
    bucket, found = next(iter(kept["by_length"].items()))
    assert window.state()["bucket"] == bucket
    assert window.status().startswith(f"words {bucket}: {found['name']}")
    assert f"{found['n']} examples" in window.status()
    assert page.locator(".rg-lines li").count() > 5
    assert page.evaluate("window.broken") is None
    page.get_by_label("Evaluation").select_option("validation")
    window.ready()
    page.locator("rg-chart svg").click(position={"x": 300, "y": 100})
    window.ready()
    assert "No sentences were kept" in page.locator("main").inner_text()
    window.press("t")
    assert page.locator(".rg-table tbody tr").count() >= 1


def test_length_of_several_runs(app):
    window = app().open("length", runs="pairs,stack", evaluation="validation")
    page = window.page
    assert page.locator(".rg-series-name").all_inner_texts() == ["pairs", "stack"]
    page.get_by_role("button", name="stack · translation").click()
    assert window.state()["runs"] == "pairs"
    page.get_by_role("button", name="views · classify").click()
    window.ready()
    assert window.state()["runs"] == "views"
    page.get_by_role("button", name="names · tag").click()
    window.ready()
    assert page.locator(".rg-series-name").all_inner_texts() == ["names"]


@pytest.mark.parametrize("screen", SCREENS)
def test_a_small_screen_needs_no_sideways_scrolling(app, screen):
    window = app(viewport={"width": 390, "height": 844}).open(screen, **SCREENS[screen])
    assert not window.sideways()
    window.press("t")
    window.ready()
    assert not window.sideways()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", SCREENS)
def test_axe_finds_nothing(app, screen, scheme):
    window = app(color_scheme=scheme, bypass_csp=True, reduced_motion="reduce")
    window.open(screen, **SCREENS[screen])
    assert not window.findings()
    window.press("t")
    window.ready()
    assert not window.findings()


@pytest.mark.parametrize("screen", ["gradient", "steps", "training", "compare"])
def test_hostile_words_change_nothing(app, screen):
    window = app()
    text = " ".join([*HOSTILE, "x" * 200])
    state = SCREENS[screen] | {"text": text} | ({"of": "views"} if screen == "steps" else {})
    page = window.open(screen, **state).page
    window.press("t")
    window.ready()
    assert page.evaluate("window.broken") is None
    assert page.locator("rg-app img").count() == 0
    assert page.locator("script").count() == 1
    assert not window.sideways()
    shown = "[...document.querySelectorAll('.rg-place, footer')].map(n => n.innerText).join(' ')"
    assert "\u202e" not in page.evaluate(shown)


@pytest.mark.parametrize("screen", SCREENS)
def test_a_hostile_address_changes_nothing(app, screen):
    bad = "<script>window.broken=1</script>"
    names = ("model", "other", "of", "score", "step", "look", "layer", "head", "row", "column")
    more = ("detached", "output", "at", "point", "metric", "runs", "bucket", "evaluation")
    window = app()
    window.open(screen, text=TEXT, **dict.fromkeys((*names, *more, "__proto__"), bad))
    assert window.page.evaluate("window.broken") is None
    assert window.page.get_by_role("alert").count() == 0


def test_right_to_left_words_are_walked_from_the_right(app):
    window = app().open("gradient", model="views", text="החתול ישן על הכיסא", row="0")
    window.page.locator(".rg-strips").focus()
    window.press("ArrowLeft")
    assert window.status().startswith("‘ישן’")
    wait_for_address(window, row="1")


def test_too_long_a_text_is_refused_in_words(app):
    window = app().open("gradient", model="views", text="word " * 300)
    assert "1000 at most" in window.page.get_by_role("alert").inner_text()
