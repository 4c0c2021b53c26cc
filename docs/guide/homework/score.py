"""Homework 1: write the scaled dot product, and the weights that it gives.

Grade it with: regard check score.py
"""

import torch

from regard.check import Inputs


def weights_of(query, key):
    """Attention weights [b, q, k] from queries [b, q, d] and keys [b, k, d].

    Scores are dot products divided by the square root of d; each row of weights sums to one.
    """
    raise NotImplementedError("fill in `weights_of`: scores, then softmax over the keys")


# What follows grades it; there is nothing to change.


def module(query, key):
    weights = weights_of(query, key)
    return weights @ key, weights


def make_inputs(batch, generator):
    query = torch.randn(batch, 5, 16, generator=generator)
    key = torch.randn(batch, 7, 16, generator=generator)
    axes = {"query": "b q w", "key": "b k w"}
    tensors = {"query": query, "key": key}
    return Inputs(tensors, axes, time="q k", output="b q w", weights="b q k", padded="")


def test_against_torch():
    query, key = torch.randn(2, 3, 8), torch.randn(2, 4, 8)
    weights = weights_of(query, key)
    assert weights.shape == (2, 3, 4), f"expected shape [2, 3, 4], got {list(weights.shape)}"
    output = torch.nn.functional.scaled_dot_product_attention(query, key, key)
    assert torch.allclose(weights @ key, output, atol=1e-5), (
        "the weights are not those of PyTorch: divide the scores by the square root of d, and take "
        "the softmax over the last axis"
    )
