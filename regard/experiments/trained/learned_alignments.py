"""Attention learns to align words without being told how.

A small translator is trained on the built-in English–French pairs, whose word links are known, with
several scores. At several points of its training the links are read from its attention (for each
French word, the English word with the largest weight) and compared with the known ones: the
alignment error rate, AER (0 is perfect). Entropy says how sharp the weights are, and one sentence
shows what each score has learned. The claim holds if the AER of every content-based score falls
clearly below that of the diagonal, which links words at the same place. Bahdanau et al., 2015,
https://arxiv.org/abs/1409.0473; Och and Ney, 2003, https://doi.org/10.1162/089120103321337421
"""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from regard.corpora import make_corpus
from regard.experiments.claims import (
    Experiment,
    Finding,
    Measured,
    Setting,
    clearly_above,
    over_seeds,
)
from regard.experiments.fitting import data_files, train_on_built_in_data
from regard.experiments.trained.link_errors import diagonal, error_and_entropy, gold_links
from regard.experiments.two_processes import share_out
from regard.inference.align.alignments import attention_places, pair_attention
from regard.inference.run import Run
from regard.show.charts import Axis, Series, line_chart
from regard.show.draw import draw_svg

CORPUS = "english_french"
SCORES = ("additive", "bilinear", "dot", "location")
CONTENT = ("additive", "bilinear", "dot")
"""Scores that read what a word is; location reads only the decoder and counts places."""


def measure(run: Run, pairs: Sequence[Any]) -> tuple[float, float]:
    """AER and entropy of a translator at the first place where its attention can be read."""
    place = attention_places(run)[0]
    weights = [one.at(place) for one in pair_attention(run, pairs)]
    return error_and_entropy(weights, gold_links(pairs))


def judge(final: dict[str, list[float]], diagonal_error: float) -> bool:
    """Every score that reads words makes clearly fewer errors than the diagonal."""
    return all(
        clearly_above(over_seeds([diagonal_error - error for error in final[score]]), 0.05)
        for score in CONTENT
    )


def train(setting: Setting, score: str, seed: int, steps: int) -> Run:
    """A translator with a score; the same run folder is extended by ever more updates."""
    return train_on_built_in_data(
        setting,
        "translation",
        f"{score}-{seed}",
        attention=score,
        tokenizer="word",
        width=setting.pick(16, 96, 128),
        dropout=0.1,
        batch_tokens=512,
        learning_rate=0.003,
        steps=steps,
        seed=seed,
        evaluate_every=10**9,
    )


def held_out_pairs(setting: Setting) -> Sequence[Any]:
    """Sentence pairs with known links, which no translator is trained on."""
    corpus = make_corpus(CORPUS, setting.pick(100, 1000, 5000))
    return corpus.valid[: setting.pick(5, 100, 500)]


def updates(setting: Setting) -> list[int]:
    """When to measure."""
    return setting.pick([2, 4], [50, 100, 200, 400, 800], [100, 300, 1000, 3000])


def through_training(setting: Setting, score: str, seed: int) -> list[tuple[float, float]]:
    """AER and entropy after each part of the training."""
    pairs = held_out_pairs(setting)
    return [measure(train(setting, score, seed, steps), pairs) for steps in updates(setting)]


def run(setting: Setting) -> Finding:
    """Train in a folder that is removed: runs of an earlier call would be at their ends already."""
    with TemporaryDirectory() as folder:
        return _run(Setting(setting.size, Path(folder), device=setting.device))


def _run(setting: Setting) -> Finding:
    """Train with every score and seed for ever more updates, and measure after each part."""
    points, pairs, seeds = updates(setting), held_out_pairs(setting), setting.pick(1, 3, 5)
    jobs = [(score, seed) for score in SCORES for seed in range(1, seeds + 1)]
    data_files(setting, CORPUS)  # both processes read the same
    found = dict[tuple[str, int], list[tuple[float, float]]]()
    for (score, _), values in zip(jobs, share_out(setting, through_training, jobs), strict=True):
        for steps, one in zip(points, values, strict=True):
            found.setdefault((score, steps), []).append(one)
    maps = {}
    for score in SCORES:
        example = train(setting, score, 1, points[-1]).trace(pairs[0].source, pairs[0].target)
        maps[f"learned-{score}"] = draw_svg(example, title=f"What {score} attention has learned")
    baseline, _ = error_and_entropy(diagonal(pairs), gold_links(pairs))
    last, numbers, pictures = points[-1], dict[str, Measured](), dict[str, str]()
    for column, name, unit in ((0, "AER", "alignment error rate"), (1, "entropy", "bits")):
        series = []
        for score in SCORES:
            measured = [over_seeds([one[column] for one in found[score, n]]) for n in points]
            mean, low, high = zip(*(m[:3] for m in measured), strict=True)
            series.append(Series(score, points, mean, low, high))
            numbers[f"{name}, {score}, {last} updates"] = measured[-1]
        if not column:
            series.append(Series("diagonal", points, [baseline] * len(points)))
        title = f"{name} through training"
        pictures[name.lower()] = line_chart(title, series, Axis("updates"), Axis(unit))
    numbers["AER of the diagonal"] = over_seeds([baseline])
    final = {score: [error for error, _ in found[score, last]] for score in SCORES}
    summary = f"after {last} updates the AER is " + ", ".join(
        f"{100 * over_seeds(errors).mean:.0f} % ({score})" for score, errors in final.items()
    )
    summary += f", that of the diagonal {100 * baseline:.0f} %."
    return Finding(judge(final, baseline), summary, numbers, pictures | maps)


EXPERIMENT = Experiment(
    name="alignments",
    claim="Attention learns to align words without being told how, with any score that reads them.",
    source="Bahdanau et al., 2015",
    row="S5",
    minutes=2.5,
    run=run,
)
