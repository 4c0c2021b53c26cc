"""Most heads can be removed one by one at little cost.

A transformer with more heads than its task needs is trained to continue repetitions. Then each
head is removed alone: its part of the output projection is set to zero. The claim holds if the
accuracy falls by less than two points for more than half of the heads. Michel et al., 2019,
https://arxiv.org/abs/1905.10650; Voita et al., 2019, https://arxiv.org/abs/1905.09418
"""

from typing import Any

import torch
from torch import nn

from regard.experiments.claims import Experiment, Finding, Setting, over_seeds
from regard.experiments.fitting import CausalTransformer
from regard.experiments.trained.induction import accuracy, train
from regard.show.charts import Axis, Series, line_chart

LITTLE = 0.02
"""A loss of accuracy that counts as little."""


def output_projection(network: CausalTransformer, layer: int) -> nn.Linear:
    """What joins the outputs of the heads of a layer."""
    attention: Any = network.blocks[layer].own
    projections = [part for part in attention.children() if isinstance(part, nn.Linear)]
    return projections[-1]


def without_head(network: CausalTransformer, layer: int, head: int, heads: int) -> float:
    """The accuracy of the network without one head."""
    projection = output_projection(network, layer)
    kept = projection.weight.detach().clone()
    size = kept.shape[1] // heads
    with torch.no_grad():
        projection.weight[:, head * size : (head + 1) * size] = 0.0
        torch.manual_seed(0)  # the same test sequences for every head
        found = accuracy(network)
        projection.weight.copy_(kept)
    return found


def judge(costs: list[list[float]], whole: list[float]) -> bool:
    """More than half of the heads of a network that has learned cost less than two points."""
    shares = [sum(cost < LITTLE for cost in one) / len(one) for one in costs]
    return over_seeds(shares).mean > 0.5 and over_seeds(whole).mean > 0.8


def run(setting: Setting) -> Finding:
    """Train, remove each head alone, and sort the heads by what that costs."""
    steps, seeds, heads, layers = setting.pick(10, 700, 3000), setting.pick(1, 2, 5), 4, 2
    costs, whole = list[list[float]](), list[float]()
    for seed in range(seeds):
        torch.manual_seed(seed)
        network, _ = train(layers, steps)
        torch.manual_seed(0)
        whole.append(accuracy(network))
        costs.append(
            [
                whole[-1] - without_head(network, layer, head, heads)
                for layer in range(layers)
                for head in range(heads)
            ]
        )
    ranked = [sorted(one) for one in costs]
    shares = [sum(cost < LITTLE for cost in one) / len(one) for one in costs]
    measured = [over_seeds([one[rank] for one in ranked]) for rank in range(heads * layers)]
    series = Series(
        "cost of the head", range(1, heads * layers + 1), [100 * m.mean for m in measured]
    )
    title = "What removing one head costs"
    axes = Axis("heads, the least important first"), Axis("points of accuracy")
    numbers = {
        "accuracy of the whole network": over_seeds(whole),
        "share of heads that cost less than 2 points": over_seeds(shares),
        "cost of the most important head": over_seeds([one[-1] for one in ranked]),
    }
    summary = (
        f"{100 * over_seeds(shares).mean:.0f} % of the heads can each be removed for less than two "
        f"points of {100 * over_seeds(whole).mean:.0f}; the most important one costs "
        f"{100 * measured[-1].mean:.0f} points."
    )
    return Finding(
        judge(costs, whole), summary, numbers, {"heads": line_chart(title, [series], *axes)}
    )


EXPERIMENT = Experiment(
    name="heads",
    claim="Most heads can be removed one by one at little cost.",
    source="Michel et al., 2019; Voita et al., 2019",
    row="A4",
    minutes=1.5,
    run=run,
)
