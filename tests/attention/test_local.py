"""Luong's local attention against its formulas."""

import math

import pytest
import torch

from regard.attention import LocalPrediction, attend, local_bias, local_mask, masks, scores


def test_mask_and_bias_by_hand():
    centre = torch.tensor([0.0, 2.5], dtype=torch.float64)
    assert local_mask(centre, 5, 1.0).tolist() == [
        [True, True, False, False, False],
        [False, False, True, True, False],
    ]
    bias = local_bias(centre, 5, 3.0)
    for q, p in enumerate((0.0, 2.5)):
        for s in range(5):
            assert bias[q, s].item() == pytest.approx(-((s - p) ** 2) / (2 * (3.0 / 2) ** 2))


def test_prediction_is_within_the_source():
    predict = LocalPrediction(5, 3).double()
    query = torch.randn(2, 7, 5, dtype=torch.float64)
    lengths = torch.tensor([4, 9])
    got = predict(query, lengths)
    v, w = predict.centre.weight[0], predict.hidden.weight
    for b in range(2):
        for t in range(7):
            inner = (v * torch.tanh(w @ query[b, t])).sum().item()
            assert got[b, t].item() == pytest.approx(lengths[b].item() / (1 + math.exp(-inner)))


@pytest.mark.parametrize("score", ["dot", "bilinear", "additive", "location"])
def test_composes_with_any_score(score):
    """Weights are exp(score) times the Gaussian within the window, divided by their sum."""
    query, key = torch.randn(2, 3, 5, dtype=torch.float64), torch.randn(2, 11, 5).double()
    module = scores.make_score(score, 5, 5)
    module = module.double() if isinstance(module, torch.nn.Module) else module
    predict = LocalPrediction(5).double()
    lengths = torch.tensor([11, 6])
    centre = predict(query, lengths)
    mask = masks.lengths(lengths) & local_mask(centre, 11, 2.0)
    got = attend(query, key, key, mask, bias=local_bias(centre, 11, 2.0), score=module)
    raw = module(query, key)
    for b in range(2):
        for q in range(3):
            p = centre[b, q].item()
            near = [s for s in range(11) if abs(s - p) <= 2.0 and s < lengths[b]]
            terms = {s: math.exp(raw[b, q, s].item() - (s - p) ** 2 / 2) for s in near}
            for s in range(11):
                expected = terms.get(s, 0.0) / (sum(terms.values()) or 1.0)
                assert got.weights[b, q, s].item() == pytest.approx(expected)
    got.output.sum().backward()
    assert predict.centre.weight.grad.abs().sum() > 0
