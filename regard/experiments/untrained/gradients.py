"""Gradients vanish with distance in recurrent networks; attention is a shortcut for them.

The norm of ∂(last output)/∂xₜ is measured by the distance of word t from the end, for networks
with initial weights. Without attention it shrinks (or explodes, with large recurrent weights) by a
factor per step; attention over all states gives every word a path of one step. Bengio et al.,
1994, https://doi.org/10.1109/72.279181; Pascanu et al., 2013, https://arxiv.org/abs/1211.5063
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from regard.attention import attend
from regard.experiments.claims import Experiment, Finding, Setting, clearly_above, over_seeds
from regard.layers import Block
from regard.layers.recurrent import Encoder
from regard.show.charts import Axis, Series, line_chart

WIDTH = 32
Network = Callable[[Tensor], Tensor]


def recurrent(cell: str, *, attention: bool, scale: float = 1.0) -> Network:
    """The last state of a network, with or without what attention reads from all states."""
    network = Encoder(WIDTH, WIDTH, cell=cell, bidirectional=False).double()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if "weight_hh" in name:
                parameter.mul_(scale)

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


NETWORKS: dict[str, Callable[[], Network]] = {
    "Elman": lambda: recurrent("elman", attention=False),
    "GRU": lambda: recurrent("gru", attention=False),
    "LSTM": lambda: recurrent("lstm", attention=False),
    "Elman + attention": lambda: recurrent("elman", attention=True),
    "GRU + attention": lambda: recurrent("gru", attention=True),
    "LSTM + attention": lambda: recurrent("lstm", attention=True),
    "transformer": transformer,
}
LARGE_WEIGHTS = 4.0
"""Factor of the recurrent weights that makes gradients explode."""


def norms(network: Network, length: int) -> Tensor:
    """The norm of the gradient at each word, the last word first."""
    words = torch.randn(1, length, WIDTH, requires_grad=True, dtype=torch.float64)
    output = network(words)
    (output * torch.randn_like(output)).sum().backward()
    assert words.grad is not None
    found: Tensor = words.grad[0].norm(dim=-1)
    return found.flip(0)


def judge(ratios: dict[str, list[float]]) -> bool:
    """Far gradients vanish in every cell without attention, and in none with it."""
    plain = [over_seeds(ratios[name]) for name in ("Elman", "GRU", "LSTM")]
    shortcut = [
        over_seeds(ratios[name]) for name in ratios if "attention" in name or name == "transformer"
    ]
    return all(one.mean < -4 for one in plain) and all(clearly_above(one, -3) for one in shortcut)


def run(setting: Setting) -> Finding:
    """The gradient by distance for every network, and its explosion with large weights."""
    length, seeds = setting.pick(40, 100, 300), setting.pick(2, 8, 30)
    ratios: dict[str, list[float]] = {}
    series = []
    for name, make in NETWORKS.items():
        found = []
        for seed in range(seeds):
            torch.manual_seed(seed)
            found.append(norms(make(), length))
        mean = torch.stack(found).clamp(min=1e-300).log10().mean(0)
        step = max(1, length // 40)
        places = list(range(0, length, step))
        series.append(
            Series(name, [float(p) for p in places], [10.0 ** float(mean[p]) for p in places])
        )
        ratios[name] = [float((one[-1] / one[0]).clamp(min=1e-300).log10()) for one in found]
    exploding = []
    for seed in range(seeds):
        torch.manual_seed(seed)
        network = recurrent("elman", attention=False, scale=LARGE_WEIGHTS)
        # near zero tanh is linear: this is where large weights make the gradient grow
        words = (1e-6 * torch.randn(1, length, WIDTH)).double().requires_grad_()
        network(words).sum().backward()
        assert words.grad is not None
        exploding.append(float((words.grad[0, 0].norm() / words.grad[0, -1].norm()).log10()))
    numbers = {f"{name}: far / near gradient (log10)": over_seeds(v) for name, v in ratios.items()}
    numbers[f"Elman, weights × {LARGE_WEIGHTS:g}: far / near (log10)"] = over_seeds(exploding)
    picture = line_chart(
        "Gradient by distance", series, Axis("distance in words"), Axis("norm", log=True)
    )
    held = judge(ratios)
    means = {name: over_seeds(values).mean for name, values in ratios.items()}
    summary = (
        f"over {length} words the gradient changes by 10^{means['Elman']:.1f} in an Elman network, "
        f"10^{means['LSTM']:.1f} in an LSTM, 10^{means['LSTM + attention']:.1f} in an LSTM with "
        f"attention and 10^{means['transformer']:.1f} in a transformer; with recurrent weights "
        f"{LARGE_WEIGHTS:g} times as large it changes by 10^{over_seeds(exploding).mean:.1f}."
    )
    return Finding(held, summary, numbers, {"gradients": picture})


EXPERIMENT = Experiment(
    name="gradients",
    claim="Gradients vanish with distance in recurrent networks; attention is a shortcut for them.",
    source="Bengio et al., 1994; Pascanu et al., 2013",
    row="L2, X2",
    minutes=0.3,
    run=run,
)
