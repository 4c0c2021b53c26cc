"""Is attention an explanation? Shuffled weights and uniform weights that were trained, too.

A classifier with attention learns generated reviews in which one word decides. If attention
explains a prediction, other weights should change it: the weights are shuffled at test time, and
the share of predictions that change is counted (Jain and Wallace, 2019,
https://arxiv.org/abs/1902.10186). A model whose weights are frozen at uniform shows whether
attention was needed at all (Wiegreffe and Pinter, 2019, https://arxiv.org/abs/1908.04626). The
claim tested is the sceptical one: most predictions survive other weights.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention import attend
from regard.experiments.claims import Experiment, Finding, Setting, over_seeds
from regard.experiments.fitting import fit
from regard.layers.recurrent import Encoder
from regard.show.charts import Bar, interval_chart

WORDS, OPINIONS, LENGTH, WIDTH = 60, 10, 12, 32


def reviews(count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Words, labels, and where the word stands that decides."""
    words = torch.randint(2 * OPINIONS, WORDS, (count, LENGTH))
    labels, places = torch.randint(2, (count,)), torch.randint(LENGTH, (count,))
    words[torch.arange(count), places] = labels * OPINIONS + torch.randint(OPINIONS, (count,))
    return words, labels, places


class Reader(nn.Module):
    """States in context or words alone, one query, a decision; weights can be given."""

    def __init__(self, *, context: bool, normalize: str = "softmax", uniform: bool = False) -> None:
        super().__init__()
        self.normalize, self.uniform = normalize, uniform
        self.words = nn.Embedding(WORDS, WIDTH)
        self.network = Encoder(WIDTH, WIDTH // 2) if context else None
        self.query = nn.Parameter(torch.randn(1, WIDTH))
        self.decision = nn.Linear(WIDTH, 2)

    def forward(self, words: Tensor, weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Logits and weights [b, t]."""
        states = self.words(words)
        if self.network is not None:
            states = self.network(states, torch.full((len(words),), LENGTH)).states
        if weights is None and self.uniform:
            weights = torch.full(words.shape, 1 / LENGTH)
        if weights is None:
            attended = attend(self.query, states, states, normalize=self.normalize)
            assert attended.weights is not None
            weights = attended.weights[:, 0]
        return self.decision((weights[..., None] * states).sum(1)), weights


KINDS = {
    "softmax, in context": {"context": True},
    "softmax, words alone": {"context": False},
    "sparsemax, in context": {"context": True, "normalize": "sparsemax"},
    "uniform, in context": {"context": True, "uniform": True},
}


def measure(kind: str, steps: int) -> tuple[float, float]:
    """Accuracy, and the share of predictions that change when the weights are shuffled."""
    network = Reader(**KINDS[kind])  # type: ignore[arg-type]

    def loss() -> Tensor:
        words, labels, _ = reviews(64)
        return F.cross_entropy(network(words)[0], labels)

    fit(network, loss, steps)
    words, labels, _ = reviews(1000)
    with torch.no_grad():
        logits, weights = network(words)
        orders = torch.rand(weights.shape).argsort(1)
        other = network(words, weights.gather(1, orders))[0]
    changed = (logits.argmax(1) != other.argmax(1)).float().mean()
    return float((logits.argmax(1) == labels).float().mean()), float(changed)


def judge(found: dict[str, list[tuple[float, float]]]) -> bool:
    """In context, most predictions survive shuffling, and uniform weights are as accurate."""
    changed = over_seeds([c for _, c in found["softmax, in context"]]).mean
    accurate = {kind: over_seeds([a for a, _ in values]).mean for kind, values in found.items()}
    needless = accurate["uniform, in context"] > accurate["softmax, in context"] - 0.02
    return accurate["softmax, in context"] > 0.9 and changed < 0.25 and needless


def run(setting: Setting) -> Finding:
    """Train every kind with several seeds, and shuffle."""
    steps, seeds = setting.pick(10, 300, 2000), setting.pick(1, 3, 10)
    found: dict[str, list[tuple[float, float]]] = {}
    for kind in KINDS:
        for seed in range(seeds):
            torch.manual_seed(seed)
            found.setdefault(kind, []).append(measure(kind, steps))
    numbers = {f"{k}: accuracy": over_seeds([a for a, _ in v]) for k, v in found.items()}
    changed = {k: over_seeds([c for _, c in v]) for k, v in found.items() if "uniform" not in k}
    numbers |= {f"{kind}: changed by shuffling": value for kind, value in changed.items()}
    bars = [Bar(kind, *value[:3]) for kind, value in changed.items()]
    picture = interval_chart("Shuffled attention", bars, "share of predictions that change")
    summary = "shuffled weights change " + ", ".join(
        f"{100 * value.mean:.0f} % ({kind})" for kind, value in changed.items()
    )
    uniform = numbers["uniform, in context: accuracy"].mean
    summary += f" of the predictions; uniform weights reach {100 * uniform:.0f} % accuracy."
    return Finding(judge(found), summary, numbers, {"shuffled": picture})


EXPERIMENT = Experiment(
    name="explanation",
    claim="Attention is not explanation: most predictions survive other weights.",
    source="Jain and Wallace, 2019; Wiegreffe and Pinter, 2019",
    row="S5",
    minutes=1.5,
    run=run,
)
