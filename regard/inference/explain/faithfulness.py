"""Faithfulness: does attention name the words that the output depends on?

Three questions over many texts. Does erasing the words with the most attention change the output
more than erasing random ones, or those that gradients name? (DeYoung et al., 2020,
https://arxiv.org/abs/1911.03429) Do attention and the other methods rank words alike? And does the
output change when the weights are shuffled? (Jain and Wallace, 2019,
https://arxiv.org/abs/1902.10186)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int

from regard.data import Summary, hold_examples, resolve
from regard.errors import RegardError
from regard.inference.explain.explainers import EXPLAINERS
from regard.inference.explain.perturbation import (
    erase_by,
    perturb_attention,
    select_outputs,
    sum_over_words,
)
from regard.inference.explain.targets import make_target
from regard.inference.run import Run
from regard.metrics import Comparison, Measurement, Tally, compare, measure
from regard.metrics.tally import ratio
from regard.notebook_cards import table
from regard.progress import track
from regard.tasks.shared.explain_target import ExplainTarget

PROPORTIONS = (0.05, 0.1, 0.2, 0.5)
"""Proportions of the words that are erased."""
MIN_TEXTS = 10
"""With fewer texts than these no interval means much."""
RANDOM_RANKINGS = 5
"""Random rankings of the words of a text."""


@dataclass(frozen=True, repr=False)
class Faithfulness:
    """How faithful attention is to what a model does, over many texts."""

    task: str
    texts: int
    outputs: int
    erase: str
    proportions: tuple[float, ...]
    comprehensiveness: dict[str, Measurement]
    """By method; more is better."""
    sufficiency: dict[str, Measurement]
    """By method; less is better."""
    agreement: dict[str, Measurement]
    """Kendall's τ between attention and each method's magnitudes, over words."""
    flips: dict[str, Measurement]
    """The proportion of outputs that change under shuffled and under uniform attention."""
    distance: dict[str, Measurement]
    """How far the distribution moves then, in total variation."""
    against: dict[str, Comparison]
    """Comprehensiveness of attention less that of each method, on the same texts."""
    verdict: str
    """The same in one sentence."""

    def __repr__(self) -> str:
        return f"Faithfulness({self.texts} texts, {self.outputs} outputs: {self.verdict})"

    def _repr_html_(self) -> str:
        head = ("words ranked by", "comprehensiveness", "sufficiency")
        rows = [
            [method, measured.text(), self.sufficiency[method].text()]
            for method, measured in self.comprehensiveness.items()
        ]
        title = f"{self.texts} texts, {self.outputs} outputs: {self.verdict}"
        return table(head, rows, title)


@dataclass
class _Sums:
    """Sums over the outputs of each text, and their number, by name."""

    rows: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def add(self, name: str, values: Sequence[float]) -> None:
        known = [value for value in values if not np.isnan(value)]
        self.rows.setdefault(name, []).append((sum(known), len(known)))

    def tallies(self, metric: str) -> dict[str, Tally]:
        """One mean per name, under one metric name, so that they can be compared."""
        return {
            name: Tally(metric, np.array(pairs, dtype=np.float64), _mean)
            for name, pairs in self.rows.items()
        }

    def measure(self, metric: str) -> dict[str, Measurement]:
        return {name: measure(tally) for name, tally in self.tallies(metric).items()}


def faithfulness(
    run: Run,
    texts: Sequence[str],
    *,
    proportions: Sequence[float] = PROPORTIONS,
    erase: str | None = None,
    positions: int = 4,
    shuffles: int = 10,
    seed: int = 0,
) -> Faithfulness:
    """Measure how faithful the attention of a run is on some texts.

    Args:
        run: a trained run.
        texts: texts to measure on; those of fewer than two words are skipped.
        proportions: proportions of the words that are erased or kept, at least one word each.
        erase: how words are erased: delete or unknown (default: delete; in tagging unknown).
        positions: number of outputs per text, sampled: words of a translation, tags, next words.
        shuffles: how often the weights are shuffled for each text.
        seed: random seed.
    """
    if not all(0 < proportion < 1 for proportion in proportions) or not proportions:
        raise ValueError(
            f"proportions of the words must lie between 0 and 1; got {list(proportions)}"
        )
    generator = np.random.default_rng(seed)
    comprehensive, sufficient, agreement, flips, distance = (_Sums() for _ in range(5))
    texts_read, outputs, erase_used = 0, 0, erase
    for text in track(texts, "measuring faithfulness", unit="texts"):
        target = _sample_outputs(
            make_target(run, text, erase=erase, every=True), positions, generator
        )
        if target is None:
            continue
        texts_read, outputs = texts_read + 1, outputs + len(target.positions)
        erase_used = target.erase
        ranked = [
            _rank_words(target, i, values, generator)
            for i, values in enumerate(_values_by_method(target))
        ]
        erased = erase_by(target, [rankings for rankings, _ in ranked], proportions)
        by_output = list(zip(erased, (agreed for _, agreed in ranked), strict=True))
        for method in by_output[0][0]:
            effects = [effects_of[method] for effects_of, _ in by_output]
            comprehensive.add(method, [effect.comprehensiveness for effect in effects])
            sufficient.add(method, [effect.sufficiency for effect in effects])
        for method in by_output[0][1]:
            agreement.add(method, [agreement_with[method] for _, agreement_with in by_output])
        noise = torch.Generator().manual_seed(int(generator.integers(2**62)))
        for name, effect in perturb_attention(target, shuffles, noise).items():
            flips.add(name, [effect.flips])
            distance.add(name, [effect.distance])
    if not texts_read:
        raise RegardError("no text of two words or more: there is nothing to erase")
    tallies = comprehensive.tallies("comprehensiveness")
    against = {
        method: compare(tallies["attention"], other, seed=seed)
        for method, other in tallies.items()
        if method != "attention" and "attention" in tallies
    }
    measured = comprehensive.measure("comprehensiveness")
    agreed, flipped = agreement.measure("kendall tau"), flips.measure("flips")
    if texts_read < MIN_TEXTS:
        few = "1 text is" if texts_read == 1 else f"{texts_read} texts are"
        conclusion = f"{few} not enough for a verdict: {MIN_TEXTS} or more are needed."
    else:
        uniform = all(np.isnan(measurement.value) for measurement in agreed.values())
        conclusion = verdict(measured, against, flipped, uniform=uniform)
    return Faithfulness(
        task=run.name,
        texts=texts_read,
        outputs=outputs,
        erase=str(erase_used),
        proportions=tuple(proportions),
        comprehensiveness=measured,
        sufficiency=sufficient.measure("sufficiency"),
        agreement=agreed,
        flips=flipped,
        distance=distance.measure("total variation"),
        against=against,
        verdict=conclusion,
    )


def read_texts(run: Run, data: Any, **columns: str) -> tuple[list[str], str]:
    """The texts of some files, read as the training data was, and a summary of what was read.

    `columns` chooses columns by the names of the data options, as in `Run.evaluate`.
    """
    text_of = run.spec.require("example_text", run.folder.path, "faithfulness")
    summary = Summary()
    read = run.spec.read(run.data_with_columns(columns), resolve(hold_examples(data)), summary)
    examples = list(track(read, "reading data", unit="examples"))
    summary.require(1, "to erase words of")
    return [text_of(example) for example in examples], str(summary)


def kendall_tau(first: Float[np.ndarray, "n"], second: Float[np.ndarray, "n"]) -> float:
    """τ_b: pairs in the same order less pairs in the other, over those that are not tied.

    NaN where all of a side are equal. Kendall, 1945, https://doi.org/10.1093/biomet/33.3.239
    """
    above = np.triu_indices(len(first), 1)
    left, right = (np.sign(side[:, None] - side)[above] for side in (first, second))
    untied = np.sqrt(np.count_nonzero(left) * np.count_nonzero(right))
    return float((left * right).sum() / untied) if untied else float("nan")


def verdict(
    measured: Mapping[str, Measurement],
    against: Mapping[str, Comparison],
    flips: Mapping[str, Measurement],
    *,
    uniform: bool = False,
) -> str:
    """The conclusion that the intervals allow, in one sentence.

    A difference counts only where its interval excludes zero.
    """
    gradients = [
        name
        for name, explainer in EXPLAINERS.items()
        if explainer.from_gradients and name in measured
    ]
    best = max(gradients, key=lambda method: measured[method].value)
    random, gradient = measured["random"].value, f"{_figure(measured[best].value)}, by {best}"
    if "attention" not in measured:
        if measured[best].low > measured["random"].high:
            return (
                "The model has no attention over the input; gradients name words that matter "
                f"({gradient}, against {_figure(random)} for random words)."
            )
        return (
            "The model has no attention over the input, and gradients do not name words that "
            f"matter measurably more than random ones ({gradient}, against {_figure(random)})."
        )
    if uniform:
        return "Attention is the same for all words, so it names none; compare the gradients."
    value = measured["attention"].value
    figures = f"({_figure(value)} against {_figure(random)})"
    shuffling = _effect_of_shuffling(flips)
    side = _side(against["random"])
    if side == 0:
        return (
            "Attention cannot be trusted to name words that matter: erasing them does not change "
            f"the output measurably more than erasing random ones {figures}{shuffling}."
        )
    if side < 0:
        return (
            "Attention names words that matter less than others: erasing them changes the output "
            f"less than erasing random ones {figures}{shuffling}."
        )
    beside = {
        -1: f"but less than those that gradients name ({gradient})",
        0: f"and about as much as those that gradients name ({gradient})",
        1: f"and more than those that gradients name ({gradient})",
    }
    return (
        "Attention names words that matter: erasing them changes the output more than erasing "
        f"random ones {figures}, {beside[_side(against[best])]}{shuffling}."
    )


def _figure(value: float) -> str:
    return f"{value:.2f}" if abs(value) >= 0.1 else f"{round(value, 3) + 0.0:.3f}"


def _effect_of_shuffling(flips: Mapping[str, Measurement]) -> str:
    if "shuffled" not in flips:
        return ""
    return f"; shuffling its weights changes {100 * flips['shuffled'].value:.0f} % of the outputs"


def _side(compared: Comparison) -> int:
    """The sign of a difference; 0 where its interval includes zero."""
    return int(compared.low > 0) - int(compared.high < 0)


def _sample_outputs(
    target: ExplainTarget | None, positions: int, generator: np.random.Generator
) -> ExplainTarget | None:
    """Some of the outputs of a target, of those that depend on two words at least."""
    if target is None:
        return None
    usable = [i for i, seen in enumerate(target.visible) if len(set(target.units[seen])) > 1]
    if not usable:
        return None
    sampled = generator.choice(usable, size=min(positions, len(usable)), replace=False)
    return select_outputs(target, sorted(sampled.tolist()))


def _values_by_method(target: ExplainTarget) -> list[dict[str, Float[np.ndarray, "t"]]]:
    """For each output, the values of its tokens by method."""
    values = {}
    for name, explainer in EXPLAINERS.items():
        if explainer.measured:
            attributions = (explainer.quick or explainer.method)(target)
            if attributions is not None:
                values[name] = attributions.values
    return [{name: rows[i] for name, rows in values.items()} for i in range(len(target.positions))]


def _rank_words(
    target: ExplainTarget,
    output: int,
    values: Mapping[str, Float[np.ndarray, "t"]],
    generator: np.random.Generator,
) -> tuple[dict[str, list[Int[np.ndarray, "u"]]], dict[str, float]]:
    """The words ranked by every method and at random, and how well each agrees with attention."""
    words = {name: sum_over_words(target, output, row) for name, row in values.items()}
    count = len(next(iter(words.values())))
    rankings = {name: [rank(sums, generator)] for name, sums in words.items()}
    rankings["random"] = [generator.permutation(count) for _ in range(RANDOM_RANKINGS)]
    agreement = {}
    if "attention" in words:
        agreement = {
            name: kendall_tau(words["attention"], np.abs(sums))
            for name, sums in words.items()
            if name != "attention"
        }
    return rankings, agreement


def rank(values: Float[np.ndarray, "u"], generator: np.random.Generator) -> Int[np.ndarray, "u"]:
    """From the highest to the lowest, ties in random order."""
    return np.lexsort((generator.random(len(values)), -values))


def _mean(sums: Float[np.ndarray, "r 2"]) -> Float[np.ndarray, "r"]:
    return ratio(sums[:, 0], sums[:, 1])
