"""A finished run that is extended ends where a run with the larger budget ends."""

import json
from dataclasses import replace

import numpy as np
import pytest
from safetensors.torch import load_file

from regard import RegardError
from regard.cli import main
from regard.inference import load
from regard.tasks.classification.task import Classification
from regard.training import RunFolder
from regard.training.run import train_run
from regard.training.tensor_files import write_tensors
from tests.training.tiny import OPTIONS, assert_same, everything, write_data

NEVER = 99


def options(folder, task="classify", **more):
    own = {**OPTIONS[task], "data": write_data(folder, task), "patience": NEVER, **more}
    return {name: value for name, value in own.items() if value is not None}


@pytest.mark.parametrize("schedule", ["constant", "inverse_root", "plateau"])
@pytest.mark.parametrize("average", [1, 3])
@pytest.mark.parametrize("task", ["classify", "language"])
def test_two_epochs_and_two_more_are_four(task, average, schedule, tmp_path):
    """Validations at the ends of epochs; patience so that plateau halves its rate."""
    more = {"steps": None, "evaluate_every": None, "average": average, "schedule": schedule}
    own = options(tmp_path, task, **more, learning_rate=0.5, patience=4)
    train_run(task, own | {"epochs": 4}, tmp_path / "once")
    train_run(task, own | {"epochs": 2}, tmp_path / "twice")
    notes = []
    _, position = train_run(
        task, own | {"epochs": 4}, tmp_path / "twice", report=lambda p: notes.append(p.note)
    )
    assert position.finished
    assert "extending it with a larger budget" in notes[0]
    assert_same(everything(tmp_path / "twice"), everything(tmp_path / "once"))
    assert RunFolder(tmp_path / "twice").config() == RunFolder(tmp_path / "once").config()


def test_the_average_is_replaced_by_the_best_single_weights_when_a_run_is_extended(tmp_path):
    """With a learning rate of 0 the first validation stays the best, and none replaces it."""
    own = options(tmp_path, average=3, learning_rate=0.0, evaluate_every=2)
    for name, steps in (("once", 12), ("twice", 6), ("twice", 12)):
        train_run("classify", own | {"steps": steps}, tmp_path / name)
        if steps == 6:
            model = tmp_path / name / "model.safetensors"
            averaged = {key: tensor + 1 for key, tensor in load_file(model).items()}
            write_tensors(model, averaged)
    assert_same(everything(tmp_path / "twice"), everything(tmp_path / "once"))


def test_a_run_that_is_killed_before_its_first_new_state_is_still_extended(tmp_path):
    """The budget stands in the config by then, and the state still says that the run is done."""
    own = options(tmp_path, average=3)

    class Killed(BaseException):
        pass

    def die(progress):
        raise Killed

    train_run("classify", own | {"steps": 12}, tmp_path / "run")
    with pytest.raises(Killed):
        train_run("classify", own | {"steps": 24}, tmp_path / "run", report=die)
    _, position = train_run("classify", own | {"steps": 24}, tmp_path / "run")
    assert position.step == 24
    train_run("classify", own | {"steps": 24}, tmp_path / "once")
    assert_same(everything(tmp_path / "run"), everything(tmp_path / "once"))


def test_a_validation_that_was_not_due_changes_nothing_of_what_follows(tmp_path):
    """14 updates end between two validations; the longer run has none there."""
    own = options(tmp_path, average=1, schedule="plateau", patience=4, learning_rate=0.5)
    train_run("classify", own | {"steps": 14}, tmp_path / "twice")
    train_run("classify", own | {"steps": 30}, tmp_path / "twice")
    train_run("classify", own | {"steps": 30}, tmp_path / "once")
    extended, expected = (everything(tmp_path / name) for name in ("twice", "once"))
    places = [extended["latest.safetensors"], expected["latest.safetensors"]]
    assert places[1]["halvings"] > 0, "this run must halve its learning rate"
    assert {k: v for k, v in places[0].items() if k != "best"} == {
        k: v for k, v in places[1].items() if k != "best"
    }
    for name in expected:
        if name.startswith("latest.safetensors/"):
            assert extended[name].equal(expected[name]), name
    validated = [[line["step"] for line in run["metrics"]] for run in (extended, expected)]
    assert sorted({*validated[1], 14}) == validated[0]


