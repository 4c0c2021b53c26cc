"""Gradients vanish with distance in recurrent networks; attention is a shortcut for them.

The norm of ∂(last output)/∂xₜ is measured by the distance of word t from the end, for networks
with initial weights. Without attention it shrinks (or explodes, with large recurrent weights) by a
factor per step; attention over all states gives every word a path of one step. Clipping limits
what an exploding gradient does to the weights, and is measured too. Bengio et al., 1994,
https://doi.org/10.1109/72.279181; Pascanu et al., 2013, https://arxiv.org/abs/1211.5063
"""

from collections.abc import Callable
from functools import partial
from math import inf

import torch
from torch import Tensor, nn

from regard.attention import attend
from regard.experiments.claims import Experiment, Finding, Setting, clearly_above, over_seeds
from regard.experiments.fitting import seeded
from regard.experiments.untrained.clipped_updates import CLIP, WIDTH, descend
from regard.layers import Block
from regard.layers.recurrent import Encoder
from regard.show.charts import Axis, Series, line_chart

Network = Callable[[Tensor], Tensor]


def scaled(cell: str, scale: float = 1.0) -> Encoder:
    """A recurrent network whose recurrent weights are multiplied by a factor."""
    network = Encoder(WIDTH, WIDTH, cell=cell, bidirectional=False).double()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if "weight_hh" in name:
                parameter.mul_(scale)
    return network


def recurrent(cell: str, *, attention: bool, scale: float = 1.0) -> Network:
    """The last state of a network, with or without what attention reads from all states."""
    network = scaled(cell, scale)

    def read(words: Tensor) -> Tensor:
        states = network(words, torch.tensor([words.shape[1]])).states
        last = states[:, -1:]
        joined: Tensor = last + attend(last, states, states).output if attention else last
        return joined[:, 0]

    return read


def transformer() -> Network:
    """The last output of two blocks."""
    blocks = nn.ModuleList(Block(WIDTH, heads=4).double() for _ in range(2))

    def read(words: Tensor) -> Tensor:
        for block in blocks:
            words = block(words).output
        return words[:, -1]

    return read


CELLS = {"Elman": "elman", "GRU": "gru", "LSTM": "lstm"}
NETWORKS: dict[str, Callable[[], Network]] = {
    **{name: partial(recurrent, cell, attention=False) for name, cell in CELLS.items()},
    **{f"{name} + attention": partial(recurrent, c, attention=True) for name, c in CELLS.items()},
    "transformer": transformer,
}
LARGE_WEIGHTS = 4.0
"""Factor of the recurrent weights that makes gradients explode."""


def norms(network: Network, length: int, size: float = 1.0) -> Tensor:
    """The norm of the gradient at each word of a size, the last word first."""
    words = (size * torch.randn(1, length, WIDTH, dtype=torch.float64)).requires_grad_()
    output = network(words)
    (output * torch.randn_like(output)).sum().backward()
    assert words.grad is not None
    found: Tensor = words.grad[0].norm(dim=-1)
    return found.flip(0)


def judge(ratios: dict[str, list[float]]) -> bool:
    """Far gradients vanish in every cell without attention, and in none with it."""
    found = {name: over_seeds(values) for name, values in ratios.items()}
    vanish = all(found.pop(name).mean < -4 for name in CELLS)
    return vanish and all(clearly_above(one, -3) for one in found.values())


def run(setting: Setting) -> Finding:
    """The gradient by distance for every network, and its explosion with large weights."""
    length, seeds = setting.pick(40, 100, 300), setting.pick(2, 8, 30)
    ratios, series = dict[str, list[float]](), []
    for name, make in NETWORKS.items():
        found = torch.stack([norms(seeded(make, seed), length) for seed in range(seeds)])
        ratios[name] = (found[:, -1] / found[:, 0]).clamp(min=1e-300).log10().tolist()
        series.append(_mean_line(name, found))
    # near zero tanh is linear: this is where large weights make the gradient grow
    large = partial(recurrent, "elman", attention=False, scale=LARGE_WEIGHTS)
    grown = torch.stack([norms(seeded(large, seed), length, 1e-6) for seed in range(seeds)])
    exploding = (grown[:, -1] / grown[:, 0]).log10().tolist()
    series.append(_mean_line(f"Elman, weights × {LARGE_WEIGHTS:g}", grown))
    numbers = {f"{name}: far / near gradient (log10)": over_seeds(v) for name, v in ratios.items()}
    numbers[f"Elman, weights × {LARGE_WEIGHTS:g}: far / near (log10)"] = over_seeds(exploding)
    clipping, start = [], partial(scaled, "elman", LARGE_WEIGHTS)
    for limit, how in ((inf, "without clipping"), (CLIP, f"clipped at {CLIP:g}")):
        both = [descend(seeded(start, seed), limit, length) for seed in range(seeds)]
        numbers[f"largest update, {how}"] = over_seeds([max(steps) for steps, _ in both])
        losses = [over_seeds(one)[:3] for one in zip(*(loss for _, loss in both), strict=True)]
        clipping.append(Series(how, range(len(losses)), *zip(*losses, strict=True)))
    means = {name: over_seeds(values).mean for name, values in ratios.items()}
    updates = [f"{m.mean:.2g} {n.split(', ')[1]}" for n, m in numbers.items() if "update" in n]
    summary = (
        f"over {length} words the gradient changes by 10^{means['Elman']:.1f} in an Elman network, "
        f"10^{means['LSTM']:.1f} in an LSTM, 10^{means['LSTM + attention']:.1f} in an LSTM with "
        f"attention and 10^{means['transformer']:.1f} in a transformer; with recurrent weights "
        f"{LARGE_WEIGHTS:g} times as large it changes by 10^{over_seeds(exploding).mean:.1f}, and "
        f"the largest update has the norm {' and '.join(updates)}."
    )
    norm = Axis("norm", log=True)
    pictures = {
        "gradients": line_chart("Gradient by distance", series, Axis("distance in words"), norm),
        "clipping": line_chart(
            "Training where gradients explode", clipping, Axis("update"), Axis("loss")
        ),
    }
    return Finding(judge(ratios), summary, numbers, pictures)


def _mean_line(name: str, found: Tensor) -> Series:
    """The geometric mean over seeds [seeds, places], at forty places."""
    mean = found.clamp(min=1e-300).log10().mean(0)
    places = range(0, len(mean), max(1, len(mean) // 40))
    return Series(name, places, [10.0 ** float(mean[place]) for place in places])


EXPERIMENT = Experiment(
    name="gradients",
    claim="Gradients vanish with distance in recurrent networks; attention is a shortcut for them.",
    source="Bengio et al., 1994; Pascanu et al., 2013",
    row="L2, X2",
    minutes=0.2,
    run=run,
)
