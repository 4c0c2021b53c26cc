"""Learned positions fail at lengths never trained on; a linear bias and recurrence do not.

At each place, networks give the latest of some marked symbols: they must attend to what is marked
and recent. They are trained on short sequences and tested on longer ones with the same weights.
The claim holds if, having learned the task, a linear bias in the score and recurrence keep their
accuracy and learned positions lose at least ten points more. Press et al., 2022,
https://arxiv.org/abs/2108.12409
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.experiments.claims import Experiment, Finding, Setting, over_seeds
from regard.experiments.fitting import CausalTransformer, fit
from regard.layers.recurrent import Encoder
from regard.show.charts import Axis, Series, line_chart

SYMBOLS, MARKED, TRAINED = 16, 5, 16
KINDS = ("none", "sinusoids", "learned", "rotary", "linear", "recurrence")


class Recurrent(nn.Module):
    """A GRU that answers at every place."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.symbols = nn.Embedding(SYMBOLS, width)
        self.network = Encoder(width, width, bidirectional=False)
        self.output = nn.Linear(width, SYMBOLS)

    def forward(self, symbols: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Logits, and no weights."""
        lengths = torch.full((len(symbols),), symbols.shape[1])
        return self.output(self.network(self.symbols(symbols), lengths).states), []


def make(kind: str) -> nn.Module:
    """A network of one kind."""
    if kind == "recurrence":
        return Recurrent()
    return CausalTransformer(SYMBOLS, 64, positions=kind, max_length=TRAINED)


def latest(symbols: Tensor) -> Tensor:
    """The latest marked symbol at each place; -1 where there is none yet."""
    places = torch.arange(symbols.shape[1]).expand_as(symbols)
    last = places.masked_fill(symbols >= MARKED, -1).cummax(1).values
    return symbols.gather(1, last.clamp(min=0)).masked_fill(last < 0, -1)


def answers(network: nn.Module, length: int, count: int = 64) -> tuple[Tensor, Tensor]:
    """Logits [n, symbols] and right symbols [n], where there are some."""
    symbols = torch.randint(SYMBOLS, (count, length))
    right = latest(symbols)
    return network(symbols)[0][right >= 0], right[right >= 0]


def accuracies(kind: str, lengths: list[int], steps: int) -> list[float]:
    """The accuracy at each length, of a network trained on short sequences."""
    network = make(kind)

    def loss() -> Tensor:
        length = int(torch.randint(4, TRAINED + 1, ()))
        logits, right = answers(network, length)
        return F.cross_entropy(logits, right)

    fit(network, loss, steps)
    found = []
    with torch.no_grad():
        for length in lengths:
            logits, right = answers(network, length)
            found.append(float((logits.argmax(-1) == right).float().mean()))
    return found


def judge(trained: dict[str, float], longest: dict[str, float]) -> bool:
    """What was learned is kept by a linear bias and by recurrence, not by learned positions."""
    lost = {kind: trained[kind] - longest[kind] for kind in trained}
    learned = all(trained[kind] > 0.9 for kind in ("linear", "recurrence", "learned"))
    kept = max(lost["linear"], lost["recurrence"])
    return learned and kept < 0.1 and kept + 0.1 < lost["learned"]


def run(setting: Setting) -> Finding:
    """Train every kind with several seeds, and test it at longer lengths."""
    lengths = setting.pick([16, 32], [16, 24, 32, 64, 128], [16, 32, 64, 128, 256, 512])
    steps, seeds = setting.pick(10, 250, 1500), setting.pick(1, 4, 5)
    found: dict[str, list[list[float]]] = {}
    for kind in KINDS:
        for seed in range(seeds):
            torch.manual_seed(seed)
            found.setdefault(kind, []).append(accuracies(kind, lengths, steps))
    series, numbers = [], {}
    for kind, values in found.items():
        measured = [over_seeds([one[i] for one in values]) for i in range(len(lengths))]
        mean, low, high = zip(*(m[:3] for m in measured), strict=True)
        series.append(Series(kind, lengths, mean, low, high))
        numbers[f"{kind}: accuracy at length {lengths[0]}"] = measured[0]
        numbers[f"{kind}: accuracy at length {lengths[-1]}"] = measured[-1]
    axes = Axis("length of the sequence", log=True), Axis("accuracy")
    title = f"Trained on lengths up to {TRAINED}"
    first, last = (
        {k: over_seeds([v[i] for v in vs]).mean for k, vs in found.items()} for i in (0, -1)
    )
    summary = f"accuracy at length {lengths[0]} and at {lengths[-1]}: " + ", ".join(
        f"{kind} {100 * first[kind]:.0f} and {100 * last[kind]:.0f} %" for kind in KINDS
    )
    picture = line_chart(title, series, *axes)
    return Finding(judge(first, last), f"{summary}.", numbers, {"lengths": picture})


EXPERIMENT = Experiment(
    name="lengths",
    claim="Learned positions fail at lengths never trained on; linear bias and recurrence do not.",
    source="Press et al., 2022",
    row="L5, A4",
    minutes=1,
    run=run,
)
