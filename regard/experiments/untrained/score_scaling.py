"""Dot products grow with the size of the vectors and saturate the softmax; 1/√d prevents it.

For random vectors of size d, q·k has the variance d: the softmax of unscaled scores puts nearly
all weight on one key, its entropy falls, and the gradient that reaches the scores vanishes.
Divided by √d, the scores have the same variance for every d. Vaswani et al., 2017, section 3.2.1,
https://arxiv.org/abs/1706.03762. The table shows the time that each score takes.
"""

import time

import torch

from regard.attention.attention_tables import SCORES
from regard.attention.scores import dot, scaled_dot
from regard.experiments.claims import (
    Experiment,
    Finding,
    Measured,
    Setting,
    clearly_above,
    over_seeds,
)
from regard.layers import MultiHead
from regard.show.charts import Axis, Series, line_chart
from regard.show.report_page import Table

KEYS = 32
FUNCTIONS = {"dot": dot, "scaled_dot": scaled_dot}


def entropy_and_gradient(score: str, size: int) -> tuple[float, float]:
    """The entropy of the weights in bits, and the norm of the gradient that reaches the scores."""
    query, key = torch.randn(64, 1, size), torch.randn(64, KEYS, size)
    scores = FUNCTIONS[score](query, key).detach().requires_grad_()
    weights = scores.softmax(-1)
    entropy = -(weights * weights.clamp(min=1e-30).log2()).sum(-1).mean()
    (weights * torch.randn(64, 1, KEYS)).sum().backward()
    assert scores.grad is not None
    return float(entropy.detach()), float(scores.grad.norm(dim=-1).mean())


def judge(gradient: dict[tuple[str, int], list[float]], small: int, large: int) -> bool:
    """Unscaled, the gradient falls clearly from the small to the large size; scaled, it stays."""
    fall = {
        score: over_seeds(
            [a / b for a, b in zip(gradient[score, small], gradient[score, large], strict=True)]
        )
        for score in FUNCTIONS
    }
    return clearly_above(fall["dot"], 2.0) and fall["scaled_dot"].mean < 1.5


def run(setting: Setting) -> Finding:
    """Entropy and gradient by size, and the time of every score."""
    sizes = setting.pick([4, 256], [4, 16, 64, 256, 1024], [4, 16, 64, 256, 1024, 4096])
    seeds = setting.pick(3, 10, 50)
    entropy: dict[tuple[str, int], list[float]] = {}
    gradient: dict[tuple[str, int], list[float]] = {}
    for score in FUNCTIONS:
        for size in sizes:
            torch.manual_seed(size)
            both = [entropy_and_gradient(score, size) for _ in range(seeds)]
            entropy[score, size] = [bits for bits, _ in both]
            gradient[score, size] = [norm for _, norm in both]
    pictures = {
        "entropy": _chart("Entropy of the weights", "bits", entropy, sizes),
        "gradient": _chart("Gradient that reaches the scores", "norm", gradient, sizes),
    }
    large = sizes[-1]
    numbers = {
        f"entropy of {s}, d = {large} (bits)": over_seeds(entropy[s, large]) for s in FUNCTIONS
    }
    numbers |= {f"gradient of {s}, d = {large}": over_seeds(gradient[s, large]) for s in FUNCTIONS}
    held = judge(gradient, sizes[0], large)
    falls = {
        s: over_seeds(gradient[s, sizes[0]]).mean / over_seeds(gradient[s, large]).mean
        for s in FUNCTIONS
    }
    summary = (
        f"from d = {sizes[0]} to d = {large} the gradient fell by a factor of {falls['dot']:.3g} "
        f"unscaled and {falls['scaled_dot']:.3g} scaled."
    )
    return Finding(held, summary, numbers, pictures, {"Time of each score": _speeds(setting)})


def _chart(
    title: str, unit: str, found: dict[tuple[str, int], list[float]], sizes: list[int]
) -> str:
    series = []
    for score in FUNCTIONS:
        measured: list[Measured] = [over_seeds(found[score, size]) for size in sizes]
        mean, low, high = zip(*(m[:3] for m in measured), strict=True)
        series.append(Series(score, [float(size) for size in sizes], mean, low, high))
    return line_chart(title, series, Axis("size of the vectors", log=True), Axis(unit))


def _speeds(setting: Setting) -> Table:
    """Milliseconds per call of multi-head attention with each score, forwards and backwards."""
    length, rows = setting.pick(8, 64, 256), []
    for score in dict.fromkeys(SCORES):
        layer = MultiHead(64, heads=4, score=score)
        inputs, times = torch.randn(4, length, 64), []
        for _ in range(setting.pick(2, 6, 20)):
            started = time.perf_counter()
            layer(inputs).output.sum().backward()
            times.append(1000 * (time.perf_counter() - started))
        measured = over_seeds(times[1:])
        size = sum(parameter.numel() for parameter in layer.parameters())
        rows.append([score, f"{measured.mean:.2f} ms", f"{size:,}"])
    return Table(["score", f"time, {length} words", "parameters"], rows)


EXPERIMENT = Experiment(
    name="scores",
    claim="Unscaled dot products saturate the softmax as vectors grow; dividing by √d prevents it.",
    source="Vaswani et al., 2017",
    row="A1, A2",
    minutes=0.2,
    run=run,
)
