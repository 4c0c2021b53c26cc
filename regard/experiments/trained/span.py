"""An attention language model looks only a few words back, and gains little from more.

A recurrent language model with attention over its past states is trained on the built-in stories,
with windows of different sizes. How far back its weight lies is read from its looks at test
stories; perplexity on them shows what each window gains. The claim holds if the largest window
gains less than 5 % over a window of 5. Daniluk et al., 2017, https://arxiv.org/abs/1702.04521
"""

from typing import Any

import numpy as np

from regard.corpora import make_corpus
from regard.data.examples import Line
from regard.experiments.claims import Experiment, Finding, Measured, Setting, over_seeds
from regard.experiments.fitting import train_on_built_in_data
from regard.inference.run import Run
from regard.show.charts import Axis, Series, line_chart

SMALL, READ = 5, 20
"""A small window, and the number of test stories in which distances are measured."""


def mean_distance(weights: np.ndarray) -> float:
    """How many positions back the weight of a lower triangular map lies, in the mean over rows."""
    queries, keys = weights.shape
    back = (np.arange(queries)[:, None] + (keys - queries)) - np.arange(keys)[None]
    rows = weights.sum(1) > 1e-9
    return float((weights * back).sum(1)[rows].mean() / max(1e-9, weights.sum(1)[rows].mean()))


def weight_by_distance(weights: np.ndarray, places: int) -> list[float]:
    """The share of the weight that lies 0, 1, 2 … positions back, of a lower triangular map."""
    now = weights.shape[1] - weights.shape[0]
    found = [float(np.trace(weights, offset=now - back)) for back in range(places)]
    return [share / max(1e-9, float(weights.sum())) for share in found]


def measure(run: Run, lines: int, places: int) -> tuple[float, float, list[float]]:
    """Perplexity on test stories, and how far back the run looks: the mean, and all shares."""
    test = make_corpus(str(run.spec.corpus), 10 * lines).test[:lines]
    evaluation = run.task.evaluate(run.model, test)
    traces = [run.trace(line.text, tokens=1) for line in test[:READ] if isinstance(line, Line)]
    looks = [look for trace in traces for look in trace.looks if len(look.queries) > 1]
    distance = float(np.mean([mean_distance(look.weights) for look in looks])) if looks else 0.0
    shares = np.mean([weight_by_distance(look.weights, places) for look in looks] or [[]], axis=0)
    return evaluation.metrics[evaluation.main].value, distance, shares.tolist()


def judge(small: list[float], largest: list[float]) -> bool:
    """The largest window gains less than 5 % of the perplexity of the small one."""
    gains = [1 - b / a for a, b in zip(small, largest, strict=True)]
    return over_seeds(gains).mean < 0.05


def run(setting: Setting) -> Finding:
    """Train without attention and with each window, with several seeds."""
    windows = setting.pick([SMALL, 8], [SMALL, 15, 40], [SMALL, 10, 20, 40, 80])
    steps, seeds = setting.pick(2, 500, 3000), setting.pick(1, 3, 5)
    options: dict[int, dict[str, Any]] = {0: {"attention": "none"}}
    options |= {window: {"attention": "scaled_dot", "window": window} for window in windows}
    found: dict[int, list[tuple[float, float, list[float]]]] = {}
    for window, chosen in options.items():
        for seed in range(1, seeds + 1):
            trained = train_on_built_in_data(
                setting,
                "language",
                f"window-{window}-{seed}",
                ngrams=0,
                width=setting.pick(16, 64, 128),
                learning_rate=0.01,
                steps=steps,
                seed=seed,
                evaluate_every=10**9,
                **chosen,
            )
            measured = measure(trained, setting.pick(10, 300, 1000), window + 1)
            found.setdefault(window, []).append(measured)
    perplexity: dict[int, Measured] = {w: over_seeds([one[0] for one in found[w]]) for w in found}
    distance = {w: over_seeds([one[1] for one in found[w]]) for w in windows}
    names = {w: f"window {w}" if w else "no attention" for w in options}
    numbers = {f"perplexity per word, {names[w]}": m for w, m in perplexity.items()}
    numbers |= {f"mean distance, {names[w]}": m for w, m in distance.items()}
    mean, low, high = zip(*(measured[:3] for measured in perplexity.values()), strict=True)
    series = Series("perplexity", list(options), mean, low, high)
    axes = Axis("window (0: no attention)"), Axis("perplexity per word")
    pictures = {"span": line_chart("What a window gains", [series], *axes)}
    where = [
        Series(
            names[w], range(w + 1), np.mean([shares for _, _, shares in found[w]], axis=0).tolist()
        )
        for w in windows
    ]
    axes = Axis("positions back"), Axis("share of the weight")
    pictures["distance"] = line_chart("How far back the weight lies", where, *axes)
    last = windows[-1]
    summary = (
        f"perplexity per word is {perplexity[0].mean:.2f} without attention, "
        f"{perplexity[SMALL].mean:.2f} with a window of {SMALL} and {perplexity[last].mean:.2f} "
        f"with {last}, where the weight lies {distance[last].mean:.1f} positions back."
    )
    held = judge([one[0] for one in found[SMALL]], [one[0] for one in found[last]])
    return Finding(held, summary, numbers, pictures)


EXPERIMENT = Experiment(
    name="span",
    claim="An attention language model gains little from looking more than a few words back.",
    source="Daniluk et al., 2017",
    row="L3",
    minutes=2,
    run=run,
)
