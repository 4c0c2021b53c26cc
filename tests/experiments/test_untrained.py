"""Experiments without training: each claim where it must hold, and where it must fail."""

import numpy as np
import pytest
import torch

from regard.cli import main
from regard.errors import RegardError
from regard.experiments import run_experiment
from regard.experiments.untrained import (
    clipped_updates,
    distance,
    gradients,
    masking,
    permutation,
    reweigh,
)
from regard.layers import Block


def test_paths_in_a_graph_that_is_known():
    first, second = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    output = ((first * 2).exp() + second).sum()  # sum ← add ← exp ← mul ← first; add ← second
    assert distance.path_lengths(output, first) == (4, 4)
    assert distance.path_lengths(output, second) == (2, 4)


def test_distance_grows_only_with_recurrence():
    words = [torch.randn(1, distance.WIDTH, requires_grad=True) for _ in range(6)]
    network = distance.recurrence()
    steps = [distance.path_lengths(network(words[-n:]), words[-n])[1] for n in (2, 4, 6)]
    assert steps[2] - steps[1] == steps[1] - steps[0] > 0
    assert distance.judge([10, 100], [100, 1000], [24, 24])
    assert not distance.judge([10, 100], [100, 1000], [24, 30])
    assert not distance.judge([10, 100], [24, 24], [24, 24])


def test_order_shows_only_with_positions():
    torch.manual_seed(1)
    blocks, words = [Block(permutation.WIDTH, heads=4)], torch.randn(1, 5, permutation.WIDTH)
    order = torch.tensor([3, 0, 4, 2, 1])
    assert permutation.difference(blocks, words, order, positions=False) < 1e-5
    assert permutation.difference(blocks, words, order, positions=True) > 1e-3
    assert not permutation.judge([0.1], [0.1])
    assert not permutation.judge([0.0], [0.0])


def test_bank_moves_where_its_contexts_differ():
    vectors = reweigh.word_vectors(reweigh.corpus(0, 400))
    towards = {
        topic: reweigh.preference(reweigh.reweigh(sentence.split(), vectors)[0], vectors)
        for topic, sentence in reweigh.SENTENCES.items()
    }
    assert towards["river"] > reweigh.preference(vectors["bank"], vectors) > towards["money"]
    same = [0.1, 0.2, 0.1]  # planted: sentences that change nothing
    assert not reweigh.judge(same, same, same, [0.0])
    assert not reweigh.judge([0.0, 0.0, 0.1], [1.0, 1.0, 1.1], [-1.0, -1.0, -1.1], [0.5])
    x = np.array([[1.0, 0.0], [0.0, 1.0]])
    weights = np.exp(x @ x.T) / np.exp(x @ x.T).sum(1, keepdims=True)
    found = reweigh.reweigh(["a", "b"], {"a": x[0], "b": x[1]})
    np.testing.assert_allclose(found, weights @ x)


def test_order_proximity_and_repetition_do_not_count():
    vectors = {word: np.random.default_rng(i).normal(size=5) for i, word in enumerate("abcd")}
    assert max(reweigh.order_and_length(list("abcd"), vectors)) < 1e-12


def plant_vectors(path, bank, river=(0.0, 3.0), money=(3.0, 0.0)):
    """A file in which two topics are apart and "bank" is where it is put."""
    table = {"bank": bank, "of": (0.1, 0.1), "the": (0.1, 0.1), "with": (0.1, 0.1)}
    table |= {"river": river, "water": river, "money": money, "cash": money}
    lines = [f"{word} {x} {y}" for word, (x, y) in table.items()]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return str(path)


