"""Two layers of attention learn to continue a repetition; one layer cannot.

A sequence of random symbols is followed by itself: … A B … A → B. To predict B, one layer has to
mark each symbol with the one before it, and a second layer to look for the mark A: an induction
head. It shows as weight on the symbol after the earlier occurrence of the current one (prefix
matching). The distance of the repetition is random, so that no fixed offset will do. Olsson et
al., 2022, https://arxiv.org/abs/2209.11895
"""

import torch
from torch import Tensor, nn

from regard.experiments.claims import Experiment, Finding, Setting, over_seeds
from regard.experiments.fitting import CausalTransformer, fit, next_symbol_loss
from regard.show.charts import Axis, Bar, Series, interval_chart, line_chart

SYMBOLS, SHORTEST, LONGEST = 24, 5, 10


def repeated(batch: int, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
    """Sequences in which a part of random length occurs twice, and which symbols are predictable.

    All sequences of a batch have the same length of their part; no symbol occurs twice in a part.
    """
    length = int(torch.randint(SHORTEST, LONGEST + 1, (), generator=generator))
    part = torch.rand(batch, SYMBOLS, generator=generator).argsort(1)[:, :length]
    symbols = torch.cat([part, part], dim=1)
    scored = torch.zeros_like(symbols, dtype=torch.bool)
    scored[:, length + 1 :] = True  # the first symbol of the second part is still random
    return symbols, scored


def train(layers: int, steps: int) -> tuple[CausalTransformer, list[float]]:
    """A transformer trained on repetitions, and its losses."""
    network = CausalTransformer(SYMBOLS, 64, layers=layers, positions="rotary")

    def loss() -> Tensor:
        symbols, scored = repeated(64)
        return next_symbol_loss(network(symbols)[0], symbols, scored)

    return network, fit(network, loss, steps)


@torch.no_grad()
def accuracy(network: nn.Module) -> float:
    """The share of predictable symbols that are predicted."""
    right = []
    for _ in range(10):
        symbols, scored = repeated(64)
        hits = network(symbols)[0][:, :-1].argmax(-1) == symbols[:, 1:]
        right.append(float(hits[scored[:, 1:]].float().mean()))
    return sum(right) / len(right)


@torch.no_grad()
def prefix_matching(network: nn.Module) -> float:
    """The largest mean weight of a head on the symbol after the earlier occurrence."""
    symbols, _ = repeated(64)
    length = symbols.shape[1] // 2
    rows = torch.arange(length, 2 * length - 1)  # in the second part
    heads = [
        weights[:, :, rows, rows - length + 1].mean(dim=(0, 2)) for weights in network(symbols)[1]
    ]
    return float(torch.stack(heads).max())


def judge(one: list[float], two: list[float]) -> bool:
    """Two layers predict nearly everything, and clearly more than one layer."""
    return over_seeds(two).mean > 0.9 and over_seeds(two).mean > over_seeds(one).mean + 0.3


def run(setting: Setting) -> Finding:
    """Train one and two layers with several seeds."""
    steps, seeds = setting.pick(20, 700, 3000), setting.pick(1, 4, 5)
    right: dict[int, list[float]] = {1: [], 2: []}
    matching: dict[int, list[float]] = {1: [], 2: []}
    series = []
    for layers in right:
        for seed in range(seeds):
            torch.manual_seed(seed)
            network, losses = train(layers, steps)
            right[layers].append(accuracy(network))
            matching[layers].append(prefix_matching(network))
        every = max(1, steps // 50)
        series.append(
            Series(f"{layers} layer{'s' * (layers > 1)}", range(0, steps, every), losses[::every])
        )
    numbers = {f"accuracy, {n} layer(s)": over_seeds(v) for n, v in right.items()}
    numbers |= {f"prefix matching, {n} layer(s)": over_seeds(v) for n, v in matching.items()}
    bars = [Bar(name, *measured[:3]) for name, measured in numbers.items()]
    pictures = {
        "induction": interval_chart("Continuing a repetition", bars, "share"),
        "loss": line_chart("Loss in training", series, Axis("update"), Axis("cross-entropy")),
    }
    means = {name: over_seeds(values).mean for name, values in right.items()}
    heads = over_seeds(matching[2]).mean
    summary = (
        f"one layer predicts {100 * means[1]:.0f} % of the repeated symbols, two layers "
        f"{100 * means[2]:.0f} %; the strongest head of two layers puts {100 * heads:.0f} % of its "
        "weight on the symbol after the earlier occurrence."
    )
    return Finding(judge(right[1], right[2]), summary, numbers, pictures)


EXPERIMENT = Experiment(
    name="induction",
    claim="Two layers of attention learn to continue a repetition; one layer cannot.",
    source="Olsson et al., 2022",
    row="A4",
    minutes=1,
    run=run,
)
