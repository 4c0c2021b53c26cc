"""Without positions, self-attention cannot tell "dog bites man" from "man bites dog".

A transformer block gives the same vectors to the same words in any order, so that whatever is
pooled from them is the same; position encodings break the symmetry. Vaswani et al., 2017, section
3.5, https://arxiv.org/abs/1706.03762
"""

import torch
from torch import Tensor

from regard.attention.positions import sinusoids
from regard.experiments.claims import Experiment, Finding, Setting, over_seeds
from regard.layers import Block
from regard.show.charts import Bar, interval_chart

WIDTH, WORDS = 32, ("dog", "bites", "man")
ROUNDING = 1e-4
"""Differences below this are those of rounding in float32."""


@torch.no_grad()
def difference(blocks: list[Block], words: Tensor, order: Tensor, positions: bool) -> float:
    """How much the mean of the outputs changes when the words change places."""
    means = []
    for vectors in (words, words[:, order]):
        states = vectors + sinusoids(vectors.shape[1], WIDTH) if positions else vectors
        for block in blocks:
            states = block(states).output
        means.append(states.mean(1))
    return float((means[0] - means[1]).norm() / means[0].norm())


def judge(without: list[float], with_positions: list[float]) -> bool:
    """Without positions every difference is rounding, with positions none is."""
    return max(without) < ROUNDING < min(with_positions)


def run(setting: Setting) -> Finding:
    """Two blocks with random weights, one random vector per word, for each seed."""
    found: dict[bool, list[float]] = {False: [], True: []}
    for seed in range(setting.pick(3, 20, 200)):
        torch.manual_seed(seed)
        blocks = [Block(WIDTH, heads=4).eval() for _ in range(2)]
        words = torch.randn(1, len(WORDS), WIDTH)
        reverse = torch.arange(len(WORDS) - 1, -1, -1)
        for positions in found:
            found[positions].append(difference(blocks, words, reverse, positions))
    without, with_positions = over_seeds(found[False]), over_seeds(found[True])
    numbers = {"difference without positions": without, "difference with positions": with_positions}
    bars = [Bar(name, *measured[:3]) for name, measured in numbers.items()]
    title = "“dog bites man” against “man bites dog”"
    picture = interval_chart(title, bars, "relative difference of the pooled outputs")
    summary = (
        f"the two sentences differ by {without.mean:.1g} without positions, which is rounding, and "
        f"by {with_positions.mean:.2g} with them."
    )
    if not (held := judge(found[False], found[True])):
        summary = f"differences are {without} without positions and {with_positions} with them."
    return Finding(held, summary, numbers, {"order": picture})


EXPERIMENT = Experiment(
    name="permutation",
    claim="Without positions a transformer cannot tell “dog bites man” from “man bites dog”.",
    source="Vaswani et al., 2017",
    row="A3, A4",
    minutes=0.1,
    run=run,
)
