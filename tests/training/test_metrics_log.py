"""What a run writes of itself: means of losses, and event files with each point once."""

import builtins
import json
import math

import pytest

from regard import RegardError
from regard.training.run import train_run
from tests.training.tiny import OPTIONS, write_data


def points(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder / "tensorboard"))
    events.Reload()
    return {
        name: [(point.step, point.value) for point in events.Scalars(name)]
        for name in events.Tags()["scalars"]
    }


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_event_files_hold_each_point_once_though_the_run_was_stopped(tmp_path):
    pytest.importorskip("tensorboard")
    data = write_data(tmp_path, "classify")
    options = {"data": data, **OPTIONS["classify"], "steps": 42, "patience": 99}
    out, steps = tmp_path / "run", iter(range(99))
    options["tensorboard"] = True

    class Killed(BaseException):
        """Beyond the last saved state, as if by kill -9."""

    def die(progress):
        if progress.position.step == 31:
            raise Killed

    train_run("classify", options, out, stop=lambda: next(steps) == 14)
    with pytest.raises(Killed):
        train_run("classify", options, out, report=die)
    train_run("classify", options, out)
    curves = points(out)
    assert [step for step, _ in curves["training/loss"]] == [10, 20, 30, 40]
    lines = (out / "metrics.jsonl").read_text("utf-8").split("\n")
    validations = [json.loads(line) for line in lines if line and "averaged" not in line]
    expected = [(line["step"], line["metrics"]["accuracy"]["value"]) for line in validations]
    assert [step for step, _ in curves["validation/accuracy"]] == [step for step, _ in expected]
    assert [value for _, value in curves["validation/accuracy"]] == pytest.approx(
        [value for _, value in expected]
    )


def test_without_the_package_event_files_are_refused_in_one_line(tmp_path, monkeypatch):
    original = builtins.__import__

    def missing(name, *arguments, **options):
        if name.startswith("torch.utils.tensorboard"):
            raise ImportError(name)
        return original(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    options = {"data": write_data(tmp_path, "classify"), **OPTIONS["classify"]}
    with pytest.raises(RegardError, match=r"pip install 'regard\[tensorboard\]'"):
        train_run("classify", options | {"tensorboard": True}, tmp_path / "run")


def test_the_loss_of_a_line_is_the_mean_since_the_line_before(tmp_path):
    seen = []
    data = write_data(tmp_path, "classify")
    options = OPTIONS["classify"] | {"data": data, "average": 1, "patience": 99}
    train_run("classify", options, tmp_path / "run", report=seen.append)
    lines = (tmp_path / "run" / "metrics.jsonl").read_text("utf-8").split("\n")
    validations = [json.loads(line) for line in lines if line]
    totals, counts, last = [], [], 0
    for validation, progress in zip(validations, (p for p in seen if p.evaluation), strict=True):
        assert validation["loss"] == progress.loss
        totals.append(validation["loss"])
        counts.append(validation["step"] - last)
        last = validation["step"]
    assert len(validations) > 3
    assert all(math.isfinite(total) for total in totals)
    between = [p.loss for p in seen if not p.evaluation]
    assert min(between) - 1 < totals[0] < max(between) + 1
    assert [seen[-1].position.loss_sum, seen[-1].position.loss_count] == [0.0, 0]
