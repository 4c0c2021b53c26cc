"""Heads of a language model put much of their weight on the first token, whatever it is.

Softmax weights must sum to one, so a head that needs nothing puts its weight where it does least
harm: on the first token. A small transformer is trained on the built-in stories; the weight on
the first token is compared with even attention, 1/t in row t. With the sigmoid normalizer weights
need not sum to one, which is what a learned empty key allows too. The claim holds if some layer
of every model puts at least three times the even share on the first token. Xiao et al., 2023,
https://arxiv.org/abs/2309.17453
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.experiments.claims import Experiment, Finding, Setting, clearly_above, over_seeds
from regard.experiments.fitting import train_on_built_in_data
from regard.show.charts import Axis, Series, line_chart

TEXT = "Once upon a time there was a small fox who lived near the river and liked to sing ."


def first_token_share(weights: np.ndarray) -> float:
    """The mean weight on the first token, relative to even attention; the first rows are left out.

    Rows are divided by their sums, which are 1 only under softmax.
    """
    rows = range(4, len(weights))
    shares = [weights[q, 0] / max(1e-12, weights[q, : q + 1].sum()) * (q + 1) for q in rows]
    return float(np.mean(shares))


def shares_by_layer(looks: Sequence[Any]) -> dict[int, float]:
    """The largest share of a head in each layer of self-attention."""
    found: dict[int, float] = {}
    for look in looks:
        if look.layer is not None and look.weights.shape[0] == look.weights.shape[1] > 5:
            share = first_token_share(look.weights)
            found[look.layer] = max(share, found.get(look.layer, 0.0))
    return found


def judge(largest: list[float]) -> bool:
    """The strongest layer puts clearly more than three times the even share there."""
    return clearly_above(over_seeds(largest), 3.0)


def run(setting: Setting) -> Finding:
    """Train with softmax and with sigmoid, and read the weights of one text."""
    steps, seeds = setting.pick(2, 300, 3000), setting.pick(1, 2, 5)
    found: dict[str, list[dict[int, float]]] = {}
    for normalize in ("softmax", "sigmoid"):
        for seed in range(1, seeds + 1):
            run = train_on_built_in_data(
                setting,
                "language",
                f"{normalize}-{seed}",
                model="transformer",
                normalize=normalize,
                width=setting.pick(16, 64, 128),
                layers=setting.pick(1, 3, 4),
                steps=steps,
                seed=seed,
                evaluate_every=10**9,
            )
            trace = run.trace(TEXT, tokens=1)
            found.setdefault(normalize, []).append(shares_by_layer(trace.looks))
    layers = sorted(found["softmax"][0])
    series, numbers = [], {}
    for normalize, values in found.items():
        measured = [over_seeds([one[layer] for one in values]) for layer in layers]
        series.append(Series(normalize, layers, [m.mean for m in measured]))
        for layer, value in zip(layers, measured, strict=True):
            numbers[f"{normalize}, layer {layer}: weight on the first token / even"] = value
    largest = [max(one.values()) for one in found["softmax"]]
    title = "Weight on the first token, strongest head"
    picture = line_chart(title, series, Axis("layer"), Axis("times the even share"))
    sigmoid = over_seeds([max(one.values()) for one in found["sigmoid"]]).mean
    summary = (
        f"the strongest head puts {over_seeds(largest).mean:.1f} times the even share on the first "
        f"token under softmax, {sigmoid:.1f} times under sigmoid."
    )
    return Finding(judge(largest), summary, numbers, {"sinks": picture})


EXPERIMENT = Experiment(
    name="sinks",
    claim="Heads of a language model put much of their weight on the first token.",
    source="Xiao et al., 2023",
    row="A4",
    minutes=2.5,
    run=run,
)
