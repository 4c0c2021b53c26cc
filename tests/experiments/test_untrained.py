"""Experiments without training: each claim where it must hold, and where it must fail."""

import numpy as np
import torch

from regard.experiments.untrained import (
    distance,
    gradients,
    masking,
    permutation,
    reweigh,
    score_scaling,
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


def test_scaling_is_what_keeps_the_gradient():
    entropy = {s: score_scaling.entropy_and_gradient(s, 1024)[0] for s in ("dot", "scaled_dot")}
    assert entropy["dot"] < 1 < 3.5 < entropy["scaled_dot"] <= 5
    flat = {(s, d): [0.2, 0.21, 0.2] for s in ("dot", "scaled_dot") for d in (4, 256)}
    assert not score_scaling.judge(flat, 4, 256)
    assert score_scaling.judge(flat | {("dot", 256): [0.05, 0.05, 0.051]}, 4, 256)


def test_the_error_is_the_weight_where_only_values_learn():
    inputs = torch.randn(5, 7)
    weights, shares = masking.error_shares(inputs, torch.randn(1, 7), through_keys=False)
    torch.testing.assert_close(weights, shares)
    even = masking.sharpened(inputs, 0, 0.0)
    assert masking.error_shares(inputs, even, through_keys=False)[1].std() < 1e-6
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