def test_a_run_that_ran_out_of_patience_gets_it_again(tmp_path):
    own = options(tmp_path, patience=2, average=1, learning_rate=0.0, evaluate_every=1)
    _, position = train_run("classify", own | {"steps": 40}, tmp_path / "run")
    assert (position.step, position.since_best, position.done) == (3, 2, True)
    _, position = train_run("classify", own | {"steps": 40}, tmp_path / "run")
    assert position.step == 3, "the same budget: nothing is left to do"
    _, position = train_run("classify", own | {"steps": 41}, tmp_path / "run")
    assert (position.step, position.since_best) == (5, 2), (
        "two more validations without improvement"
    )


def test_a_run_whose_validation_loss_falls_has_patience(tmp_path, monkeypatch):
    """The metric gets worse with every validation: only the loss gives reason to go on."""
    values = iter(np.linspace(1, 0, 99))
    validate = Classification.validate

    def worse(*given):
        evaluation = validate(*given)
        measured = replace(evaluation.metrics["accuracy"], value=float(next(values)))
        return replace(evaluation, metrics=evaluation.metrics | {"accuracy": measured})

    monkeypatch.setattr(Classification, "validate", worse)
    own = options(tmp_path, patience=2, average=1, learning_rate=1e-3, evaluate_every=1)
    own |= {"word_ngrams": 0}
    _, position = train_run("classify", own | {"steps": 12}, tmp_path / "run")
    lines = (tmp_path / "run/metrics.jsonl").read_text("utf-8").splitlines()
    losses = [json.loads(line)["validation_loss"] for line in lines]
    assert losses == sorted(losses, reverse=True)
    assert (position.step, position.ended, position.since_best) == (12, "steps", 0)
    assert position.lowest_loss == losses[-1]
    _, position = train_run("classify", own | {"learning_rate": 0.0}, tmp_path / "still")
    assert (position.step, position.ended) == (3, "patience")


def test_cosine_resumes_at_the_rate_of_the_larger_budget(tmp_path):
    own = options(tmp_path, schedule="cosine", warmup=0, learning_rate=0.01, average=1)
    seen = []
    for steps in (4, 8):
        train_run("classify", own | {"steps": steps}, tmp_path / "run", report=seen.append)
    rates = [100 * progress.learning_rate for progress in seen]
    assert rates[3] == pytest.approx((1 - 0.5**0.5) / 2)  # 3 of 4
    assert rates[4] == pytest.approx(0.5)  # 4 of 8
    assert rates[7] == pytest.approx((1 - 0.8535533905932737**0.5) / 2, abs=1e-3)  # 7 of 8


def test_a_budget_that_is_used_up_is_refused_and_nothing_changes(tmp_path):
    own = options(tmp_path)
    train_run("classify", own | {"steps": 14}, tmp_path / "run")
    before = {p: p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file()}
    words = (
        r"run: 14 updates have been made \(\d+ whole epochs, \d+ seconds?\): "
        r"steps 9 is already used up"
    )
    with pytest.raises(RegardError, match=words):
        train_run("classify", own | {"steps": 9}, tmp_path / "run")
    with pytest.raises(RegardError, match="epochs 1 is already used up: give a larger budget"):
        train_run("classify", own | {"steps": None, "epochs": 1}, tmp_path / "run")
    with pytest.raises(RegardError, match=r"its width is 8, not 9.*epochs, steps and minutes may"):
        train_run("classify", own | {"steps": 30, "width": 9}, tmp_path / "run")
    after = {p: p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file()}
    assert after == before


def test_another_kind_of_budget_extends_a_run_too(tmp_path):
    own = options(tmp_path)
    train_run("classify", own | {"steps": 6}, tmp_path / "run")
    own.pop("steps")
    _, position = train_run("classify", own | {"epochs": 3}, tmp_path / "run")
    assert position.epoch + 1 == 3
    training = RunFolder(tmp_path / "run").config()["training"]
    assert (training["steps"], training["epochs"]) == (None, 3)
    assert load(tmp_path / "run")(["the film"])[0] in ("0", "1")


def test_the_command_line_says_what_it_does(tmp_path, capsys):
    data = write_data(tmp_path, "classify")
    command = ["train", "classify", "--data", *data, "--out", str(tmp_path / "run"), "--width", "8"]
    assert main([*command, "--steps", "3"]) == 0
    assert main([*command, "--steps", "3"]) == 0
    said = capsys.readouterr().err
    assert "nothing to do: the run finished after 3 updates; a larger --epochs" in said
    assert main([*command, "--steps", "5"]) == 0
    assert "finished after 3 updates; extending it with a larger budget" in capsys.readouterr().err
    assert main([*command, "--steps", "4"]) == 2
    error = capsys.readouterr().err
    assert "steps 4 is already used up" in error
    assert json.loads((tmp_path / "run" / "config.json").read_text())["training"]["steps"] == 5
