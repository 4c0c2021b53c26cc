"""Class weights against scikit-learn's weights and torch's weighted losses: values, gradients."""

import numpy as np
import pytest
import torch
from sklearn.utils.class_weight import compute_class_weight

import regard
from regard.cli import main
from regard.tasks.classification.class_weights import skew_note
from regard.tasks.shared.splits import with_corpora

SMALL = ["--width", "8", "--steps", "1", "--average", "1"]


def skewed_run(folder, capsys, *options):
    """A run on 33 texts, 4 of them with a rare label; the task with its corpora; what was said."""
    rows = [(f"word{i % 7} text", "rare" if i % 9 == 4 else "usual") for i in range(33)]
    data = folder / "skewed.tsv"
    data.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows))
    out = folder / "run"
    command = ["train", "classify", "--data", str(data), "--valid", str(data), *SMALL, *options]
    assert main([*command, "--out", str(out)]) == 0
    run = regard.load(out)
    return with_corpora(run.task, out / "data"), run.model, capsys.readouterr().err


def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


def test_weighted_cross_entropy_equals_torchs(tmp_path, capsys):
    task, model, said = skewed_run(tmp_path, capsys, "--class-weights", "balanced")
    assert "the labels are unbalanced: 'usual' is 7.2 times as frequent as 'rare'" in said
    assert "--class-weights" not in said
    batch = task.batch(np.arange(33))
    expected = compute_class_weight("balanced", classes=np.arange(2), y=batch.labels.numpy())
    torch.testing.assert_close(task.label_weights, torch.tensor(expected).float())
    model.eval()
    for smoothing in (0.0, 0.1):
        own = torch.nn.CrossEntropyLoss(
            torch.tensor(expected).float(), reduction="sum", label_smoothing=smoothing
        )
        found, _ = task.loss(model, batch, smoothing, [])
        theirs = own(model(batch.words, batch.lengths).logits, batch.labels)
        torch.testing.assert_close(found.total, theirs)
        pairs = zip(gradients(model, found.total), gradients(model, theirs), strict=True)
        for ours, right in pairs:
            torch.testing.assert_close(ours, right)
    with torch.no_grad():  # by hand: both labels weigh the same in all
        logits = model(batch.words, batch.lengths).logits.double()
    losses = -logits.log_softmax(-1)[torch.arange(33), batch.labels]
    by_label = [losses[batch.labels == label].mean() for label in (0, 1)]
    found, _ = task.loss(model, batch, 0.0, [])
    assert found.total.item() == pytest.approx(33 * float(sum(by_label)) / 2, rel=1e-5)


def test_several_labels_weigh_texts_with_a_label_as_those_without(tmp_path, capsys):
    task, model, _ = skewed_run(tmp_path, capsys, "--several", "--class-weights", "balanced")
    batch = task.batch(np.arange(33))
    have = batch.labels.sum(0)
    torch.testing.assert_close(task.label_weights, (33 - have) / have)
    model.eval()
    own = torch.nn.BCEWithLogitsLoss(pos_weight=(33 - have) / have, reduction="sum")
    found, _ = task.loss(model, batch, 0.0, [])
    theirs = own(model(batch.words, batch.lengths).logits, batch.labels)
    torch.testing.assert_close(found.total, theirs)


def test_without_weights_the_option_is_named_only_where_labels_are_skewed(tmp_path, capsys):
    task, _, said = skewed_run(tmp_path, capsys)
    assert "--class-weights balanced gives all labels the same weight in the loss" in said
    assert task.label_weights is None
    assert skew_note({"a": 40, "b": 10}, "none") == ""
    assert main(["train", "classify", "--class-weights", "equal"]) == 2
    assert "--class-weights: expected none or balanced, got 'equal'" in capsys.readouterr().err
