"""A network with an external memory learns to copy, and copies longer sequences than it saw.

A network with a memory (NTM), an LSTM and a transformer are trained on copying short sequences
with the same number of updates, and tested at trained lengths and up to twice as long. The claim
holds if the memory network is the most accurate one on the longer sequences. Graves et al., 2014,
https://arxiv.org/abs/1410.5401
"""

from typing import Any

from regard.experiments.claims import Experiment, Finding, Measured, Setting, over_seeds
from regard.experiments.fitting import train_on_built_in_data
from regard.show.charts import Axis, Series, line_chart

KINDS: dict[str, dict[str, Any]] = {
    "memory": {"model": "memory"},
    "LSTM": {"model": "recurrent", "width": 128},
    "transformer": {"model": "transformer", "width": 64},
}


def accuracy(lines: tuple[dict[str, Any], ...], lengths: range) -> float:
    """The share of symbols that are right, over problems of these lengths."""
    right, total = 0, 0
    for line in lines:
        gold, output = line["target"].split(), line["predicted"].split()
        if len(gold) in lengths:
            right += sum(a == b for a, b in zip(gold, output, strict=False))
            total += len(gold)
    return right / total if total else float("nan")


def judge(longer: dict[str, Measured]) -> bool:
    """The memory is the most accurate on longer sequences, by five points or more."""
    others = [measured.mean for name, measured in longer.items() if name != "memory"]
    return longer["memory"].mean > max(others) + 0.05


def run(setting: Setting) -> Finding:
    """Train each network with several seeds."""
    steps, seeds = setting.pick(2, 700, 5000), setting.pick(1, 1, 3)
    longest = setting.pick(3, 6, 10)
    found: dict[str, list[list[float]]] = {}
    for name, options in KINDS.items():
        for seed in range(1, seeds + 1):
            trained = train_on_built_in_data(
                setting,
                "algorithm",
                f"{name}-{seed}",
                kind="copy",
                longest=longest,
                symbols=8,
                steps=steps,
                seed=seed,
                evaluate_every=10**9,
                **options,
            )
            lines = trained.evaluate().lines
            lengths = range(1, 2 * longest + 1)
            values = [accuracy(lines, range(n, n + 1)) for n in lengths]
            longer = accuracy(lines, range(longest + 1, 2 * longest + 1))
            found.setdefault(name, []).append([*values, longer])
    longer_by_kind = {name: over_seeds([v[-1] for v in values]) for name, values in found.items()}
    numbers = {f"{name}: accuracy on longer sequences": m for name, m in longer_by_kind.items()}
    numbers |= {
        f"{name}: accuracy at length {longest}": over_seeds([v[longest - 1] for v in values])
        for name, values in found.items()
    }
    series = [
        Series(
            name,
            range(1, 2 * longest + 1),
            [sum(v[i] for v in vs) / len(vs) for i in range(2 * longest)],
        )
        for name, vs in found.items()
    ]
    title = f"Copying, trained up to length {longest}"
    picture = line_chart(title, series, Axis("length"), Axis("share of right symbols"))
    summary = (
        f"on lengths {longest + 1} to {2 * longest} the share of right symbols is "
        + ", ".join(
            f"{name} {100 * measured.mean:.0f} %" for name, measured in longer_by_kind.items()
        )
    )
    return Finding(judge(longer_by_kind), f"{summary}.", numbers, {"copy": picture})


EXPERIMENT = Experiment(
    name="memory",
    claim="A network with an external memory copies longer sequences than it was trained on.",
    source="Graves et al., 2014, 2016",
    row="X3",
    minutes=3,
    run=run,
)
