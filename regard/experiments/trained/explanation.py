"""Is attention an explanation? Shuffled, adversarial and uniform weights, and other seeds.

A classifier with attention learns generated reviews in which one word decides. If attention
explains a prediction, other weights should change it: the weights are shuffled at test time, and an
adversary searches, for each text, weights as different as possible that leave the output as it is
(Jain and Wallace, 2019, https://arxiv.org/abs/1902.10186). A model with weights frozen at uniform
shows whether attention was needed at all, other seeds how much weights vary anyway (Wiegreffe and
Pinter, 2019, https://arxiv.org/abs/1908.04626). The claim tested: most predictions survive.
"""

from itertools import combinations
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention import attend
from regard.experiments.claims import Experiment, Finding, Setting, over_seeds
from regard.experiments.fitting import fit, seeded
from regard.experiments.trained.other_weights import adversarial_share, divergence
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


KINDS: dict[str, dict[str, Any]] = {
    "softmax, in context": {"context": True},
    "softmax, words alone": {"context": False},
    "entmax, in context": {"context": True, "normalize": "entmax15"},
    "sparsemax, in context": {"context": True, "normalize": "sparsemax"},
    "uniform, in context": {"context": True, "uniform": True},
}


class Answer(NamedTuple):
    """What one trained model does with the test reviews."""

    accuracy: float
    shuffled: float
    """The share of predictions that change when the weights are shuffled."""
    adversarial: float
    """The share of texts with very different weights but the same output."""
    weights: Tensor


def measure(kind: str, steps: int, attack: int) -> Answer:
    """Train one model, and give it other weights; all models read the same test reviews."""
    network = Reader(**KINDS[kind])

    def loss() -> Tensor:
        words, labels, _ = reviews(64)
        return F.cross_entropy(network(words)[0], labels)

    fit(network, loss, steps)
    words, labels, _ = seeded(lambda: reviews(1000), 10**6)
    with torch.no_grad():
        logits, weights = network(words)
        other = network(words, weights.gather(1, torch.rand(weights.shape).argsort(1)))[0]
    right = float((logits.argmax(1) == labels).float().mean())
    changed = float((logits.argmax(1) != other.argmax(1)).float().mean())
    adversarial = adversarial_share(network, words[:200], weights[:200], attack)
    return Answer(right, changed, adversarial, weights)


def judge(found: dict[str, list[Answer]]) -> bool:
    """In context, most predictions survive shuffling, most texts have other weights with the same
    output, and uniform weights are as accurate."""
    own, uniform = found["softmax, in context"], found["uniform, in context"]
    right = over_seeds([one.accuracy for one in own]).mean
    needless = over_seeds([one.accuracy for one in uniform]).mean > right - 0.02
    survive = over_seeds([one.shuffled for one in own]).mean < 0.25
    return (
        right > 0.9 and survive and needless and over_seeds([a.adversarial for a in own]).mean > 0.5
    )


def run(setting: Setting) -> Finding:
    """Train every kind with several seeds, and give them other weights."""
    steps, seeds = setting.pick(10, 300, 2000), setting.pick(2, 6, 10)
    found: dict[str, list[Answer]] = {}
    for kind in KINDS:
        for seed in range(seeds):
            torch.manual_seed(seed)
            found.setdefault(kind, []).append(measure(kind, steps, setting.pick(3, 100, 300)))
    numbers, bars = {}, []
    for kind, answers in found.items():
        numbers[f"{kind}: accuracy"] = over_seeds([one.accuracy for one in answers])
        if KINDS[kind].get("uniform"):
            continue
        for what in ("shuffled", "adversarial"):
            numbers[f"{kind}: {what}"] = value = over_seeds([getattr(a, what) for a in answers])
            bars.append(Bar(f"{kind}: {what}", *value[:3]))
        pairs = combinations([one.weights for one in answers], 2)
        apart = over_seeds([float(divergence(a, b).mean()) for a, b in pairs])
        numbers[f"{kind}: bits between seeds"] = apart
    picture = interval_chart("Other weights", bars, "share changed, or with an adversary")
    own = "softmax, in context"
    percent = {name: f"{100 * value.mean:.0f} %" for name, value in numbers.items()}
    summary = (
        f"in context, shuffled weights change {percent[f'{own}: shuffled']} of the predictions, "
        f"{percent[f'{own}: adversarial']} of the texts have very different weights with the same "
        f"output, and uniform weights reach {percent['uniform, in context: accuracy']} accuracy; "
        f"seeds differ by {numbers[f'{own}: bits between seeds'].mean:.2f} of 1 bit."
    )
    return Finding(judge(found), summary, numbers, {"other-weights": picture})


EXPERIMENT = Experiment(
    name="explanation",
    claim="Attention is not explanation: most predictions survive other weights.",
    source="Jain and Wallace, 2019; Wiegreffe and Pinter, 2019",
    row="S5",
    minutes=1,
    run=run,
)
