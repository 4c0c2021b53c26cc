"""How readily a tagger calls a word O: the shift against O that gives the best F1."""

import random

import numpy as np
import pytest
import torch

import regard
from regard.cli import main
from regard.tasks.shared.splits import with_corpora
from regard.tasks.tagging.calibration import SHIFTS, calibrate, choose_shift


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Of ten sentences with `Mark`, four mean a person: the likeliest tag of it is O."""
    folder = tmp_path_factory.mktemp("tags")
    chance = random.Random(3)
    lines = []
    for i in range(200):
        words = [chance.choice(["the", "sees", "house"]) for _ in range(3)]
        tags = ["O"] * 3
        words.insert(i % 4, "Mark")
        tags.insert(i % 4, "B-PER" if i % 10 < 4 else "O")
        lines += [f"{w} {t}" for w, t in zip(words, tags, strict=True)] + [""]
    (folder / "data.conll").write_text("\n".join(lines) + "\n", "utf-8")
    data = str(folder / "data.conll")
    options = ["--width", "8", "--steps", "60", "--learning-rate", "0.03", "--dropout", "0"]
    options += ["--evaluate-every", "60", "--word-dropout", "0", "--label-smoothing", "0"]
    options += ["--valid", data, "--encoder", "none", "--out", str(folder / "run")]
    assert main(["train", "tag", "--data", data, *options]) == 0
    return regard.load(folder / "run")


def test_what_is_less_likely_than_not_is_found_where_that_pays(run):
    assert run("the Mark sees") == "O B-PER O"


def test_the_shift_is_the_best_of_all(run):
    """Against evaluations with each shift, from a model that is far too careful."""
    task, model = with_corpora(run.task, run.folder.data), run.model
    outside = list(task.labels.names).index("O")
    with torch.no_grad():
        model.decision.bias[outside] += 1
    start = model.decision.bias.detach().clone()
    values = []
    for shift in SHIFTS:
        with torch.no_grad():
            model.decision.bias.copy_(start)
            model.decision.bias[outside] -= shift
        values.append(task.validate(model).metrics["f1"].value)
    with torch.no_grad():
        model.decision.bias.copy_(start)
    assert values[0] == 0
    assert "entity F1 0.000 -> 0.571" in calibrate(task, model)
    changed = (start - model.decision.bias.detach()).numpy()
    best = choose_shift(values)
    assert changed[outside] == pytest.approx(SHIFTS[best])
    assert np.delete(changed, outside).tolist() == [0] * (len(changed) - 1)
    assert task.validate(model).metrics["f1"].value == pytest.approx(0.8 / 1.4)  # all of them
    assert calibrate(task, model) == ""
