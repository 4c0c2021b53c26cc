"""Homework 2: hide padding and the future.

Grade it with: regard check mask.py
"""

import torch

from regard.check import Inputs


def allowed(lengths, size):
    """Who may look at whom: bool [b, size, size], True = may attend.

    Query i of an item may attend to key j if j is not later than i and j is a real word, that is,
    less than the item's length. `lengths` is [b].
    """
    raise NotImplementedError("fill in `allowed`: torch.arange(size) helps")


# What follows grades it; there is nothing to change.


def module(x, lengths):
    from regard import attend

    return attend(x, x, x, allowed(lengths, x.shape[1]))


def make_inputs(batch, generator):
    x = torch.randn(batch, 7, 16, generator=generator)
    return Inputs({"x": x}, output="b t w", weights="b t t", causal="t")


def test_by_hand():
    found = allowed(torch.tensor([2]), 3)
    assert found.shape == (1, 3, 3), f"expected shape [1, 3, 3], got {list(found.shape)}"
    expected = [[1, 0, 0], [1, 1, 0], [1, 1, 0]]
    rows = found[0].int().tolist()
    assert rows == expected, f"for a length of 2 of 3, expected {expected}, got {rows}"
