"""Faithfulness: does attention name the words that the output depends on?

Three questions over many texts. Does erasing the words with the most attention change the output
more than erasing random ones, or those that gradients name? (DeYoung et al., 2020,
https://arxiv.org/abs/1911.03429) Do attention and the other methods rank words alike? And does the
output change when the weights are shuffled? (Jain and Wallace, 2019,
https://arxiv.org/abs/1902.10186)
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int

from regard.data import Example, Pair, Summary, Tagged, resolve
from regard.errors import RegardError
from regard.inference.attributions import (
    attention,
    gradient_norm,
    gradient_times_input,
    integrated_gradients,
    leave_one_out,
)
from regard.inference.perturbation import erase_by, narrowed, shake, unit_scores
from regard.inference.questions import Question, ask
from regard.inference.runs import Run
from regard.metrics import Compared, Measured, Tally, compare, measure
from regard.metrics.tally import ratio
from regard.tasks.kinds import KINDS

SHARES = (0.05, 0.1, 0.2, 0.5)
GRADIENTS = ("gradient", "gradient × input", "integrated gradients")
METHODS = ("attention", "attention rollout", *GRADIENTS, "leave-one-out")
FEW = 10
"""With fewer texts than these no interval means much."""
RANDOM = 5
"""Random rankings of the words of a text."""


@dataclass(frozen=True)
class Faithfulness:
    """How faithful attention is to what a model does, over many texts."""

    task: str
    texts: int
    outputs: int
    erase: str
    shares: tuple[float, ...]
    comprehensiveness: dict[str, Measured]
    """By method; more is better."""
    sufficiency: dict[str, Measured]
    """By method; less is better."""
    agreement: dict[str, Measured]
    """Kendall's τ between attention and each method's magnitudes, over words."""
    flips: dict[str, Measured]
    """The share of outputs that change under shuffled and under uniform attention."""
    distance: dict[str, Measured]
    """How far the distribution moves then, in total variation."""
    against: dict[str, Compared]
    """Comprehensiveness of attention less that of each method, on the same texts."""
    verdict: str
    """The same in one sentence."""


@dataclass
class _Sums:
    """Sums over the outputs of each text, and their number."""

    found: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def add(self, name: str, values: Sequence[float]) -> None:
        known = [value for value in values if not np.isnan(value)]
        self.found.setdefault(name, []).append((sum(known), len(known)))

    def tallies(self, name: str) -> dict[str, Tally]:
        """A mean each, under one name, so that they can be compared."""
        return {
            key: Tally(name, np.array(pairs, dtype=np.float64), _mean)
            for key, pairs in self.found.items()
        }

    def measured(self, name: str, seed: int) -> dict[str, Measured]:
        return {key: measure(one, seed=seed) for key, one in self.tallies(name).items()}


def faithfulness(
    run: Run,
    texts: Sequence[str],
    *,
    shares: Sequence[float] = SHARES,
    erase: str | None = None,
    places: int = 4,
    shuffles: int = 10,
    seed: int = 0,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> Faithfulness:
    """Measure how faithful the attention of a run is on some texts.

    Args:
        run: a trained run.
        texts: what to try it on; those of fewer than two words are passed over.
        shares: of the words, which are erased or kept, one word at least.
        erase: how words are erased: delete or unknown; deleting unless said, but in taggers.
        places: outputs of each text that are looked at, drawn at random: words of a translation,
            tags, next words.
        shuffles: how often the weights are shuffled for each.
        seed: of all draws.
        report: called with how many texts are done, and of how many.
    """
    if not all(0 < share < 1 for share in shares) or not shares:
        raise ValueError(f"shares of the words lie between 0 and 1; got {list(shares)}")
    generator = np.random.default_rng(seed)
    comprehensive, sufficient, agreement, flips, distance = (_Sums() for _ in range(5))
    texts_read, outputs, way = 0, 0, erase
    for number, text in enumerate(texts):
        report(number, len(texts))
        question = _drawn(ask(run, text, erase=erase, every=True), places, generator)
        if question is None:
            continue
        texts_read, outputs, way = texts_read + 1, outputs + len(question.places), question.erase
        tried = [
            _try(question, i, values, shares, generator)
            for i, values in enumerate(_methods(question))
        ]
        for method in tried[0][0]:
            comprehensive.add(method, [one[0][method].comprehensiveness for one in tried])
            sufficient.add(method, [one[0][method].sufficiency for one in tried])
        for method in tried[0][1]:
            agreement.add(method, [one[1][method] for one in tried])
        noise = torch.Generator().manual_seed(int(generator.integers(2**62)))
        for name, shaken in shake(question, shuffles, noise).items():
            flips.add(name, [shaken.flips])
            distance.add(name, [shaken.distance])
    report(len(texts), len(texts))
    if not texts_read:
        raise RegardError("no text of two words or more: there is nothing to erase")
    tallies = comprehensive.tallies("comprehensiveness")
    against = (
        {
            method: compare(tallies["attention"], other, seed=seed)
            for method, other in tallies.items()
            if method != "attention"
        }
        if "attention" in tallies
        else {}
    )
    measured = comprehensive.measured("comprehensiveness", seed)
    agreed, flipped = agreement.measured("kendall tau", seed), flips.measured("flips", seed)
    return Faithfulness(
        run.name,
        texts_read,
        outputs,
        str(way),
        tuple(shares),
        measured,
        sufficient.measured("sufficiency", seed),
        agreed,
        flipped,
        distance.measured("total variation", seed),
        against,
        verdict(measured, against, flipped, alike=all(np.isnan(m.value) for m in agreed.values()))
        if texts_read >= FEW
        else f"{texts_read} text{'s' * (texts_read > 1)} cannot tell: {FEW} or more are needed.",
    )


def read_texts(run: Run, data: Any) -> tuple[list[str], str]:
    """The texts of some files, read as those of training were, and what was read, in words."""
    summary = Summary()
    examples = list(KINDS[run.name].read(run.data, resolve(data), summary))
    summary.require(1, "to erase words of")
    return [_text(example) for example in examples], str(summary)


def _text(example: Example) -> str:
    if isinstance(example, Pair):
        return example.source
    text = example.words if isinstance(example, Tagged) else example.text
    if isinstance(text, np.ndarray):
        raise RegardError(f"{example.where}: vectors instead of words are not explained")
    return text if isinstance(text, str) else " ".join(text)


def kendall_tau(first: Float[np.ndarray, "n"], second: Float[np.ndarray, "n"]) -> float:
    """τ_b: pairs in the same order less pairs in the other, over those that are not tied.

    NaN where all of a side are equal. Kendall, 1945, https://doi.org/10.1093/biomet/33.3.239
    """
    above = np.triu_indices(len(first), 1)
    left, right = (np.sign(side[:, None] - side)[above] for side in (first, second))
    untied = np.sqrt(np.count_nonzero(left) * np.count_nonzero(right))
    return float((left * right).sum() / untied) if untied else float("nan")


def verdict(
    measured: Mapping[str, Measured],
    against: Mapping[str, Compared],
    flips: Mapping[str, Measured],
    *,
    alike: bool = False,
) -> str:
    """What the intervals allow to be said, in one sentence.

    Something is more or less only where the interval of the difference leaves out zero.
    """
    best = max(GRADIENTS, key=lambda method: measured[method].value)
    random, gradient = measured["random"].value, f"{_figure(measured[best].value)}, by {best}"
    if "attention" not in measured:
        if measured[best].low > measured["random"].high:
            return (
                "There is no attention over the input; gradients name words that matter "
                f"({gradient}, against {_figure(random)} of random ones)."
            )
        return (
            "There is no attention over the input, and no gradient names words that matter "
            f"measurably more than random ones ({gradient}, against {_figure(random)})."
        )
    if alike:
        return "Attention is the same for all words and names none; see what gradients name."
    value = measured["attention"].value
    figures = f"({_figure(value)} against {_figure(random)})"
    side = _side(against["random"])
    if side == 0:
        return (
            "Attention cannot be trusted to name words that matter: erasing them does not change "
            f"the output measurably more than erasing random ones {figures}{_how(flips)}."
        )
    if side < 0:
        return (
            "Attention names words that matter less than others: erasing them changes the output "
            f"less than erasing random ones {figures}{_how(flips)}."
        )
    beside = {
        -1: f"but less than those that gradients name ({gradient})",
        0: f"and about as much as those that gradients name ({gradient})",
        1: f"and more than those that gradients name ({gradient})",
    }
    return (
        "Attention names words that matter: erasing them changes the output more than erasing "
        f"random ones {figures}, {beside[_side(against[best])]}{_how(flips)}."
    )


def _figure(value: float) -> str:
    return f"{value:.2f}" if abs(value) >= 0.1 else f"{round(value, 3) + 0.0:.3f}"


def _how(flips: Mapping[str, Measured]) -> str:
    if "shuffled" not in flips:
        return ""
    return f"; shuffled, its weights change {100 * flips['shuffled'].value:.0f} % of outputs"


def _side(compared: Compared) -> int:
    return int(compared.low > 0) - int(compared.high < 0)


def _drawn(
    question: Question | None, places: int, generator: np.random.Generator
) -> Question | None:
    """Some of the outputs of a question, of those that depend on two words at least."""
    if question is None:
        return None
    fit = [i for i, seen in enumerate(question.visible) if len(set(question.units[seen])) > 1]
    if not fit:
        return None
    drawn = generator.choice(fit, size=min(places, len(fit)), replace=False)
    return narrowed(question, sorted(drawn.tolist()))


def _methods(question: Question) -> list[dict[str, Float[np.ndarray, "t"]]]:
    """For each output, the values of its tokens by method."""
    looked, rolled = attention(question)
    found: dict[str, Any] = {
        "attention": looked,
        "attention rollout": rolled,
        "gradient": gradient_norm(question),
        "gradient × input": gradient_times_input(question),
        "integrated gradients": integrated_gradients(question, tolerance=0.05).values,
        "leave-one-out": leave_one_out(question),
    }
    there = {name: np.asarray(v, dtype=np.float64) for name, v in found.items() if v is not None}
    return [
        {name: values[i] for name, values in there.items()} for i in range(len(question.places))
    ]


def _try(
    question: Question,
    output: int,
    values: Mapping[str, Float[np.ndarray, "t"]],
    shares: Sequence[float],
    generator: np.random.Generator,
) -> tuple[dict[str, Any], dict[str, float]]:
    """Erasure by every method and at random, and how well each agrees with attention."""
    units = {name: unit_scores(question, output, row) for name, row in values.items()}
    count = len(next(iter(units.values())))
    rankings = {name: [ranked(scores, generator)] for name, scores in units.items()}
    rankings["random"] = [generator.permutation(count) for _ in range(RANDOM)]
    agreement = {}
    if "attention" in units:
        agreement = {
            name: kendall_tau(units["attention"], np.abs(scores))
            for name, scores in units.items()
            if name != "attention"
        }
    return erase_by(question, output, rankings, shares), agreement


def ranked(scores: Float[np.ndarray, "u"], generator: np.random.Generator) -> Int[np.ndarray, "u"]:
    """From the highest to the lowest, ties at random."""
    return np.lexsort((generator.random(len(scores)), -scores))


def _mean(sums: Float[np.ndarray, "r 2"]) -> Float[np.ndarray, "r"]:
    return ratio(sums[:, 0], sums[:, 1])
