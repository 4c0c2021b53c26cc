"""Heads of a language model put much of their weight on the first token, whatever it is.

Softmax weights must sum to one, so a head that needs nothing puts its weight where it does least
harm: on the first token. Small transformers learn the built-in stories, in windows that begin
anywhere; the weight on the first token and on the current one is compared with even attention, 1/t
in row t. Beside the plain model, one has a learned empty key (a key without a value) that can take
such weight, and one the sigmoid normalizer, whose weights need not sum to one. The claim holds if
the strongest head of the plain model puts clearly more than three times the even share on the first
token. Xiao et al., 2023, https://arxiv.org/abs/2309.17453
"""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.corpora import make_corpus
from regard.data.examples import Line
from regard.experiments.claims import Experiment, Finding, Setting, clearly_above, over_seeds
from regard.experiments.fitting import CausalTransformer, fit, next_symbol_loss
from regard.show.charts import Axis, Series, line_chart

LENGTH, VOCABULARY = 32, 1000
KINDS: dict[str, dict[str, Any]] = {
    "softmax": {},
    "empty key": {"empty_key": True},
    "sigmoid": {"normalize": "sigmoid"},
}


class Shares(NamedTuple):
    """What one head attends to; the first two relative to even attention."""

    first: float
    current: float
    empty: float


def head_shares(weights: np.ndarray) -> Shares:
    """Shares of a head [t, t], or [t, 1 + t] with an empty key; the first four rows are left out.

    Rows are divided by their sums, which are 1 only under softmax.
    """
    start = weights.shape[1] - len(weights)
    rows = range(4, len(weights))
    sums = {q: max(1e-12, weights[q, : start + q + 1].sum()) for q in rows}
    first = np.mean([weights[q, start] / sums[q] * (q + 1) for q in rows])
    current = np.mean([weights[q, start + q] / sums[q] * (q + 1) for q in rows])
    empty = np.mean([weights[q, :start].sum() / sums[q] for q in rows])
    return Shares(float(first), float(current), float(empty))


def story_words(stories: int | None) -> Tensor:
    """The built-in stories as one row of numbers; 0 is a rare word."""
    lines = make_corpus("stories", stories).train
    words = [word for line in lines if isinstance(line, Line) for word in line.text.split()]
    common = [word for word, _ in Counter(words).most_common(VOCABULARY - 1)]
    number = {word: i + 1 for i, word in enumerate(common)}
    return torch.tensor([number.get(word, 0) for word in words])


def windows(words: Tensor, count: int) -> Tensor:
    """Windows that begin anywhere."""
    return words[torch.randint(len(words) - LENGTH, (count, 1)) + torch.arange(LENGTH)]


def measure(
    kind: str, words: Tensor, steps: int, width: int, layers: int
) -> tuple[list[Shares], float]:
    """The largest shares of any head in each layer, and the perplexity of held-out words."""
    network = CausalTransformer(VOCABULARY, width, layers=layers, **KINDS[kind])
    training, held_out = words[: len(words) * 9 // 10], words[len(words) * 9 // 10 :]

    def loss(text: Tensor) -> Tensor:
        return next_symbol_loss(network(text)[0], text, torch.ones_like(text, dtype=torch.bool))

    fit(network, lambda: loss(windows(training, 32)), steps)
    text = windows(held_out, 200)
    with torch.no_grad():
        perplexity = float(loss(text).exp())
        found = [layer.mean(0).double().numpy() for layer in network(text)[1]]
    by_layer = [[head_shares(head) for head in layer] for layer in found]
    return [Shares(*map(max, zip(*heads, strict=True))) for heads in by_layer], perplexity


def judge(largest: list[float]) -> bool:
    """The strongest head puts clearly more than three times the even share there."""
    return clearly_above(over_seeds(largest), 3.0)


def run(setting: Setting) -> Finding:
    """Train every kind with several seeds."""
    steps, seeds = setting.pick(2, 500, 5000), setting.pick(1, 3, 5)
    width, layers = setting.pick(16, 64, 128), setting.pick(1, 3, 4)
    words = story_words(setting.pick(100, 2000, None))
    found: dict[str, list[tuple[list[Shares], float]]] = {}
    for kind in KINDS:
        for seed in range(seeds):
            torch.manual_seed(seed)
            found.setdefault(kind, []).append(measure(kind, words, steps, width, layers))
    numbers, pictures = {}, {}
    for kind, values in found.items():
        strongest = [max(shares.first for shares in one) for one, _ in values]
        numbers[f"{kind}: weight on the first token / even, strongest head"] = over_seeds(strongest)
        current = [max(shares.current for shares in one) for one, _ in values]
        numbers[f"{kind}: weight on the current token / even, strongest head"] = over_seeds(current)
        numbers[f"{kind}: perplexity"] = over_seeds([perplexity for _, perplexity in values])
    empty = over_seeds([max(shares.empty for shares in one) for one, _ in found["empty key"]])
    numbers["empty key: weight on it, strongest head"] = empty
    largest = {
        kind: [max(shares.first for shares in one) for one, _ in values]
        for kind, values in found.items()
    }
    for file, token in (("sinks", "first"), ("current", "current")):
        series = []
        for kind, values in found.items():
            by_layer = [[getattr(one[i], token) for one, _ in values] for i in range(layers)]
            mean, low, high = zip(*(over_seeds(one)[:3] for one in by_layer), strict=True)
            series.append(Series(kind, range(1, layers + 1), mean, low, high))
        title = f"Weight on the {token} token, strongest head"
        axes = Axis("layer"), Axis("times the even share")
        pictures[file] = line_chart(title, series, *axes)
    shares = ", ".join(f"{over_seeds(v).mean:.1f} times with {k}" for k, v in largest.items())
    summary = (
        f"the strongest head puts this multiple of the even share on the first token: {shares}; "
        f"with an empty key, a head puts up to {100 * empty.mean:.0f} % of its weight there."
    )
    return Finding(judge(largest["softmax"]), summary, numbers, pictures)


EXPERIMENT = Experiment(
    name="sinks",
    claim="Heads of a language model put much of their weight on the first token.",
    source="Xiao et al., 2023",
    row="A4",
    minutes=2.5,
    run=run,
)
