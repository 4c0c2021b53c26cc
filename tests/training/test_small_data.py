"""Small data: enough updates, and validation data that has every label."""

import json

import pytest

import regard
from regard.training.budget import batch_tokens
from regard.training.config import TrainingConfig

OPTIONS = {
    "tokenizer": "whitespace", "encoder": "none", "width": 8, "epochs": 1, "average": 1,
}  # fmt: skip
REVIEWS = [(f"the {word} film number {i}", word) for i in range(25) for word in ("good", "bad")]


def steps(folder):
    lines = (folder / "metrics.jsonl").read_text("utf-8").splitlines()
    return max(json.loads(line).get("step", 0) for line in lines)


def test_an_epoch_of_fifty_texts_is_more_than_one_update(tmp_path):
    regard.train("classify", REVIEWS, out=tmp_path / "small", **OPTIONS)
    # 40 texts of 5 words are 200 tokens, and no batch is made smaller than 64 tokens
    assert steps(tmp_path / "small") == 4
    regard.train("classify", REVIEWS, out=tmp_path / "chosen", batch_tokens=1024, **OPTIONS)
    assert steps(tmp_path / "chosen") == 1


@pytest.mark.parametrize(("tokens", "expected"), [(100_000, 1024), (16 * 512, 512), (10, 64)])
def test_batches_shrink_only_where_data_is_small(tokens, expected):
    def plan(budget, seed, epoch):
        return range(-(-tokens // budget))

    config = TrainingConfig(epochs=1, batch_tokens=1024, min_batches=16)
    assert batch_tokens(config, plan) == expected
    assert batch_tokens(TrainingConfig(epochs=1, batch_tokens=1024), plan) == 1024


def test_both_labels_of_small_data_are_validated(tmp_path, capsys):
    rare = [("an excellent film", "good"), ("a splendid film", "good")]
    rows = [(f"film number {i} is bad", "bad") for i in range(30)] + rare
    run = regard.train("classify", rows, out=tmp_path / "run", **OPTIONS)
    report = json.loads(run.folder.prepared.read_text("utf-8"))
    assert report["sizes"] == {"train": 26, "valid": 6}
    assert not any("has no text with the label" in note for note in report["notes"])
    valid = [("a splendid film", "good")]
    other = regard.train("classify", rows, valid=valid, out=tmp_path / "other", **OPTIONS)
    report = json.loads(other.folder.prepared.read_text("utf-8"))
    assert any("(1 example) has no text with the label 'bad'" in note for note in report["notes"])
