"""bf16 and compilation: the same learning, and a clear word where it cannot be."""

import json
import os
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file

from regard import RegardError
from regard.training.loss_module import _is_compiler_error, gradient_computation
from regard.training.run import train_run
from tests.training.tiny import OPTIONS, write_data


def run(tmp_path, task, name, **options):
    data = write_data(tmp_path, task)
    own = {**OPTIONS[task], "dropout": 0.0, "average": 1, "steps": 6, "learning_rate": 0.01}
    own |= {"word_dropout": 0.0} if task in ("classify", "tag") else {}
    train_run(task, {"data": data, **own, **options}, tmp_path / name)
    lines = (tmp_path / name / "metrics.jsonl").read_text("utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


@pytest.mark.parametrize("task", OPTIONS)
def test_bf16_learns_much_the_same_in_weights_of_full_precision(task, tmp_path):
    plain, rough = (run(tmp_path, task, str(bf16), bf16=bf16) for bf16 in (False, True))
    assert [line["loss"] for line in rough] == pytest.approx(
        [line["loss"] for line in plain], rel=0.03
    )
    assert plain[0]["loss"] != rough[0]["loss"]
    weights = load_file(tmp_path / "True" / "model.safetensors")
    assert {w.dtype for w in weights.values() if w.is_floating_point()} == {torch.float32}


def test_a_compiled_model_learns_the_same(tmp_path):
    """In a process of its own: torch cannot compile what checks shapes in tests."""
    model = {"encoder": "none", "pooling": "weighted", "steps": 2}
    (plain,) = run(tmp_path, "classify", "plain", **model)
    config = {**json.loads((tmp_path / "plain" / "config.json").read_text()), "task": None}
    config["training"]["compile"] = True
    (tmp_path / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v}))
    out = tmp_path / "compiled"
    command = [sys.executable, "-m", "regard", "train", "classify", "--out", str(out)]
    process = subprocess.run(
        [*command, "--config", str(tmp_path / "config.json")],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    compiled = json.loads((out / "metrics.jsonl").read_text("utf-8"))
    assert compiled["loss"] == pytest.approx(plain["loss"], rel=1e-4)
    assert compiled["gradient_norm"] == pytest.approx(plain["gradient_norm"], rel=1e-3)


class Doubling(torch.nn.Module):
    def forward(self, numbers):
        return numbers * 2


def test_a_model_that_cannot_be_compiled_says_what_to_do():
    def failing(graph, inputs):
        raise FileNotFoundError("c++: not found")

    model = Doubling()
    model.compile(backend=failing)
    with (
        pytest.raises(
            RegardError, match=r"option compile: torch cannot compile .*c\+\+: not found"
        ),
        gradient_computation(model, last=True),
    ):
        model(torch.ones(1, 2))
    assert not _is_compiler_error(RuntimeError("shapes"))
