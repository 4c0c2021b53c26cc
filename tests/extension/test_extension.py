"""Another package adds a score, an encoder, an explain method, a metric and a task.

It is installed as any package is and found by its entry points alone; each of its parts goes
through the commands and the server. No file of Regard knows it.
"""

import json
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TEXTS = {"1": "awful dull film", "3": "an ordinary film", "5": "a wonderful bright film"}


def regard(*words: object, site: Path, cwd: Path, expect: int = 0, **options) -> str:
    """Run a command in a process of its own, with the package on its path."""
    environment = os.environ | {"PYTHONPATH": f"{site}{os.pathsep}{HERE.parents[1]}"}
    done = subprocess.run(
        [sys.executable, "-m", "regard", *map(str, words)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        **options,
    )
    assert done.returncode == expect, done.stderr
    return done.stdout if expect == 0 else done.stderr


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """A folder in which the package is installed."""
    work = tmp_path_factory.mktemp("extension")
    shutil.copytree(
        HERE, work / "source", ignore=shutil.ignore_patterns("test_*", "__pycache__", "build")
    )
    target = work / "site"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    install += ["--no-build-isolation", "--disable-pip-version-check", "--target", str(target)]
    subprocess.run([*install, str(work / "source")], check=True, timeout=120)
    return target


@pytest.fixture(scope="module")
def work(site, tmp_path_factory) -> Path:
    """A folder with ratings and a run that uses the task, the encoder and the score at once."""
    folder = tmp_path_factory.mktemp("work")
    rows = [f"{TEXTS[rating]} {i % 7}\t{rating}" for i in range(120) for rating in TEXTS]
    (folder / "ratings.tsv").write_text("text\tlabel\n" + "\n".join(rows) + "\n")
    regard(
        *("train", "rate", "--data", "ratings.tsv", "--out", "run", "--width", 16),
        *("--encoder", "neighbours", "--pooling", "weighted", "--attention", "distance"),
        *("--epochs", 12, "--learning-rate", 0.02, "--batch-tokens", 64),
        site=site,
        cwd=folder,
    )
    return folder


def test_the_run_names_what_it_is_made_of(work):
    config = json.loads((work / "run/config.json").read_text())
    assert config["task"] == "rate"
    assert config["model"]["encoder"] == "neighbours"
    assert config["model"]["attention"] == "distance"


def test_predict_and_evaluate(site, work):
    texts = "a wonderful bright film 1\n\nawful dull film 2\n"
    lines = regard("predict", "run", site=site, cwd=work, input=texts).splitlines()
    assert len(lines) == 3
    assert lines[1] == ""
    assert float(lines[0]) > 4 > 2 > float(lines[2])
    table = regard("evaluate", "run", "--data", "ratings.tsv", site=site, cwd=work)
    assert "mean absolute error" in table
    (saved,) = (work / "run/evaluations").glob("ratings-*.json")
    assert json.loads(saved.read_text())["higher"] is False


def test_show_and_explain(site, work):
    shown = regard("show", "run", "--text", "a wonderful bright film", site=site, cwd=work)
    assert "wonderful" in shown
    regard("show", "run", "--text", "a dull film", "--to", "page.html", site=site, cwd=work)
    trace = regard("explain", "run", "--text", "a dull film", "--json", site=site, cwd=work)
    methods = {one["method"] for one in json.loads(trace)["attributions"]}
    assert {"attention", "gradient", "leave-one-out", "word length"} <= methods
    looks = {look["name"] for look in json.loads(trace)["looks"]}
    assert looks == {"encoder.self", "pooling"}
    table = regard("explain", "run", "--text", "a dull film", site=site, cwd=work)
    assert "length" in table
    measured = regard(
        *("explain", "run", "--data", "ratings.tsv", "--faithfulness", "--limit", 12, "--json"),
        site=site,
        cwd=work,
    )
    assert "word length" in json.loads(measured)["comprehensiveness"]


def test_commands_that_do_not_apply_say_so(site, work):
    for words, expected in (
        (("generate", "run"), "generate does not apply to rate runs"),
        (("score", "run", "--data", "ratings.tsv"), "score does not apply to rate runs"),
        (("align", "run", "--data", "a", "b"), "alignment does not apply to rate runs"),
        (("predict", "run", "--beam", "3"), "--beam does not apply to rate runs"),
        (("evaluate", "run", "--metrics", "within_one"), "--metrics does not apply to rate runs"),
        (("explain", "run", "--words"), "--words does not apply to rate runs"),
    ):
        *warned, error = regard(*words, site=site, cwd=work, expect=2).splitlines()
        assert expected in error
        assert all("'broken'" in warning for warning in warned)


@contextmanager
def serving(site: Path, work: Path) -> Iterator[str]:
    """The address of a server of the run, in a process of its own."""
    environment = os.environ | {"PYTHONPATH": f"{site}{os.pathsep}{HERE.parents[1]}"}
    with subprocess.Popen(
        [sys.executable, "-m", "regard", "serve", "run", "--port", "0"],
        cwd=work,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            yield server.stdout.readline().split()[0]
        finally:
            server.terminate()
            server.wait(30)


def test_the_server_offers_it(site, work):
    with serving(site, work) as url:
        (card,) = _ask(f"{url}/v1/models")["data"]
        assert card["task"] == "rate"
        assert card["screens"][0] == "self-attention"
        assert card["examples"] == ["a good film", "not good at all"]
        answers = _ask(f"{url}/v1/models/run/predict", {"inputs": "a wonderful film"})
        assert float(answers[0]["generated_text"]) > 0
        body = {"text": "a wonderful film", "attributions": True}
        trace = _ask(f"{url}/v1/models/run/explain", body)
        assert "word length" in {one["method"] for one in trace["attributions"]}


def _ask(url: str, body: object = None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def test_each_part_works_in_tasks_of_ours(site, tmp_path):
    small = ("--width", 16, "--steps", 2, "--batch-tokens", 256)
    regard(
        *("train", "translation", *small, "--attention", "distance", "--out", "mt"),
        site=site,
        cwd=tmp_path,
    )
    regard(
        *("train", "tag", *small, "--encoder", "neighbours", "--out", "ner"),
        site=site,
        cwd=tmp_path,
    )
    regard(
        *("train", "language", *small, "--model", "neighbours", "--window-tokens", 16),
        *("--out", "lm"),
        site=site,
        cwd=tmp_path,
    )
    assert "decoder.self" in regard("show", "lm", "--text", "the old", site=site, cwd=tmp_path)
    assert regard("generate", "lm", "--prompt", "the old", "--tokens", 3, site=site, cwd=tmp_path)
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"a cat {i}\tun chat {i}\n" for i in range(4)))
    table = regard(
        *("evaluate", "mt", "--data", pairs, "--beam", 1, "--metrics", "within_one"),
        site=site,
        cwd=tmp_path,
    )
    assert "length within one" in table
    wrong = regard(
        *("evaluate", "ner", "--metrics", "within_one"), site=site, cwd=tmp_path, expect=2
    )
    assert "compares texts, not tag sequences" in wrong


def test_a_reference_needs_no_entry_point(site, tmp_path):
    regard(
        *("train", "classify", "--width", 16, "--steps", 2, "--out", "run"),
        *("--encoder", "self", "--attention", "regard_extension.scores:negative_distance"),
        site=site,
        cwd=tmp_path,
    )
    shown = regard("show", "run", "--text", "a good film", site=site, cwd=tmp_path)
    assert "good" in shown
    without = tmp_path / "nothing"
    without.mkdir()
    error = regard("show", "run", "--text", "a good film", site=without, cwd=tmp_path, expect=2)
    assert "regard_extension.scores:negative_distance" in error


def test_a_broken_plug_in_is_named_and_breaks_nothing(site, tmp_path):
    help_text = regard("train", "--help", site=site, cwd=tmp_path)
    assert "rate texts from 1 to 5" in help_text
    error = regard("train", "broken", site=site, cwd=tmp_path, expect=2)
    assert "broken" in error
    assert "regard_extension.missing" in error
