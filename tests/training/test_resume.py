"""Whatever ends a run, and whenever: the same command resumes it and ends at the same weights."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from regard.inference import load
from regard.training.run import train_run
from tests.training.tiny import OPTIONS, assert_same, everything, write_data


def command(task, data, out, options=None):
    options = {"data": data, **(options or OPTIONS[task])}
    given = [
        word
        for name, value in options.items()
        for word in (
            f"--{name.replace('_', '-')}",
            *map(str, value if isinstance(value, list) else [value]),
        )
    ]
    return [sys.executable, "-m", "regard", "train", task, *given, "--out", str(out)]


def start(arguments):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    return subprocess.Popen(
        arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def uninterrupted(task, folder, options=None):
    """The files of a task, and all that a run on them ends with."""
    data = write_data(folder, task)
    own = {"data": data, **(options or OPTIONS[task])}
    _, position = train_run(task, own, folder / "whole")
    assert position.finished
    return data, everything(folder / "whole")


def states(out):
    """When the latest state was written; None if there is none."""
    try:
        return (out / "state" / "latest.safetensors").stat().st_mtime_ns
    except FileNotFoundError:
        return None


@pytest.mark.parametrize("task", ["classify", "language"])
def test_a_killed_command_resumes_to_the_same_weights(task, tmp_path):
    data, expected = uninterrupted(task, tmp_path)
    out = tmp_path / "killed"
    process = start(command(task, data, out))
    while states(out) is None and process.poll() is None:
        time.sleep(0.002)
    process.kill()
    process.communicate()
    process = start(command(task, data, out))
    said, errors = process.communicate()
    assert process.returncode == 0, errors
    assert said.strip() == str(out)
    assert_same(everything(out), expected)


def forked(task, options, out):
    """A process of its own that trains, without the seconds that a new one spends on imports."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            train_run(task, options, out)
            code = 0
        finally:
            os._exit(code)
    return process


ROUNDS = int(os.environ.get("KILL_ROUNDS", "2"))
"""How often each task is killed and resumed, at other moments each time."""
LONGER = {"steps": 60, "patience": 6, "learning_rate": 0.5}
"""So that there is more of the training to be killed in."""


@pytest.mark.parametrize("turn", range(ROUNDS))
@pytest.mark.parametrize("task", ["classify", "language"])
def test_killed_at_random_moments_it_ends_at_the_same_weights(task, turn, tmp_path, monkeypatch):
    """kill -9 at moments spread over all of a run: reading, preparing, training, averaging."""
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    options = OPTIONS[task] | LONGER | ({"epochs": 12} if task == "language" else {})
    data, expected = uninterrupted(task, tmp_path, options)
    assert expected["latest.safetensors"]["halvings"] > 0, "it must halve its learning rate"
    out, moments, own = tmp_path / "killed", random.Random(f"{task} {turn}"), {"data": data}
    began = time.monotonic()
    os.waitpid(forked(task, own | options, tmp_path / "timed"), 0)
    whole = time.monotonic() - began
    killed = 0
    for _ in range(30):
        process = forked(task, own | options, out)
        time.sleep(moments.uniform(0, 0.7 * whole))
        os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        killed += os.WIFSIGNALED(status)
        if killed == 3 or (killed and status == 0):
            break
        if status == 0:  # it was faster than the one that was timed: start again
            shutil.rmtree(out)
    assert killed > 0
    _, status = os.waitpid(forked(task, own | options, out), 0)
    assert status == 0
    assert_same(everything(out), expected)


def test_interrupted_from_the_keyboard_it_saves_and_says_how_to_resume(tmp_path):
    data, expected = uninterrupted("classify", tmp_path)
    out = tmp_path / "stopped"
    process = start(command("classify", data, out))
    while process.poll() is None and not (out / "state" / "latest.safetensors").exists():
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert "Traceback" not in errors
    if process.returncode != 0:  # 0 if it had finished by then
        assert process.returncode == 130
        assert errors.splitlines()[-1].endswith(f"train --resume {out}")
    train_run("classify", {"data": data, **OPTIONS["classify"]}, out)
    assert_same(everything(out), expected)


@pytest.mark.parametrize(
    ("task", "extra"),
    [("classify", {}), ("language", {}), ("classify", {"encoder": "none", "pooling": "mean"})],
)
def test_stopped_after_each_update_it_ends_at_the_same_weights(task, extra, tmp_path):
    data, expected = uninterrupted(task, tmp_path, OPTIONS[task] | extra)
    out, options = tmp_path / "stopped", {"data": data, **OPTIONS[task], **extra}
    for _ in range(30):
        _, position = train_run(task, options, out, stop=lambda: True)
        if position.done:
            break
    assert position.step == expected["latest.safetensors"]["step"]
    assert_same(everything(out), expected)


class Killed(BaseException):
    """As if the process were gone: nothing is caught, nothing is tidied up after it."""


