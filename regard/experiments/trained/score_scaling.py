"""Dot products grow with the size of the vectors and saturate the softmax; 1/√d prevents it.

For random vectors of size d, q·k has the variance d: the softmax of unscaled scores puts nearly
all weight on one key, its entropy falls, and the gradient that reaches the scores vanishes.
Divided by √d, the scores have the same variance for every d. Vaswani et al., 2017, section 3.2.1,
https://arxiv.org/abs/1706.03762. The claim is about this alone. A third picture has the entropy by
temperature, the number that scores are divided by, and a table compares all scores on one task:
accuracy, time, and memory held for the backward pass.
"""

from collections.abc import Callable, Mapping, Sequence

import torch

from regard.attention.attention_tables import SCORES
from regard.experiments.claims import (
    Experiment,
    Finding,
    Measured,
    Setting,
    clearly_above,
    over_seeds,
)
from regard.experiments.trained.lookup_task import lookup_accuracy, time_and_memory
from regard.show.charts import Axis, Series, line_chart
from regard.show.report_page import Table

KEYS = 32
TABLE = "Every score on one task, to look up the value of a key among eight pairs"
TEMPERATURES: dict[str, Callable[[int], float]] = {
    "dot": lambda size: 1.0,
    "scaled_dot": lambda size: size**0.5,
}


def entropy_and_gradient(size: int, temperature: float) -> tuple[float, float]:
    """The entropy of softmax(q·k / temperature) in bits, and the norm of the scores' gradient."""
    query, key = torch.randn(64, 1, size), torch.randn(64, KEYS, size)
    scores = (query @ key.mT / temperature).requires_grad_()
    weights = scores.softmax(-1)
    entropy = -(weights * weights.clamp(min=1e-30).log2()).sum(-1).mean()
    (weights * torch.randn(64, 1, KEYS)).sum().backward()
    assert scores.grad is not None
    return float(entropy.detach()), float(scores.grad.norm(dim=-1).mean())


def distinct_scores() -> list[str]:
    """Every score by the first of its names."""
    return list({SCORES[name]: name for name in reversed([*SCORES])}.values())[::-1]


def judge(gradient: Mapping[tuple[str, int], Sequence[float]], small: int, large: int) -> bool:
    """Unscaled, the gradient falls clearly from the small to the large size; scaled, it stays."""
    fall = {
        score: over_seeds(
            [a / b for a, b in zip(gradient[score, small], gradient[score, large], strict=True)]
        )
        for score in TEMPERATURES
    }
    return clearly_above(fall["dot"], 2.0) and fall["scaled_dot"].mean < 1.5


def run(setting: Setting) -> Finding:
    """Entropy and gradient by size and by temperature, and every score on one task."""
    sizes = setting.pick([4, 256], [4, 16, 64, 256, 1024], [4, 16, 64, 256, 1024, 4096])
    seeds, large = setting.pick(3, 10, 50), sizes[-1]
    entropy: dict[tuple[str, int], list[float]] = {}
    gradient: dict[tuple[str, int], list[float]] = {}
    for score, temperature in TEMPERATURES.items():
        for size in sizes:
            torch.manual_seed(size)
            both = [entropy_and_gradient(size, temperature(size)) for _ in range(seeds)]
            entropy[score, size] = [bits for bits, _ in both]
            gradient[score, size] = [norm for _, norm in both]
    numbers = {
        f"gradient of {s}, d = {large}": over_seeds(gradient[s, large]) for s in TEMPERATURES
    }
    numbers |= {
        f"entropy of {s}, d = {large} (bits)": over_seeds(entropy[s, large]) for s in TEMPERATURES
    }
    pictures = {
        "entropy": _by_size("Entropy of the weights", "bits", entropy, sizes),
        "gradient": _by_size("Gradient that reaches the scores", "norm", gradient, sizes),
        "temperature": _by_temperature(sizes, seeds),
    }
    falls = {
        s: over_seeds(gradient[s, sizes[0]]).mean / over_seeds(gradient[s, large]).mean
        for s in TEMPERATURES
    }
    table, accuracies = _every_score(setting)
    summary = (
        f"from d = {sizes[0]} to d = {large} the gradient fell by a factor of {falls['dot']:.3g} "
        f"unscaled and {falls['scaled_dot']:.3g} scaled."
    )
    held = judge(gradient, sizes[0], large)
    return Finding(held, summary, numbers | accuracies, pictures, {TABLE: table})


def _series(name: str, x: Sequence[float | int], values: Sequence[Sequence[float]]) -> Series:
    mean, low, high = zip(*(over_seeds(one)[:3] for one in values), strict=True)
    return Series(name, x, mean, low, high)


def _by_size(
    title: str, unit: str, found: Mapping[tuple[str, int], Sequence[float]], sizes: Sequence[int]
) -> str:
    series = [_series(score, sizes, [found[score, d] for d in sizes]) for score in TEMPERATURES]
    return line_chart(title, series, Axis("size of the vectors", log=True), Axis(unit))


def _by_temperature(sizes: Sequence[int], seeds: int) -> str:
    temperatures = [2.0**power for power in range(-1, 7)]
    series = []
    for size in sizes:
        bits = [[entropy_and_gradient(size, t)[0] for _ in range(seeds)] for t in temperatures]
        series.append(_series(f"d = {size}, √d = {size**0.5:g}", temperatures, bits))
    axis = Axis("temperature", log=True)
    return line_chart("Entropy of the weights by temperature", series, axis, Axis("bits"))


def _every_score(setting: Setting) -> tuple[Table, dict[str, Measured]]:
    """Accuracy, time and memory of each score."""
    updates, seeds = setting.pick(2, 200, 1000), setting.pick(1, 3, 10)
    length, repeats = setting.pick(8, 64, 256), setting.pick(2, 15, 30)
    accuracies, rows = dict[str, Measured](), []
    for score in distinct_scores():
        found = []
        for seed in range(seeds):
            torch.manual_seed(seed)
            found.append(lookup_accuracy(score, updates))
        accuracies[f"accuracy of {score}"] = right = over_seeds(found)
        milliseconds, megabytes = time_and_memory(score, length, repeats)
        percent = f"{100 * right.mean:.0f} %"
        rows.append([score, percent, f"{milliseconds:.2f} ms", f"{megabytes:.2f} MB"])
    heads = ["score", "accuracy", f"processor time, {length} words", "held for backward"]
    return Table(heads, rows), accuracies


EXPERIMENT = Experiment(
    name="scores",
    claim="Unscaled dot products saturate the softmax as vectors grow; dividing by √d prevents it.",
    source="Vaswani et al., 2017",
    row="A1, A2",
    minutes=0.5,
    run=run,
)
