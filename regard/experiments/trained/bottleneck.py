"""A fixed vector is a bottleneck: without attention, quality falls with the length of the source.

An encoder–decoder is trained to copy and to reverse sequences of symbols, with additive attention
and without (the last state of the encoder is all the decoder knows), with about the same number of
parameters. Symbol accuracy under teacher forcing is measured by length, up to 1000 symbols. The
claim holds if the fall from length 2 to 30 is clearly larger without attention, in both (trained up
to 20; longer sources only show what is left of both). In the large size they are trained up to 1000
and judged there. Cho et al., 2014, https://arxiv.org/abs/1409.1259; Bahdanau et al., 2015,
https://arxiv.org/abs/1409.0473
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.experiments.claims import Experiment, Finding, Setting, clearly_above, over_seeds
from regard.experiments.fitting import fit
from regard.models import Translator, TranslatorConfig
from regard.show.charts import Axis, Series, line_chart

SYMBOLS, START, WIDTH = 20, 1, 48
TASKS: dict[str, Callable[[Tensor], Tensor]] = {
    "copy": lambda source: source,
    "reverse": lambda source: source.flip(1),
}
NAMES = {"additive": "with attention", "none": "without attention"}


def pairs(count: int, length: int, task: str) -> tuple[Tensor, Tensor, Tensor]:
    """Sources, targets as the decoder reads them, and the right symbols."""
    source = torch.randint(2, SYMBOLS, (count, length))
    right = TASKS[task](source)
    start = torch.full((count, 1), START)
    return source, torch.cat([start, right[:, :-1]], dim=1), right


def make(attention: str) -> Translator:
    """A network; the one without attention has the width that gives both the same size."""

    def build(width: int, score: str) -> Translator:
        config = TranslatorConfig(attention=score, width=width, dropout=0.0)
        return Translator(config, SYMBOLS, SYMBOLS)

    def size(network: Translator) -> int:
        return sum(parameter.numel() for parameter in network.parameters())

    if attention != "none":
        return build(WIDTH, attention)
    wanted = size(build(WIDTH, "additive"))
    widths = range(WIDTH // 2, 2 * WIDTH)
    return build(min(widths, key=lambda width: abs(size(build(width, "none")) - wanted)), "none")


def sample_length(longest: int) -> int:
    """Any length is as likely; where sources are long, any order of magnitude, for speed."""
    if longest <= 100:
        return int(torch.randint(2, longest + 1, ()))
    return int((2 * (longest / 2 + 0.5) ** torch.rand(())).clamp(max=longest))


def accuracies(
    attention: str, task: str, longest: int, lengths: list[int], steps: int
) -> list[float]:
    """Symbol accuracy by length of the source."""
    network = make(attention)

    def loss() -> Tensor:
        length = sample_length(longest)
        # long batches have fewer rows: one of 1000 steps is slow
        source, target, right = pairs(min(32, max(4, 640 // length)), length, task)
        sizes = torch.full((len(source),), source.shape[1])
        logits = network(source, sizes, target).logits
        return F.cross_entropy(logits.flatten(0, 1), right.flatten())

    fit(network, loss, steps, learning_rate=0.01)
    found = []
    with torch.no_grad():
        for length in lengths:
            source, target, right = pairs(max(20, min(100, 3000 // length)), length, task)
            logits = network(source, torch.full((len(source),), length), target).logits
            found.append(float((logits.argmax(-1) == right).float().mean()))
    return found


def judge(falls: dict[str, list[float]]) -> bool:
    """The fall is larger without attention, by more than chance and by five points or more."""
    more = [a - b for a, b in zip(falls["none"], falls["additive"], strict=True)]
    return clearly_above(over_seeds(more), 0.0) and over_seeds(more).mean > 0.05


def run(setting: Setting) -> Finding:
    """Train both on both tasks with several seeds."""
    lengths = setting.pick([2, 8], [2, 5, 10, 15, 20, 30, 100, 1000], [2, 10, 30, 100, 300, 1000])
    longest, judged = setting.pick(8, 20, 1000), lengths.index(setting.pick(8, 30, 1000))
    steps, seeds = setting.pick(8, 300, 3000), setting.pick(1, 3, 3)
    numbers, pictures, held, results = {}, {}, [], []
    for task in TASKS:
        series, falls = [], dict[str, list[float]]()
        for attention, name in NAMES.items():
            values = []
            for seed in range(seeds):
                torch.manual_seed(seed)
                values.append(accuracies(attention, task, longest, lengths, steps))
            measured = [over_seeds([one[i] for one in values]) for i in range(len(lengths))]
            mean, low, high = zip(*(m[:3] for m in measured), strict=True)
            series.append(Series(name, lengths, mean, low, high))
            falls[attention] = [one[0] - one[judged] for one in values]
            fall = f"{task}: fall from length {lengths[0]} to {lengths[judged]}, {name}"
            numbers[fall] = over_seeds(falls[attention])
            for place in sorted({judged, len(lengths) - 1}):
                numbers[f"{task}: accuracy at length {lengths[place]}, {name}"] = measured[place]
        axes = Axis("length of the source", log=True), Axis("symbol accuracy")
        title = f"Task {task}, trained up to length {longest}"
        pictures[task] = line_chart(title, series, *axes)
        held.append(judge(falls))
        means = {name: 100 * over_seeds(values).mean for name, values in falls.items()}
        results.append(
            f"{means['none']:.0f} points without attention and {means['additive']:.0f} with it "
            f"({task})"
        )
    summary = f"from length {lengths[0]} to {lengths[judged]} accuracy fell by "
    summary += f"{', '.join(results)}."
    return Finding(all(held), summary, numbers, pictures)


EXPERIMENT = Experiment(
    name="bottleneck",
    claim="Without attention, quality falls faster with the length of the source than with it.",
    source="Cho et al., 2014; Bahdanau et al., 2015",
    row="S2",
    minutes=2.5,
    run=run,
)
