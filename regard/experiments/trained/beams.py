"""Beyond a small width, beam search makes translations no better, and shorter.

A small translator is trained on the built-in corpus and decodes the same test sentences with
wider and wider beams. The claim holds if the widest beam is no better than width 4 (its BLEU is
not above by more than half a point) and its translations are not longer. Koehn and Knowles, 2017,
https://arxiv.org/abs/1706.03872
"""

from collections.abc import Sequence
from typing import Any

from regard.corpora import make_corpus
from regard.experiments.claims import Experiment, Finding, Measured, Setting, over_seeds
from regard.experiments.fitting import train_on_built_in_data
from regard.inference.run import Run
from regard.metrics import bleu, metric_value
from regard.show.charts import Axis, Series, line_chart


def quality(run: Run, beam: int, pairs: list[tuple[str, str]]) -> tuple[float, float]:
    """BLEU, and the number of words relative to the references."""
    outputs = [one.output for one in run.predict([source for source, _ in pairs], beam=beam)]
    references = [target for _, target in pairs]
    words = sum(len(text.split()) for text in outputs)
    length = words / sum(len(text.split()) for text in references)
    return metric_value(bleu(outputs, references)), length


def judge(narrow: list[tuple[float, float]], wide: list[tuple[float, float]]) -> bool:
    """The wide beam gains less than half a point of BLEU, and is not longer."""
    gain = over_seeds([b[0] - a[0] for a, b in zip(narrow, wide, strict=True)]).mean
    longer = over_seeds([b[1] - a[1] for a, b in zip(narrow, wide, strict=True)]).mean
    return gain < 0.5 and longer < 0.005


def run(setting: Setting) -> Finding:
    """Train with several seeds, and decode with every width."""
    beams = setting.pick([1, 4], [1, 2, 4, 8, 16], [1, 2, 4, 8, 16, 32, 64])
    steps, seeds = setting.pick(2, 700, 3000), setting.pick(1, 4, 5)
    examples: Sequence[Any] = make_corpus("english_french", setting.pick(100, None, None)).test[
        : setting.pick(3, 200, 500)
    ]
    pairs = [(example.source, example.target) for example in examples]
    found: dict[int, list[tuple[float, float]]] = {}
    for seed in range(1, seeds + 1):
        trained = train_on_built_in_data(
            setting,
            "translation",
            f"seed-{seed}",
            width=setting.pick(16, 128, 128),
            batch_tokens=512,
            learning_rate=0.002,
            steps=steps,
            seed=seed,
            evaluate_every=10**9,
        )
        for beam in beams:
            found.setdefault(beam, []).append(quality(trained, beam, pairs))
    scores = {beam: over_seeds([b for b, _ in values]) for beam, values in found.items()}
    lengths = {beam: over_seeds([n for _, n in values]) for beam, values in found.items()}
    numbers = {f"BLEU, beam {beam}": value for beam, value in scores.items()}
    numbers |= {f"length ratio, beam {beam}": value for beam, value in lengths.items()}
    across = Axis("beam width", log=True)
    pictures = {
        "bleu": line_chart(
            "Quality by beam width", [_series("BLEU", scores)], across, Axis("BLEU")
        ),
        "length": line_chart(
            "Length by beam width", [_series("length", lengths)], across, Axis("length ratio")
        ),
    }
    wide = beams[-1]
    summary = (
        f"BLEU is {scores[1].mean:.1f} with beam 1, {scores[4].mean:.1f} with beam 4 and "
        f"{scores[wide].mean:.1f} with beam {wide}; the lengths relative to the references are "
        f"{lengths[1].mean:.3f}, {lengths[4].mean:.3f} and {lengths[wide].mean:.3f}."
    )
    return Finding(judge(found[4], found[wide]), summary, numbers, pictures)


def _series(name: str, values: dict[int, Measured]) -> Series:
    measured = list(values.values())
    mean, low, high = zip(*(m[:3] for m in measured), strict=True)
    return Series(name, list(values), mean, low, high)


EXPERIMENT = Experiment(
    name="beams",
    claim="Beyond a small width, wider beams make translations no better, and not longer.",
    source="Koehn and Knowles, 2017",
    row="S4",
    minutes=2.5,
    run=run,
)