class Deadly:
    """Lets a number of changes to the disk pass; with the next the process is dead."""

    def __init__(self, monkeypatch, passing):
        self.left, self.dead = passing, False
        for owner, name in (
            (os, "replace"),
            (os, "unlink"),
            (os, "fsync"),
            (os, "mkdir"),
            (Path, "write_bytes"),
            (Path, "write_text"),
        ):
            monkeypatch.setattr(owner, name, self.guarded(getattr(owner, name), name))
        monkeypatch.setattr(Path, "unlink", self.guarded(Path.unlink, "unlink"))

    def guarded(self, change, name):
        def call(*arguments, **options):
            if self.left == 0 and not self.dead:
                self.dead = True
                if name.startswith("write"):  # half of it reaches the disk
                    path, content = arguments[:2]
                    Path.open(path, "wb").write(
                        (content if isinstance(content, bytes) else content.encode())[
                            : len(content) // 2
                        ]
                    )
            if self.dead:
                raise Killed
            self.left -= 1
            return change(*arguments, **options)

        return call


def die_after(changes, task, options, out):
    """Train until so many changes were made to the disk; whether it died of it."""
    with pytest.MonkeyPatch.context() as patch:
        deadly = Deadly(patch, changes)
        try:
            train_run(task, options, out)
        except Killed:
            return True
        assert not deadly.dead, "somebody swallowed the death of the process"
    return False


@pytest.mark.parametrize("task", ["classify", "language"])
@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_dead_at_any_change_to_the_disk_it_ends_at_the_same_weights(task, tmp_path):
    data, expected = uninterrupted(task, tmp_path)
    options, stride = {"data": data, **OPTIONS[task]}, int(os.environ.get("STRIDE", "11"))
    for changes in range(0, 10_000, stride):
        out = tmp_path / "dead"
        died = die_after(changes, task, options, out)
        die_after(changes // 3 + 1, task, options, out)  # and again on the way to recovery
        train_run(task, options, out)
        assert_same(everything(out), expected)
        shutil.rmtree(out)
        if not died:
            break
    assert changes > stride


def test_a_state_that_cannot_be_read_gives_way_to_the_one_before(tmp_path):
    data, expected = uninterrupted("classify", tmp_path)
    options, out = {"data": data, **OPTIONS["classify"]}, tmp_path / "run"
    for spoil in (
        lambda path: path.write_bytes(path.read_bytes()[:-10]),
        lambda path: path.write_bytes(b"not a state"),
        lambda path: shutil.copy(out / "model.safetensors", path),
    ):
        steps = iter(range(8))
        train_run("classify", options, out, stop=lambda steps=steps: next(steps) == 7)
        spoil(out / "state" / "latest.safetensors")
        notes = []
        train_run(
            "classify", options, out, report=lambda progress, n=notes: n.append(progress.note)
        )
        assert "latest.safetensors" in notes[0]
        assert notes[0].endswith("resuming from the state before it")
        assert_same(everything(out), expected)
        shutil.rmtree(out)


def test_without_a_state_before_a_broken_one_is_an_error(tmp_path):
    from regard import RegardError

    data = write_data(tmp_path, "classify")
    options, out = {"data": data, **OPTIONS["classify"]}, tmp_path / "run"
    train_run("classify", options, out, stop=lambda: True)
    (out / "state" / "latest.safetensors").write_bytes(b"")
    with pytest.raises(
        RegardError, match=r"latest.safetensors: cannot be read, .* to train from the start"
    ):
        train_run("classify", options, out)


def test_a_finished_run_is_left_as_it_is(tmp_path):
    data, expected = uninterrupted("classify", tmp_path)
    out = tmp_path / "whole"
    stray = out / "checkpoints" / "step-999.safetensors"
    stray.write_bytes(b"of a run that was killed before it removed it")
    before = (out / "model.safetensors").stat().st_mtime_ns
    _, position = train_run("classify", {"data": data, **OPTIONS["classify"]}, out)
    assert position.finished
    assert not stray.exists()
    assert (out / "model.safetensors").stat().st_mtime_ns == before
    assert_same(everything(out), expected)
    assert load(out)(["the film"])[0] in ("0", "1")


def test_a_run_that_made_no_update_leaves_no_folder(tmp_path):
    """Whatever was wrong after the data was read, the corrected command works in the same place."""
    from regard import RegardError

    data, out = write_data(tmp_path, "translation"), tmp_path / "run"
    links = tmp_path / "links"
    links.write_text("0-0\n" * 30)
    options = OPTIONS["translation"] | {"data": data, "alignments": str(links), "steps": 1}
    with pytest.raises(RegardError, match="option align_head"):
        train_run("translation", options | {"align_head": 9}, out)
    assert not out.exists()
    train_run("translation", options, out)
    assert (out / "model.safetensors").exists()


def test_data_that_changed_is_reported_or_read_again(tmp_path):
    (path,) = write_data(tmp_path, "classify")
    options, out, lines = OPTIONS["classify"] | {"data": [path]}, tmp_path / "run", []
    train_run("classify", options | {"steps": 2}, out)
    with open(path, "a", encoding="utf-8") as file:
        file.write("one more\t1\n")
    train_run("classify", options | {"steps": 4}, out, log=lines.append)
    assert any("the data files have changed" in line for line in lines)
    for name in ("model.safetensors", "state"):  # as if it had been killed before its first update
        kept = out / name
        shutil.rmtree(kept) if kept.is_dir() else kept.unlink()
    lines.clear()
    train_run("classify", options | {"steps": 4}, out, log=lines.append)
    assert any(line.startswith("data        31 read") for line in lines)
