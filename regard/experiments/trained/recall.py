"""A network with an external memory copies and recalls more than it was trained on.

A network with a memory (NTM), an LSTM and a transformer are trained with the same number of updates
on two tasks: to copy short sequences, and to recall the value of a key among a few pairs
(associative recall). They are tested at trained lengths and up to twice as long. The claim holds if
the memory network is the most accurate one on the longer problems of both. Pictures show where the
memory's heads write and read. Graves et al., 2014, https://arxiv.org/abs/1410.5401
"""

from collections.abc import Iterable, Mapping
from typing import Any

from regard.experiments.claims import Experiment, Finding, Measured, Setting, over_seeds
from regard.experiments.fitting import train_on_built_in_data
from regard.experiments.two_processes import share_out
from regard.inference.run import Run
from regard.show.charts import Axis, Series, line_chart
from regard.show.draw import draw_svg

KINDS: dict[str, dict[str, Any]] = {
    "memory": {"model": "memory"},
    "LSTM": {"model": "recurrent", "width": 128},
    "transformer": {"model": "transformer", "width": 64},
}
TASKS = {"copy": "symbols", "recall": "pairs"}


def problem_length(source: str) -> int:
    """Symbols to copy, or pairs before the question of recall."""
    symbols = source.split()
    return symbols.index("?") // 2 if "?" in symbols else len(symbols)


def accuracy(lines: Iterable[Mapping[str, Any]], lengths: range) -> float:
    """The share of symbols that are right, over problems of these lengths."""
    right, total = 0, 0
    for line in lines:
        if problem_length(line["source"]) in lengths:
            gold, output = line["target"].split(), line["predicted"].split()
            right += sum(a == b for a, b in zip(gold, output, strict=False))
            total += len(gold)
    return right / total if total else float("nan")


def judge(longer: Mapping[str, Measured]) -> bool:
    """The memory is the most accurate on longer problems, by five points or more."""
    others = [measured.mean for name, measured in longer.items() if name != "memory"]
    return longer["memory"].mean > max(others) + 0.05


def longest_trained(setting: Setting, task: str) -> int:
    """The longest problems in training."""
    return setting.pick(2, 6 if task == "copy" else 4, 10)


def trained_run(setting: Setting, task: str, name: str, seed: int) -> Run:
    """A network of one kind, trained on a task, or loaded if it was trained before."""
    return train_on_built_in_data(
        setting,
        "algorithm",
        f"{task}-{name}-{seed}",
        kind=task,
        longest=longest_trained(setting, task),
        symbols=8,
        steps=setting.pick(2, 400, 5000),
        seed=seed,
        evaluate_every=10**9,
        **KINDS[name],
    )


def solve(setting: Setting, task: str, name: str, seed: int) -> list[dict[str, str]]:
    """Problems of all lengths with the right answers and those of a trained network."""
    lines = trained_run(setting, task, name, seed).evaluate().lines
    return [{part: line[part] for part in ("source", "target", "predicted")} for line in lines]


def run(setting: Setting) -> Finding:
    """Train each network on each task with several seeds."""
    seeds = range(1, setting.pick(1, 3, 5) + 1)
    jobs = [(task, name, seed) for task in TASKS for name in KINDS for seed in seeds]
    answers = dict(zip(jobs, share_out(setting, solve, jobs), strict=True))
    numbers, pictures, held, results = dict[str, Measured](), dict[str, str](), [], []
    for task, unit in TASKS.items():
        longest = longest_trained(setting, task)
        lengths, longer = range(1, 2 * longest + 1), dict[str, Measured]()
        series = []
        for name in KINDS:
            lines = [answers[task, name, seed] for seed in seeds]
            found = [over_seeds([accuracy(o, range(n, n + 1)) for o in lines]) for n in lengths]
            mean, low, high = zip(*(measured[:3] for measured in found), strict=True)
            series.append(Series(name, lengths, mean, low, high))
            beyond = range(longest + 1, 2 * longest + 1)
            longer[name] = over_seeds([accuracy(one, beyond) for one in lines])
            numbers[f"{task}, {name}: accuracy beyond length {longest}"] = longer[name]
            numbers[f"{task}, {name}: accuracy at length {longest}"] = found[longest - 1]
            if name == "memory":
                sources = [line["source"] for line in lines[0]]
                problem = next(one for one in sources if problem_length(one) == longest)
                trace = trained_run(setting, task, name, seeds[0]).trace(problem)
                for head in ("write", "read"):
                    title = f"{task.capitalize()}: where the memory's head {head}s"
                    drawn = draw_svg(trace, name=f"memory.{head}", title=title)
                    pictures[f"{task}-{head}-head"] = drawn
        title = f"{task.capitalize()}, trained up to length {longest}"
        axes = Axis(f"length ({unit})"), Axis("share of right symbols")
        pictures = {task: line_chart(title, series, *axes)} | pictures
        held.append(judge(longer))
        shares = ", ".join(f"{name} {100 * m.mean:.0f} %" for name, m in longer.items())
        results.append(f"{task} beyond length {longest}: {shares}")
    summary = "the share of right symbols is, in " + "; in ".join(results) + "."
    return Finding(all(held), summary, numbers, pictures)


EXPERIMENT = Experiment(
    name="memory",
    claim="With an external memory, a network copies and recalls longer sequences than it was "
    "trained on, better than an LSTM or a transformer.",
    source="Graves et al., 2014, 2016",
    row="X3",
    minutes=1.5,
    run=run,
)
