"""A sum of word vectors cannot learn what "not" does; attention between words can.

Generated reviews have one opinion word and, in half of them, "not": "the plot is not good". Their
label is the opinion, turned round by "not". Logistic regression on the sum or the mean of the
word vectors adds up what each word says by itself, so it must fail where "not" decides; weights
that are computed from the whole set, and self-attention, can bind "not" to the opinion.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.experiments.claims import Experiment, Finding, Setting, over_seeds
from regard.experiments.fitting import fit
from regard.models import Classifier, ClassifierConfig
from regard.show.charts import Bar, interval_chart

GOOD, BAD, FILLERS, NOT = range(1, 9), range(9, 17), range(17, 40), 40
LENGTH = 8
POOLINGS: dict[str, dict[str, Any]] = {
    "sum": {"pooling": "sum"},
    "mean": {"pooling": "mean"},
    "weighted": {"pooling": "weighted"},
    "fixed, one query": {"pooling": "fixed"},
    "fixed, four queries": {"pooling": "fixed", "queries": 4},
    "self-attention": {"pooling": "self"},
}
ADDITIVE = ("sum", "mean")
"""Poolings that add up what each word says by itself."""


def reviews(count: int, negated: float = 0.5) -> tuple[Tensor, Tensor, Tensor]:
    """Words, labels, and which reviews have "not"."""
    words = torch.randint(FILLERS.start, FILLERS.stop, (count, LENGTH))
    good, turned = torch.rand(count) < 0.5, torch.rand(count) < negated
    opinions = torch.where(
        good,
        torch.randint(GOOD.start, GOOD.stop, (count,)),
        torch.randint(BAD.start, BAD.stop, (count,)),
    )
    places = torch.rand(count, LENGTH).argsort(1)
    rows = torch.arange(count)
    words[rows, places[:, 0]] = opinions
    words[rows[turned], places[turned, 1]] = NOT
    return words, (good ^ turned).long(), turned


def accuracies(options: dict[str, Any], steps: int, negated: float = 0.5) -> tuple[float, float]:
    """Accuracy of a trained classifier on reviews without and with "not"."""
    config = ClassifierConfig(encoder="none", width=32, dropout=0.0, **options)
    model = Classifier(config, NOT + 1, 2)

    def loss() -> Tensor:
        words, labels, _ = reviews(64, negated)
        lengths = torch.full((len(words),), LENGTH)
        return F.cross_entropy(model(words, lengths).logits, labels)

    fit(model, loss, steps)
    words, labels, turned = reviews(2000)
    with torch.no_grad():
        right = model(words, torch.full((len(words),), LENGTH)).logits.argmax(1) == labels
    return float(right[~turned].float().mean()), float(right[turned].float().mean())


def judge(lowest: dict[str, list[float]]) -> bool:
    """Additive poolings stay near chance on one slice; self-attention solves both."""
    additive = [over_seeds(lowest[name]).mean for name in ADDITIVE]
    return max(additive) < 0.65 and over_seeds(lowest["self-attention"]).mean > 0.9


def run(setting: Setting) -> Finding:
    """Train a classifier with every pooling and several seeds."""
    steps, seeds = setting.pick(30, 500, 2000), setting.pick(1, 6, 10)
    found: dict[str, list[tuple[float, float]]] = {}
    for name, options in POOLINGS.items():
        for seed in range(seeds):
            torch.manual_seed(seed)
            found.setdefault(name, []).append(accuracies(options, steps))
    lowest = {name: [min(both) for both in values] for name, values in found.items()}
    numbers = {
        f"{name}: accuracy with “not”": over_seeds([v for _, v in values])
        for name, values in found.items()
    }
    numbers |= {
        f"{name}: lower of both accuracies": over_seeds(values) for name, values in lowest.items()
    }
    bars = [Bar(name, *over_seeds(values)[:3]) for name, values in lowest.items()]
    axis = "accuracy on the harder of both slices, with and without “not”"
    picture = interval_chart("Where “not” decides", bars, axis)
    means = {name: 100 * over_seeds(values).mean for name, values in lowest.items()}
    summary = "accuracy on the harder slice: " + ", ".join(
        f"{n} {v:.0f} %" for n, v in means.items()
    )
    return Finding(judge(lowest), f"{summary}.", numbers, {"negation": picture})


EXPERIMENT = Experiment(
    name="negation",
    claim="Sums and means of word vectors fail where “not” decides; self-attention does not.",
    source="lecture on attention",
    row="C1, C2, C3, C4",
    minutes=1,
    run=run,
)
