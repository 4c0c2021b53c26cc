"""Words drawn to stand for all of a softmax: chances, unbiased sums, gradients, and training."""

import json

import numpy as np
import pytest
import torch

from regard.cli import main
from regard.tasks.language.sampled_softmax import WordSampler, count_words
from regard.tasks.shared.losses import next_token_loss
from tests.tasks.tasks_data import write

WORDS = 53
TARGETS = torch.tensor([[7, 3, 7, 0], [11, 2, 3, 0]])


def draw(size=17):
    return WordSampler.by_frequency(np.arange(WORDS)[::-1] ** 2, size)


def test_as_many_are_drawn_as_was_said_and_frequent_words_more_often():
    chances = draw().probabilities
    assert float(chances.sum()) == pytest.approx(17, rel=1e-4)
    assert (chances[:-1] >= chances[1:]).all()
    assert float(chances.min()) > 0
    right = {0, 2, 3, 7, 11}
    seen = torch.zeros(WORDS)
    for _ in range(2000):
        seen[draw_others(draw())] += 1
    others = [word for word in range(WORDS) if word not in right]
    torch.testing.assert_close(seen[others] / 2000, chances[others], atol=0.05, rtol=0)


def draw_others(made):
    words = made(TARGETS).words
    return words[~torch.isin(words, torch.tensor([0, 2, 3, 7, 11]))]


def test_targets_keep_their_words_and_padding_its_number():
    drawn = draw()(TARGETS)
    assert torch.equal(drawn.words[drawn.targets], TARGETS)
    assert len(drawn.words.unique()) == len(drawn.words)
    right = torch.isin(drawn.words, TARGETS)
    assert not drawn.correction[right].any()
    chances = draw().probabilities[drawn.words[~right]]
    torch.testing.assert_close(drawn.correction[~right].exp() * chances, torch.ones(len(chances)))


def test_the_sum_is_right_on_average():
    """The mean of many estimates is Σ e^x over all words."""
    logits = torch.randn(WORDS, dtype=torch.float64)
    made = draw()
    sums = []
    for _ in range(4000):
        drawn = made(TARGETS)
        sums.append((logits[drawn.words] + drawn.correction).exp().sum())
    found, spread = torch.stack(sums).mean(), torch.stack(sums).std() / 4000**0.5
    assert abs(float(found - logits.exp().sum())) < 4 * float(spread)


def test_with_all_words_it_is_the_whole_softmax():
    """Loss and gradients of the table equal those of all words when every chance is one."""
    states = torch.randn(2, 4, 5, dtype=torch.float64)
    whole, some = (torch.randn(WORDS, 5).double().requires_grad_() for _ in range(2))
    some.data.copy_(whole.data)
    drawn = WordSampler(torch.ones(WORDS))(TARGETS)
    expected = next_token_loss(states @ whole.T, TARGETS, 0.0)
    found = next_token_loss(states @ some[drawn.words].T + drawn.correction, drawn.targets, 0.0)
    torch.testing.assert_close(found, expected)
    expected.backward()
    found.backward()
    torch.testing.assert_close(some.grad, whole.grad)


def test_frequencies_count_every_piece(monkeypatch):
    monkeypatch.setattr("regard.tasks.language.sampled_softmax.COUNT_CHUNK", 3)
    tokens = np.array([4, 1, 4, 2, 4, 1, 0])
    assert count_words(tokens, 6).tolist() == [1, 2, 1, 0, 3, 0]


def test_a_run_with_drawn_words_learns_the_text(tmp_path, capsys):
    days = [f"day {i} : the cat sees the dog and the dog sees a bird" for i in range(60)]
    (tmp_path / "text.txt").write_text("\n".join(days))
    options = ["--tokenizer", "word", "--width", "16", "--steps", "150", "--batch-tokens", "80"]
    options += ["--dropout", "0", "--learning-rate", "0.02", "--patience", "99", "--average", "1"]
    found = {}
    for sampled in ("20", "0"):
        out = str(tmp_path / sampled)
        data = ["--data", str(tmp_path / "text.txt"), "--out", out, "--sampled", sampled]
        assert main(["train", "language", *data, *options]) == 0
        capsys.readouterr()
        assert main(["evaluate", out, "--data", str(tmp_path / "text.txt"), "--json"]) == 0
        metrics = json.loads(capsys.readouterr().out)["metrics"]
        found[sampled] = metrics["perplexity_per_token"]["value"]
    assert found["0"] < 1.8
    assert found["20"] == pytest.approx(found["0"], rel=0.1)


def test_a_negative_number_is_refused(tmp_path, capsys):
    data = write(tmp_path, "language")
    assert main(["train", "language", "--data", *data, "--sampled", "-1"]) == 2
    assert "--sampled: expected 0 or more and at most 10000000, got -1" in capsys.readouterr().err
