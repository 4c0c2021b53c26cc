"""Several processes: updates are those of one process, and a run survives the death of any."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from regard import RegardError
from regard.training import distributed as processes_module
from regard.training.distributed import Processes, current, process_group, torchrun_processes
from tests.pretrained.checkpoints import write_checkpoint
from tests.training.several import train_all
from tests.training.test_resume import command, states
from tests.training.tiny import OPTIONS, assert_same, everything, write_data

STILL = {"dropout": 0.0, "learning_rate": 0.05, "average": 1}
LONG = {"steps": 400, "evaluate_every": 40, "patience": 99, "save_every": 5}


class Batch(NamedTuple):
    words: Tensor
    lengths: Tensor
    vectors: Tensor | None = None


@pytest.mark.parametrize("world", [1, 2, 3, 7])
@pytest.mark.parametrize("count", [1, 2, 5, 11])
def test_shares_are_disjoint_and_cover_the_batch(world, count):
    batch = Batch(torch.arange(count * 3).view(count, 3), torch.arange(count))
    shares = [Processes(rank, world).own_rows(batch) for rank in range(world)]
    rows = [int(row) for part, own in shares if own for row in part.lengths]
    assert sorted(rows) == list(range(count))
    for part, own in shares:
        assert isinstance(part, Batch)
        assert part.vectors is None
        assert torch.equal(part.words, batch.words[part.lengths])
        assert own or part.lengths.tolist() == [0]


@pytest.mark.parametrize("count", [1, 2, 4, 5])
def test_rows_that_were_shared_out_come_back_in_their_order(count, monkeypatch):
    whole, world = torch.randn(count, 2, 3), 3
    parts = [Processes(rank, world).own_rows([whole])[0][0] for rank in range(world)]
    sent = []
    monkeypatch.setattr(Processes, "gather", lambda self, part: sent.append(part) or [part])
    for rank, part in enumerate(parts):
        Processes(rank, world).join_rows(part, count)
    monkeypatch.setattr(Processes, "gather", lambda self, part: sent)
    assert torch.equal(Processes(0, world).join_rows(parts[0], count), whole)


def test_without_torchrun_a_process_is_alone():
    assert torchrun_processes({}) == Processes(0, 1)
    assert torchrun_processes({"RANK": "1", "WORLD_SIZE": "2"}) == Processes(0, 1)
    with process_group() as processes:
        assert processes == current() == Processes(0, 1)
        assert processes.broadcast({"a": 1}) == {"a": 1}
        assert processes.sum([2.5]) == [2.5]
        assert not processes.any(False)


def test_the_variables_of_torchrun_are_read():
    names = {"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "here", "MASTER_PORT": "1"}
    assert torchrun_processes(names) == Processes(1, 4)
    with pytest.raises(RegardError, match="WORLD_SIZE='four'"):
        torchrun_processes(names | {"WORLD_SIZE": "four"})


def test_errors_of_our_own_are_not_taken_for_a_lost_process():
    with pytest.raises(RuntimeError, match="shapes"), processes_module._name_lost_process():
        raise RuntimeError("shapes do not fit")
    with (
        pytest.raises(RegardError, match="another training process"),
        processes_module._name_lost_process(),
    ):
        raise RuntimeError("[gloo/transport/tcp/pair.cc:547] Connection closed by peer")


def torchrun(*arguments, restarts=0):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONPATH": os.pathsep.join([str(Path.cwd()), str(Path(__file__).parent)]),
    }
    how = ["--nproc-per-node", "2", "--master-addr", "127.0.0.1", "--master-port", str(port)]
    how += ["--max-restarts", str(restarts), "--monitor-interval", "0.2"]
    return subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", *how, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def options(folder, task):
    """Options of a run without dropout; batches of a row among them, fewer than processes."""
    (folder / task).mkdir(exist_ok=True)
    own = {"data": write_data(folder / task, task), **OPTIONS[task], **STILL}
    own |= {"word_dropout": 0.0} if task in ("classify", "tag") else {}
    return own | {"batch_tokens": 16, "evaluate_every": 2, "steps": 12, "patience": 99}


PRETRAINED = {"pretrained encoder": "classify", "pretrained decoder": "language"}


def pretrained(folder, task):
    """Options of a run that trains a pretrained model further."""
    family, head = {"classify": ("bert", "Model"), "language": ("gpt2", "LMHeadModel")}[task]
    write_checkpoint(folder / family, family, head)
    shared = ("data", "dropout", "batch_tokens", "evaluate_every", "steps", "patience")
    own = options(folder, task)
    own = {name: own[name] for name in shared}
    window = {"window_tokens": 8} if task == "language" else {}
    return {**own, **window, "pretrained": str(folder / family), "learning_rate": 0.01, "warmup": 2}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Each task by one process and by two, and a long run with dropout by two."""
    folder = tmp_path_factory.mktemp("several")
    tasks = [(task, task, options(folder, task)) for task in OPTIONS]
    tasks.append(("one row", "language", options(folder, "language") | {"batch_tokens": 5}))
    tasks += [(name, task, pretrained(folder, task)) for name, task in PRETRAINED.items()]
    long = OPTIONS["classify"] | LONG | {"data": write_data(folder, "classify")}

    def listed(kind, more=()):
        runs = [
            {"task": task, "options": own, "out": str(folder / kind / name)}
            for name, task, own in [*tasks, *more]
        ]
        (folder / f"{kind}.json").write_text(json.dumps(runs))
        return folder / f"{kind}.json"

    worker = str(Path(__file__).parent / "several.py")
    train_all(moving(folder, "first", 1))
    both = json.loads(listed("two", [("long", "classify", long)]).read_text())
    both += json.loads(moving(folder, "second", 2).read_text())
    (folder / "both.json").write_text(json.dumps(both))
    with torchrun(worker, str(folder / "both.json")) as process:
        train_all(listed("one"))
        _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    train_all(moving(folder, "third", 1))
    return folder, long


