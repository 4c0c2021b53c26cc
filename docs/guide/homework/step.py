"""Homework 3: one step of a decoder with attention, in Bahdanau's order.

Grade it with: regard check step.py
"""

import torch
from torch import nn

from regard.check import Inputs


class Step(nn.Module):
    """e = score(s, h_i), a = softmax(e), c = sum of a_i h_i, new s = GRU([word; c], s)."""

    def __init__(self, width):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(2 * width, width), nn.Tanh(), nn.Linear(width, 1))
        self.cell = nn.GRUCell(2 * width, width)

    def context(self, state, source, mask):
        """The context [b, w] and the weights [b, k].

        `state` is [b, w], `source` [b, k, w], `mask` [b, k] with True = a real word. Padding gets
        the weight zero, and so does every word of an empty source.
        """
        raise NotImplementedError("fill in `context`: score, hide padding, softmax, average")

    def forward(self, word, state, source, source_mask):
        context, weights = self.context(state, source, source_mask)
        return self.cell(torch.cat([word, context], -1), state), weights


# What follows grades it; there is nothing to change.

torch.manual_seed(0)
module = Step(16)


def make_inputs(batch, generator):
    word, state = torch.randn(2, batch, 16, generator=generator)
    source = torch.randn(batch, 7, 16, generator=generator)
    axes = {"word": "b w", "state": "b w", "source": "b k w"}
    tensors = {"word": word, "state": state, "source": source}
    return Inputs(tensors, axes, time="k", output="b w", weights="b k")


def call(module, inputs, need_weights):
    new, weights = module(inputs["word"], inputs["state"], inputs["source"], inputs.mask("k"))
    return (new, weights) if need_weights else new


def test_average():
    source = torch.eye(4, 16)[None]
    context, weights = module.context(torch.zeros(1, 16), source, torch.ones(1, 4).bool())
    assert torch.allclose(context[0, :4], weights[0], atol=1e-6), (
        "the context is not the average of the source, weighted by the weights"
    )
