"""Translation from the command line, with each order of steps and each kind of model."""

import numpy as np
import pytest

import regard
from regard.cli import main
from regard.tasks.shared.splits import with_corpora
from tests.tasks.tasks_data import write

SMALL = ["--width", "8", "--steps", "2", "--average", "1", "--max-tokens", "40", "--tokenizer"]


@pytest.mark.parametrize(
    "options",
    [
        ["--order", "luong", "--input-feeding"],
        ["--local", "m"],
        ["--model", "transformer", "--layers", "1", "--experts", "2", "--heads", "2"],
        ["--attention", "none", "--cell", "lstm"],
    ],
    ids=" ".join,
)
def test_it_is_trained_evaluated_and_used(options, tmp_path, capsys):
    data = write(tmp_path, "translation")
    out = str(tmp_path / "run")
    command = ["train", "translation", "--data", *data, *SMALL, "word", *options, "--out", out]
    assert main(command) == 0
    capsys.readouterr()
    assert main(["evaluate", out, "--data", *data, "--beam", "2"]) == 0
    assert capsys.readouterr().out.startswith("BLEU")
    assert len(regard.load(out)(["the film is good", "", "the end"], beam=1)) == 3


def test_a_run_of_one_task_goes_on_where_it_stopped(tmp_path, capsys):
    data = write(tmp_path, "translation")
    out = str(tmp_path / "run")
    command = ["train", "translation", "--data", *data, *SMALL, "word", "--out", out]
    assert main(command) == 0
    assert main(command) == 0
    assert "resuming the run" in capsys.readouterr().err
    assert main([*command[:-2], "--attention", "dot", "--out", out]) == 2
    assert "already contains a different run (its attention is " in capsys.readouterr().err


def test_the_balance_of_experts_is_a_small_part_of_the_loss(tmp_path):
    """As in the other tasks: a hundredth of what the model gives."""
    out = tmp_path / "run"
    made = ["--model", "transformer", "--experts", "2", "--heads", "2", "--layers", "1"]
    data = write(tmp_path, "translation")
    words = ["train", "translation", "--data", *data, *made, "--dropout", "0", "--out", str(out)]
    words += [*SMALL, "word"]
    assert main(words) == 0
    run = regard.load(out)
    task = with_corpora(run.task, run.folder.data)
    batch = task.batch(np.arange(5))
    given = (batch.source, batch.source_lengths, batch.target[:, :-1], batch.target_lengths - 1)
    output = run.model(*given)
    loss, _ = task.loss(run.model, batch, 0.0, [])
    assert loss.extra.item() == pytest.approx(0.01 * output.balance.item(), rel=1e-5)
