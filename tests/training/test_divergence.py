"""Training that diverges ends in one line, not in a run that looks finished."""

import json
from types import SimpleNamespace

import pytest

from regard import RegardError
from regard.cli import main
from regard.inference import load
from regard.tasks.task import Loss
from regard.training import RunFolder
from regard.training.divergence import UPDATES
from regard.training.run import train_run
from tests.training.tiny import OPTIONS, write_data


@pytest.mark.parametrize("task", ["classify", "tag", "language", "translation"])
def test_a_learning_rate_that_is_far_too_high_ends_in_one_line(task, tmp_path, capsys):
    files = write_data(tmp_path, task)
    command = ["train", task, "--data", *files, "--learning-rate", "100000", "--steps", "9"]
    assert main([*command, "--out", str(tmp_path / "run"), "--width", "8"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    error = printed.err.splitlines()[-1]
    assert error.startswith("regard: step ")
    assert "training has diverged, the loss is " in error
    assert "lower --learning-rate (now 100000) or raise --warmup (now 100)" in error
    assert "Traceback" not in printed.err


@pytest.fixture
def exploding(monkeypatch):
    """Multiplies the loss of a classifier by 10⁶ from some update on."""
    from regard.tasks.classification.task import Classification

    plan = SimpleNamespace(after=10**9, until=10**9, updates=0)
    original = Classification.loss

    def loss(self, model, batch, smoothing, carried):
        found, carried = original(self, model, batch, smoothing, carried)
        if not model.training:
            return found, carried
        plan.updates += 1
        factor = 1e6 if plan.after < plan.updates <= plan.until else 1.0
        return Loss(found.total * factor, found.extra), carried

    monkeypatch.setattr(Classification, "loss", loss)
    return plan


def options(folder, **more):
    own = OPTIONS["classify"] | {"data": write_data(folder, "classify"), "average": 1}
    return own | {"steps": 30, "patience": 99, "evaluate_every": 5, "save_every": 4} | more


def test_it_stops_soon_and_keeps_the_last_good_state_and_the_best_weights(tmp_path, exploding):
    exploding.after = 13
    words = rf"step {13 + 2}: training has diverged.*the best weights so far are kept"
    with pytest.raises(RegardError, match=words):
        train_run("classify", options(tmp_path), tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    steps = [json.loads(line)["step"] for line in folder.metrics.read_text().splitlines()]
    assert steps == [5, 10]
    assert load(folder.path)(["the film"])[0] in ("0", "1")
    exploding.after = 10**9
    _, position = train_run("classify", options(tmp_path), folder.path)
    assert position.finished
    train_run("classify", options(tmp_path), tmp_path / "once")
    whole = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("run", "once")]
    assert whole[0] == whole[1], "it resumed from a state before the divergence"


@pytest.mark.parametrize("length", [1, UPDATES - 1])
def test_a_few_bad_batches_are_no_divergence(tmp_path, exploding, length):
    exploding.after, exploding.until = 21, 21 + length
    own = options(tmp_path, steps=45, evaluate_every=42, learning_rate=1e-4)
    _, position = train_run("classify", own, tmp_path / "run")
    assert position.finished


def test_between_validations_it_stops_after_some_updates(tmp_path, exploding):
    exploding.after = 7
    with pytest.raises(RegardError, match=f"step {7 + UPDATES}: training has diverged"):
        train_run("classify", options(tmp_path, evaluate_every=50), tmp_path / "run")


@pytest.mark.parametrize("learning_rate", [0.0, 0.1])
def test_training_that_learns_little_or_badly_is_no_divergence(tmp_path, learning_rate):
    own = options(tmp_path, learning_rate=learning_rate, steps=20, evaluate_every=10)
    _, position = train_run("classify", own, tmp_path / "run")
    assert position.finished