MOVES = {
    "one, two": {"first": 5, "second": None},
    "two, one": {"second": 5, "third": None},
    "one, two, one": {"first": 3, "second": 8, "third": None},
    "one, two with more steps": {"first": 12, "second": None},
}
"""Up to which update a run is trained in each phase, the second of which has two processes."""


def moving(folder, phase, count):
    """The runs that resume in a phase with so many processes."""
    runs = [
        {"task": task, "options": options(folder, task), "out": str(folder / move / task)}
        | {"until": plan[phase]}
        for move, plan in MOVES.items()
        for task in OPTIONS
        if phase in plan
    ]
    for run in runs:
        if phase == "first" and run["until"] == 12:
            run["options"]["steps"] = 8
    (folder / f"{phase}.json").write_text(json.dumps(runs))
    return folder / f"{phase}.json"


def measured(run):
    lines = (run / "metrics.jsonl").read_text("utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


@pytest.mark.parametrize("name", [*OPTIONS, "one row", *PRETRAINED])
def test_two_processes_learn_what_one_learns(name, runs):
    one, two = (measured(runs[0] / kind / name) for kind in ("one", "two"))
    assert len(one) == len(two) > 2
    assert abs(one[0]["loss"] - one[-1]["loss"]) > 0.02, "it must learn something"
    for expected, line in zip(one, two, strict=True):
        for key in ("loss", "gradient_norm", "learning_rate"):
            assert line[key] == pytest.approx(expected[key], rel=2e-3), key
    weights = [load_file(runs[0] / kind / name / "model.safetensors") for kind in ("one", "two")]
    distance = sum(float((weights[0][k] - weights[1][k]).square().sum()) for k in weights[0])
    length = sum(float(tensor.square().sum()) for tensor in weights[0].values())
    assert np.sqrt(distance / length) < 2e-2


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("move", MOVES)
def test_a_run_moves_between_one_and_two_processes(name, move, runs):
    one, moved = (measured(runs[0] / kind / name) for kind in ("one", move))
    assert [line["step"] for line in moved] == [line["step"] for line in one]
    for line, expected in zip(moved, one, strict=True):
        for key in ("loss", "gradient_norm", "learning_rate"):
            assert line[key] == pytest.approx(expected[key], rel=2e-3), key
    state = load_file(runs[0] / move / name / "state/latest.safetensors")
    randoms = sorted(key for key in state if key.startswith("random"))
    assert randoms == (["random"] if move.endswith("one") else ["random", "random.1"])
    assert len({tuple(state[key].tolist()) for key in randoms}) == len(randoms)


def test_the_first_process_keeps_what_all_carry_and_their_random_numbers(runs):
    states = [
        load_file(runs[0] / kind / "language" / "state/latest.safetensors")
        for kind in ("one", "two")
    ]
    assert states[1].keys() - states[0].keys() == {"random.1"}
    assert not torch.equal(states[1]["random"], states[1]["random.1"])
    carried = [name for name in states[0] if name.startswith("carried.")]
    assert carried
    for name in carried:
        torch.testing.assert_close(states[1][name], states[0][name], rtol=0.02, atol=0.02)


def workers(launcher):
    """The processes that torchrun started."""
    children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
    return [int(child) for child in children]


def until(true, process, seconds=240):
    for _ in range(seconds * 50):
        if true() or process.poll() is not None:
            return
        time.sleep(0.02)


def test_a_killed_worker_is_started_again_and_the_run_ends_at_the_same_weights(runs):
    folder, long = runs
    out = folder / "killed"
    train = [*command("classify", long["data"], out)[1:], *given(LONG)]
    with torchrun(*train) as process:
        until(lambda: states(out) is not None, process)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=300)
    assert f"train --resume {out}" in errors
    saved = states(out)

    with torchrun(*train, restarts=3) as process:
        until(lambda: states(out) not in (None, saved), process)
        os.kill(workers(process)[1], signal.SIGKILL)
        said, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert str(out) in said
    assert "another training process has stopped" in errors
    assert_same(everything(out), everything(folder / "two" / "long"))
    assert (out / "curves.svg").exists()


def given(options):
    return [w for k, v in options.items() for w in (f"--{k.replace('_', '-')}", str(v))]


def test_several_processes_need_a_folder(monkeypatch, capsys):
    from regard.cli import main

    names = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    assert main(["train", "classify"]) == 2
    assert "--out: needed when several processes" in capsys.readouterr().err