def test_vectors_of_a_file(tmp_path, capsys):
    """Planted: "bank" between two topics moves; where the topics are the same it cannot."""
    between = plant_vectors(tmp_path / "a.txt", (1.0, 1.0))
    found = run_experiment("reweigh", tmp_path / "a", vectors=between)
    assert found.held
    assert found.numbers["preference for river, before"].mean == pytest.approx(0, abs=1e-12)
    assert found.tables["Neighbours of “bank”"].rows[1][1].startswith(("river", "water"))
    same = plant_vectors(tmp_path / "b.txt", (1.0, 1.0), (2.0, 2.0), (2.0, 2.0))
    assert not run_experiment("reweigh", tmp_path / "b", vectors=same).held
    (tmp_path / "c.txt").write_text("bank 1 2\nriver 2 1\n", "utf-8")
    with pytest.raises(RegardError, match=r"has no vectors of of, the, with, money$"):
        run_experiment("reweigh", tmp_path / "c", vectors=str(tmp_path / "c.txt"))
    words = ["experiment", "permutation", "--vectors", between, "--out", str(tmp_path)]
    assert main(words) == 2
    assert "--vectors does not apply to the experiment permutation" in capsys.readouterr().err


def test_vectors_of_a_run():
    from regard.experiments.word_vector_sources import vectors_of

    found = vectors_of("example:language", ["the", "qqqq"])
    assert list(found) == ["the"]
    assert np.isfinite(found["the"]).all()
    with pytest.raises(RegardError, match="has no table of word vectors"):
        vectors_of("example:copy", ["the"])


def test_the_error_is_the_weight_where_only_values_learn():
    inputs = torch.randn(5, 7)
    weights, shares = masking.error_shares(inputs, torch.randn(1, 7), through_keys=False)
    torch.testing.assert_close(weights, shares)
    even = masking.sharpened(inputs, 0, 0.0)
    assert masking.error_shares(inputs, even, through_keys=False)[1].std() < 1e-6
    apart = 4.0 * torch.eye(5, 7)
    moved = masking.movements(apart, masking.sharpened(apart, 0, 12.0))
    assert moved.shape == (masking.UPDATES, 5)
    assert moved[0, 0] > 1e3 * moved[0, 1:].max()
    same = masking.movements(torch.ones(5, 7) * 0.5, torch.zeros(1, 7))  # even: all move alike
    torch.testing.assert_close(same, same[:, :1].expand(-1, 5))
    assert not masking.judge([0.1, 0.1], [0.1, 0.1], [0.0, 0.0])
    assert not masking.judge([0.1, 0.1], [0.0, 0.0], [0.5, 0.5])


def test_gradients_of_a_network_that_is_known():
    """y = Σ 2^-distance · x has gradients that halve with each step."""
    torch.manual_seed(0)
    decay = 0.5 ** torch.arange(6).flip(0).double()
    found = gradients.norms(lambda words: (decay[None, :, None] * words).sum(1), 6)
    ratios = found[1:] / found[:-1]
    torch.testing.assert_close(ratios, torch.full_like(ratios, 0.5))
    vanish, stay = [-9.0, -9.1], [-1.0, -1.1]
    names = list(gradients.NETWORKS)
    claimed = {name: vanish if name in ("Elman", "GRU", "LSTM") else stay for name in names}
    assert gradients.judge(claimed)
    assert not gradients.judge(claimed | {"LSTM": stay})
    assert not gradients.judge(claimed | {"transformer": vanish})


def test_clipping_limits_updates_and_leaves_small_ones_alone():
    """Planted: recurrent weights that explode, and weights that do not."""

    def largest(scale, clip):
        torch.manual_seed(0)
        network = gradients.scaled("elman", scale)
        norms, losses = clipped_updates.descend(network, clip, 40, updates=5)
        assert len(norms) == len(losses) == 5
        return max(norms)

    limit = clipped_updates.RATE * clipped_updates.CLIP
    assert largest(gradients.LARGE_WEIGHTS, float("inf")) > limit
    assert largest(gradients.LARGE_WEIGHTS, clipped_updates.CLIP) == limit
    assert largest(0.5, clipped_updates.CLIP) == largest(0.5, float("inf")) < limit
