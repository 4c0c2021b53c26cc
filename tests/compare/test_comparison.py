"""A comparison from its data to its reports; it resumes, and a failure does not end it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread
from xml.etree import ElementTree

import numpy as np
import pytest

import regard
from regard.cli import main
from regard.compare.cell_budget import parse_budget
from regard.compare.cell_worker import (
    RESAMPLES,
    accuracy_of_one_answer,
    gives_one_answer,
    resampled_values,
    run_cell,
)
from regard.compare.comparison_folder import ComparisonFolder, failure
from regard.compare.comparison_result import make_result
from regard.compare.equal_parameters import Size, Sizes, equal_sizes, make_equal
from regard.compare.grid import make_grid
from regard.compare.prepared_systems import count_parameters
from regard.errors import RegardError
from regard.metrics import accuracy, metric_value
from regard.tasks.registry import TASKS

OPTIONS = {"width": 8, "batch_tokens": 200, "budget": "steps=3", "seeds": 2}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "texts.tsv"
    lines = [f"the {w} film {i} {w}\t{w}" for i in range(60) for w in ("good", "bad")]
    path.write_text("text\tlabel\n" + "\n".join(lines) + "\n", "utf-8")
    return str(path)


class InThisProcess:
    """Trains cells here, which costs no start of processes, and can fail on purpose."""

    def __init__(self, fails=()):
        self.fails, self.trained = fails, []

    def __call__(self, folder, cells, finished):
        for cell in cells:
            self.trained.append(cell.label)
            if cell.label in self.fails:
                record = failure(cell.label, "no memory left")
                folder.write(folder.record(cell.name), record)
            else:
                record = run_cell(folder, cell.name)
            finished(cell, record)


def test_from_data_to_reports(tmp_path, data, capsys):
    lines, train = [], InThisProcess(fails=["pooling sum, seed 2"])
    arguments = {"data": data, "vary": {"pooling": ["sum", "mean"]}, "out": tmp_path / "c"}
    arguments |= {"log": lines.append, **OPTIONS}
    first = regard.compare("classify", **arguments, run_cells=train)
    assert len(train.trained) == 4
    assert lines[0].startswith("no --test: the data was split")
    assert any("4 trainings of 2 systems" in line and "of training" in line for line in lines)
    assert first.failed == {"pooling sum, seed 2": "no memory left"}
    assert "1 training failed and is left out" in first.verdict
    assert {one.label: one.seeds for one in first.systems} == {"pooling sum": 1, "pooling mean": 2}

    again = InThisProcess()  # what failed is tried again, what is done is not
    result = regard.compare("classify", **arguments, run_cells=again)
    assert again.trained == ["pooling sum, seed 2"]
    assert not result.failed
    more = InThisProcess()  # more seeds extend a comparison
    regard.compare("classify", **(arguments | {"seeds": 3}), run_cells=more)
    assert [label[-6:] for label in more.trained] == ["seed 3", "seed 3"]

    with pytest.raises(RegardError, match="contains a different comparison"):
        regard.compare("classify", **(arguments | {"vary": {"pooling": ["sum", "max"]}}))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").touch()
    with pytest.raises(RegardError, match="already contains other files"):
        regard.compare("classify", **(arguments | {"out": tmp_path / "other"}))

    command = (  # as a report says it, which repeats the comparison
        f"regard compare classify --vary pooling=sum,mean --seeds 3 --budget steps=3 --width 8 "
        f"--batch-tokens 200 --data {data}"
    )
    assert f"```sh\n{command}\n```" in (tmp_path / "c/report.md").read_text("utf-8")
    assert command in (tmp_path / "c/report.html").read_text("utf-8")
    assert main([*command.split()[1:], "--out", str(tmp_path / "c"), "--quiet"]) == 0
    capsys.readouterr()

    row = result.table[0]
    assert set(row) >= {"system", "accuracy", "low", "high", "parameters", "peak_memory_mb"}
    assert row["low"] <= row["accuracy"] <= row["high"]
    html = (tmp_path / "c/report.html").read_text("utf-8")
    assert result.systems[0].label in html
    assert "<script" not in html
    assert "| pooling" in (tmp_path / "c/report.md").read_text("utf-8")
    record = json.loads((tmp_path / "c/report.json").read_text("utf-8"))
    assert len(record["pairs"]) == 1
    assert ElementTree.fromstring(result.plot().svg).tag.endswith("svg")
    assert result.verdict in repr(result)
    assert "<table>" in result._repr_html_()


def test_the_same_test_sentences_for_all_and_none_of_them_in_training(tmp_path, data):
    folder = ComparisonFolder(tmp_path / "c")
    options = OPTIONS | {"seeds": 1}
    regard.compare(
        "classify",
        data,
        vary={"pooling": ["sum", "mean"]},
        out=folder.path,
        run_cells=InThisProcess(),
        **options,
    )
    texts = {
        path.stem: {json.loads(line)["text"] for line in path.read_text("utf-8").splitlines()}
        for path in folder.data.iterdir()
    }
    assert {*texts} == {"train", "valid", "test"}
    assert not texts["test"] & (texts["train"] | texts["valid"])
    jobs = [folder.read(path) for path in folder.path.glob("cells/*.job.json")]
    assert len({tuple(job["test"]) for job in jobs}) == 1


def test_resampled_values_are_those_of_resampled_sentences():
    tally = accuracy(["a", "b", "b", "a", "a"], ["a", "b", "a", "a", "b"])
    values = resampled_values(tally)
    assert len(values) == RESAMPLES
    assert set(np.round(5 * np.array(values), 9)) <= {0, 1, 2, 3, 4, 5}
    assert np.mean(values) == pytest.approx(metric_value(tally), abs=0.03)


def test_equal_parameters(tmp_path, data):
    result = regard.compare(
        "classify",
        data,
        vary={"encoder": ["recurrent", "none"], "pooling": ["sum", "weighted"]},
        equal="parameters",
        out=tmp_path / "c",
        run_cells=InThisProcess(),
        **(OPTIONS | {"seeds": 1, "width": 24, "budget": "steps=1"}),
    )
    sizes = [one.parameters for one in result.systems]
    assert len(sizes) == 4
    assert max(sizes) <= 1.01 * min(sizes)


def test_widths_that_cannot_be_equal():
    def widths(*sizes):
        found = equal_sizes(sizes, 20 + (even in sizes))
        return found and [size.options["width"] for size in found]

    every = Sizes(range(10, 40), lambda width: True, lambda width: width * width)
    large = Sizes(range(10, 20), lambda width: True, lambda width: 10**6 * width)
    even = Sizes(range(10, 40), lambda width: width % 2 == 0, lambda width: width * width)
    assert widths(every, large) is None
    assert widths(every, even) == [20, 20]
    assert widths(even, every) == [20, 20]


def test_feed_forward_networks_make_up_for_widths_that_heads_allow():
    every = Sizes(range(10, 40), lambda width: True, lambda width: width * width)
    options = {"width": 32, "feed_forward": 9}
    tens = Sizes(range(10, 40), lambda w: w % 32 == 0, lambda width: width * width)
    assert equal_sizes([every, tens], 21) is not None  # far away, at width 32
    adjusted = Sizes(tens.widths, tens.fits, tens.count, lambda w, wanted: Size(wanted, options))
    assert equal_sizes([every, adjusted], 21) == [Size(441, {"width": 21}), Size(441, options)]


def test_recurrent_networks_and_transformers_of_equal_size(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"a {n} b\tc {n} d\n" for n in range(60)), "utf-8")
    vary = {"attention": ["none", "dot"], "model": ["recurrent", "transformer"]}
    made = make_grid(TASKS["translation"], {"data": [str(path)]}, vary, parse_budget("steps=1"))
    folder = ComparisonFolder(tmp_path / "c")
    systems = make_equal(TASKS["translation"], made.systems, folder)
    assert len(systems) == 3
    counts = [count_parameters(TASKS["translation"], one.options, folder) for one in systems]
    assert max(counts) <= 1.01 * min(counts)
    by_model = {one.varied["model"]: one.options for one in systems}
    assert "feed_forward" not in by_model["recurrent"]
    assert by_model["transformer"]["feed_forward"] > 0


def records(values, spread=0.01, higher=True):
    """Records of one system whose metric is known."""
    rng = np.random.default_rng(0)
    noise = rng.normal(0, spread, RESAMPLES)
    return [
        {
            "label": "x",
            "metric": {"name": "accuracy", "value": v, "low": v, "high": v, "unit": "share"},
            "higher": higher,
            "examples": 100,
            "resampled": list(v + noise),
            "by_length": {},
            "parameters": 10,
        }
        for v in values
    ]


def result(**systems):
    return make_result(systems, task="t", budget="1 epochs", impossible={})


def test_the_verdict_claims_no_more_than_the_test_shows():
    clear = result(a=records([0.9, 0.91, 0.9]), b=records([0.7, 0.71, 0.72]))
    assert clear.verdict.startswith("a is better than b (accuracy, 1 epochs each, 100 test ex")
    equal = result(a=records([0.9, 0.8, 0.85]), b=records([0.84, 0.9, 0.8]))
    assert equal.verdict.startswith("No difference that this test can see")
    assert "a true difference of about" in equal.verdict
    mixed = result(
        a=records([0.9, 0.91, 0.9]), b=records([0.9, 0.9, 0.91]), c=records([0.5, 0.51, 0.5])
    )
    assert "is better than c" in mixed.verdict
    assert "there is no difference that this test can see" in mixed.verdict
    assert mixed.verdict.endswith("Of all 3 pairs, 2 differ after Holm's correction.")
    assert "pairs" not in clear.verdict + equal.verdict
    hidden = result(  # the best system varies so much that only the others differ
        a=records([0.7, 0.99, 0.99]), b=records([0.8, 0.81, 0.8]), c=records([0.5, 0.51, 0.5])
    )
    assert hidden.verdict.startswith(
        "No difference that this test can see between a and the others"
    )
    assert "Of all 3 pairs, 1 differ" in hidden.verdict
    assert "With one seed" in result(a=records([0.9]), b=records([0.7])).verdict
    assert "nothing to compare" in result(a=records([0.9])).verdict
    lost = [record | {"same_answer": True} for record in records([0.54, 0.54])]
    assert "None of the systems is clearly better than always" in result(a=lost, b=lost).verdict
    assert "a is not clearly better than always" in result(a=lost, b=records([0.9, 0.91])).verdict
    assert "same answer" not in result(a=[lost[0], *records([0.9])], b=records([0.9])).verdict
    near = [record | {"constant": 0.54} for record in records([0.55, 0.56])]
    far = [record | {"constant": 0.54} for record in records([0.8, 0.81])]
    both = result(a=near, b=lost, c=far).verdict
    assert "a and b are not clearly better than always giving the same answer" in both
    assert "same answer" not in result(a=far, b=far).verdict
    lower = result(a=records([3.0, 3.1], higher=False), b=records([2.0, 2.1], higher=False))
    assert lower.systems[0].label == "b"
    with pytest.raises(RegardError, match="all trainings failed: no disk"):
        result(a=[failure("a, seed 1", "no disk")])


def test_one_answer_for_all():
    assert gives_one_answer([{"predicted": "pos"}, {"predicted": "pos"}])
    assert gives_one_answer([{"translation": ""}, {"translation": ""}])
    assert gives_one_answer([{"predicted": ["O", "O"]}, {"predicted": ["O"]}])
    assert not gives_one_answer([{"predicted": "pos"}, {"predicted": "neg"}])
    assert not gives_one_answer([{"predicted": ["O", "B-PER"]}, {"predicted": ["O"]}])
    assert not gives_one_answer([{"predicted": "pos"}])  # one example says nothing
    assert not gives_one_answer([{"text": "a"}, {"text": "b"}])  # no outputs, only probabilities
    run = regard.load("example:sentiment")
    three = run.evaluate([("good", "positive"), ("bad", "negative"), ("awful", "negative")])
    assert accuracy_of_one_answer(three) == pytest.approx(2 / 3)
    pairs = regard.load("example:translation").evaluate([("The bird", "L'oiseau")])
    assert accuracy_of_one_answer(pairs) is None


def test_mistakes_on_the_command_line(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["compare", "classify", "--vary", "poling=sum,mean"]) == 2
    assert "did you mean 'pooling'?" in capsys.readouterr().err
    assert main(["compare", "classify", "--vary", "pooling=sum,mean", "--budget", "soon"]) == 2
    assert "--budget: expected a time" in capsys.readouterr().err
    words = ["compare", "classify", "--vary", "pooling=sum,mean", "--ray-address", "a:1"]
    assert main(words) == 2
    assert "--ray-address: needs --on ray" in capsys.readouterr().err
    assert main([*words[:4], "--data", "nothere.tsv"]) == 2
    assert "nothere.tsv: no such file" in capsys.readouterr().err
    assert main([*words[:4], "--device", "cuda:99"]) == 2
    assert "cuda:99" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_killed_and_resumed(tmp_path, data, capsys):
    """kill -9 ends a comparison; the same command finishes it and repeats nothing."""
    words = f"compare classify --data {data} --vary pooling=sum,mean --width 8 --seeds 1 --jobs 1"
    command = [sys.executable, "-m", "regard", *words.split(), "--budget", "steps=3"]
    command += ["--out", str(tmp_path / "c")]
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    started = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    done = []
    while not done and time.monotonic() < deadline and started.poll() is None:
        time.sleep(0.05)
        done = [p for p in (tmp_path / "c/cells").glob("*.json") if "job" not in p.name]
    started.send_signal(signal.SIGKILL)
    started.communicate()
    assert len(done) == 1
    before = done[0].stat().st_mtime_ns
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
    assert ended.returncode == 0, ended.stderr
    assert "1 of 2 trainings are done" in ended.stderr or "2 of 2" in ended.stderr
    assert done[0].stat().st_mtime_ns == before
    assert "pooling mean" in ended.stdout
    assert main([*command[3:], "--quiet"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert "items/s is the training speed" in said.out
    assert "items_per_second" in (tmp_path / "c/report.json").read_text()


def kill_one_ray_worker(folder, killed):
    """Kill the first Ray worker that trains a cell of this folder: the parent of its process."""
    deadline = time.monotonic() + 300
    while not killed and time.monotonic() < deadline:
        time.sleep(0.05)
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (process / "cmdline").read_bytes().split(b"\0")
                if b"regard.compare.cell_worker" in words and os.fsencode(folder) in words:
                    status = (process / "stat").read_text()
                    parent = int(status.rpartition(")")[2].split()[1])
                    if b"ray::" in Path(f"/proc/{parent}/cmdline").read_bytes():
                        os.kill(parent, signal.SIGKILL)
                        killed.append(parent)
                        return


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_on_ray_the_numbers_are_the_same_though_a_worker_is_killed(tmp_path, data, monkeypatch):
    pytest.importorskip("ray", reason="needs regard[ray]")
    monkeypatch.setenv("RAY_worker_register_timeout_seconds", "600")  # of a busy machine
    monkeypatch.setenv("RAY_worker_niceness", "0")
    arguments = {"data": data, "vary": {"pooling": ["sum", "mean"]}, **OPTIONS}
    here = regard.compare("classify", **arguments, out=tmp_path / "a", run_cells=InThisProcess())
    killed = list[int]()
    killer = Thread(target=kill_one_ray_worker, args=(tmp_path / "b", killed), daemon=True)
    killer.start()
    there = regard.compare("classify", **arguments, out=tmp_path / "b", on="ray")
    assert len(killed) == 1
    assert not there.failed
    tables = [
        [
            {name: row[name] for name in ("system", "accuracy", "low", "high", "parameters")}
            for row in found.table
        ]
        for found in (here, there)
    ]
    assert tables[0] == tables[1]


def test_the_cluster_file_is_valid():
    util = pytest.importorskip("ray.autoscaler._private.util", reason="needs regard[ray]")
    yaml = pytest.importorskip("yaml")
    docs = Path(__file__).parents[2] / "docs"
    text = (docs / "cluster.yaml").read_text("utf-8")
    assert text.partition("\n")[2] in (docs / "cluster.md").read_text("utf-8")
    config = util.prepare_config(yaml.safe_load(text))
    util.validate_config(config)
    assert config["max_workers"] == 2
    assert any("--disable-usage-stats" in line for line in config["head_start_ray_commands"])


def test_ray_must_be_installed(tmp_path, data, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(RegardError, match=r"pip install 'regard\[ray\]'"):
        regard.compare("classify", data, vary={"pooling": ["sum", "mean"]}, on="ray")
