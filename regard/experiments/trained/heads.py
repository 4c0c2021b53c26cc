"""Most heads can be removed one by one at little cost.

A transformer with more heads than its task needs is trained to continue repetitions. Then each
head is removed alone: its part of the output projection is set to zero. A table shows what each
head attends to and what its removal costs. The claim holds if the accuracy falls by less than two
points for more than half of the heads. Michel et al., 2019, https://arxiv.org/abs/1905.10650; Voita
et al., 2019, https://arxiv.org/abs/1905.09418
"""

from typing import Any

import torch
from torch import nn

from regard.experiments.claims import Experiment, Finding, Setting, over_seeds
from regard.experiments.fitting import CausalTransformer
from regard.experiments.trained.induction import accuracy, repeated, train
from regard.show.charts import Axis, Series, line_chart
from regard.show.report_page import Table

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


@torch.no_grad()
def roles(network: nn.Module) -> list[dict[str, float]]:
    """For every head, layer by layer, its mean weight on some places in the second part."""
    symbols, _ = repeated(64)
    length = symbols.shape[1] // 2
    rows = torch.arange(length, 2 * length - 1)
    places = {
        "itself": rows,
        "the symbol before": rows - 1,
        "its earlier occurrence": rows - length,
        "the symbol after that": rows - length + 1,
    }
    heads = [head for layer in network(symbols)[1] for head in layer.unbind(1)]
    return [{k: float(head[:, rows, at].mean()) for k, at in places.items()} for head in heads]


def judge(costs: list[list[float]], whole: list[float]) -> bool:
    """More than half of the heads of a network that has learned cost less than two points."""
    shares = [sum(cost < LITTLE for cost in one) / len(one) for one in costs]
    return over_seeds(shares).mean > 0.5 and over_seeds(whole).mean > 0.8


def run(setting: Setting) -> Finding:
    """Train, remove each head alone, and sort the heads by what that costs."""
    steps, seeds, heads, layers = setting.pick(10, 700, 3000), setting.pick(1, 5, 10), 4, 2
    costs, whole, found = list[list[float]](), list[float](), list[list[dict[str, float]]]()
    for seed in range(seeds):
        torch.manual_seed(seed)
        network, _ = train(layers, steps)
        torch.manual_seed(0)
        whole.append(accuracy(network))
        found.append(roles(network))
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
    points = ([100 * part for part in one[:3]] for one in measured)
    mean, low, high = zip(*points, strict=True)
    series = Series("cost of the head", range(1, heads * layers + 1), mean, low, high)
    title = "What removing one head costs"
    axes = Axis("head, least important first"), Axis("points of accuracy")
    numbers = {
        "accuracy of the whole network": over_seeds(whole),
        "share of heads that cost less than 2 points": over_seeds(shares),
        "cost of the most important head": over_seeds([one[-1] for one in ranked]),
    }
    for place in ("the symbol before", "the symbol after that"):
        strongest = over_seeds([max(head[place] for head in one) for one in found])
        numbers[f"weight on {place}, strongest head"] = strongest
    rows = [
        [f"{1 + number // heads}.{1 + number % heads}"]
        + [f"{100 * share:.0f} %" for share in head.values()]
        + [f"{100 * costs[0][number]:.1f}"]
        for number, head in enumerate(found[0])
    ]
    table = Table(["layer.head", *found[0][0], "points lost without it"], rows)
    summary = (
        f"{100 * over_seeds(shares).mean:.0f} % of the heads can each be removed for less than two "
        f"points of {100 * over_seeds(whole).mean:.0f}; the most important one costs "
        f"{100 * measured[-1].mean:.0f} points."
    )
    pictures = {"heads": line_chart(title, [series], *axes)}
    tables = {"Weight of each head of the first network": table}
    return Finding(judge(costs, whole), summary, numbers, pictures, tables)


EXPERIMENT = Experiment(
    name="heads",
    claim="Most heads can be removed one by one at little cost.",
    source="Michel et al., 2019; Voita et al., 2019",
    row="A4",
    minutes=1,
    run=run,
)
