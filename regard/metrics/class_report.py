"""Precision, recall and F1 of each class, and which classes are taken for which.

Labels are counted as scikit-learn's `classification_report` and `confusion_matrix` count them,
entities as seqeval does: an entity counts when its type and both its ends are right.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.metrics.entities import entities
from regard.metrics.f1 import f1, precision, recall
from regard.metrics.tally import same_count, same_lengths


@dataclass(frozen=True)
class ClassMetrics:
    """How well one class is found."""

    name: str
    precision: float
    recall: float
    f1: float
    support: int
    """Number of gold examples of the class."""


@dataclass(frozen=True)
class Confusion:
    """How often each gold class was predicted as each class."""

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    """Rows are gold classes, columns predicted ones."""
    unit: str
    """What is counted: texts or words."""


@dataclass(frozen=True)
class ClassReport:
    """The metrics of each class, and the confusion matrix where each example has one class."""

    kind: str
    """What the classes are: label or entity type."""
    classes: tuple[ClassMetrics, ...]
    confusion: Confusion | None = None

    def record(self) -> dict[str, Any]:
        """In plain values, for JSON."""
        confusion = self.confusion
        return {
            "kind": self.kind,
            "classes": {
                one.name: {
                    "precision": one.precision,
                    "recall": one.recall,
                    "f1": one.f1,
                    "support": one.support,
                }
                for one in self.classes
            },
            "confusion": None
            if confusion is None
            else {
                "labels": list(confusion.labels),
                "counts": [list(row) for row in confusion.counts],
                "unit": confusion.unit,
            },
        }


def label_report(predicted: Sequence[str], gold: Sequence[str]) -> ClassReport:
    """Each label of texts that have one label each.

    >>> report = label_report(["a", "a", "b"], ["a", "b", "b"])
    >>> [(one.name, one.precision, one.recall, one.support) for one in report.classes]
    [('a', 0.5, 1.0, 1), ('b', 1.0, 0.5, 2)]
    >>> report.confusion.counts
    ((1, 0), (1, 1))
    """
    classes = _by_class([{one} for one in predicted], [{one} for one in gold])
    return ClassReport("label", classes, _confusion(predicted, gold, "texts"))


def label_set_report(
    predicted: Sequence[Collection[str]], gold: Sequence[Collection[str]]
) -> ClassReport:
    """Each label of texts that have any number of labels; these have no confusion matrix."""
    return ClassReport("label", _by_class(predicted, gold))


def tag_report(predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> ClassReport:
    """Each tag, word by word."""
    same_lengths(predicted, gold)
    words = _flat(predicted), _flat(gold)
    classes = _by_class([{one} for one in words[0]], [{one} for one in words[1]])
    return ClassReport("label", classes, _confusion(*words, "words"))


def entity_report(predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> ClassReport:
    """Each type of entity, by whole entities; the confusion matrix is of words, by their type.

    >>> report = entity_report([["B-PER", "O"]], [["B-PER", "B-LOC"]])
    >>> [(one.name, one.f1, one.support) for one in report.classes]
    [('LOC', 0.0, 1), ('PER', 1.0, 1)]
    >>> report.confusion.labels, report.confusion.counts
    (('LOC', 'O', 'PER'), ((0, 1, 0), (0, 0, 0), (0, 0, 1)))
    """
    same_lengths(predicted, gold)
    spans = [[entities(tags) for tags in sequences] for sequences in (predicted, gold)]
    classes = _by_class(spans[0], spans[1], lambda entity: entity.type)
    words = [[tag.partition("-")[2] or tag for tag in _flat(side)] for side in (predicted, gold)]
    return ClassReport("entity type", classes, _confusion(words[0], words[1], "words"))


def _by_class(
    predicted: Sequence[Collection[Any]],
    gold: Sequence[Collection[Any]],
    class_of: Callable[[Any], str] = str,
) -> tuple[ClassMetrics, ...]:
    """The metrics of each class of the things in each sentence, in alphabetical order."""
    same_count(predicted=predicted, gold=gold)
    pairs = [(set(ours), set(theirs)) for ours, theirs in zip(predicted, gold, strict=True)]
    correct = Counter(class_of(one) for ours, theirs in pairs for one in ours & theirs)
    guesses = Counter(class_of(one) for ours, _ in pairs for one in ours)
    examples = Counter(class_of(one) for _, theirs in pairs for one in theirs)
    names = sorted({*guesses, *examples})
    sums = np.array([(correct[n], guesses[n], examples[n]) for n in names], dtype=np.float64)
    sums = sums.reshape(len(names), 3)
    columns = zip(precision(sums).tolist(), recall(sums).tolist(), f1(sums).tolist(), strict=True)
    return tuple(
        ClassMetrics(name, found, complete, harmonic, examples[name])
        for name, (found, complete, harmonic) in zip(names, columns, strict=True)
    )


def _confusion(predicted: Sequence[str], gold: Sequence[str], unit: str) -> Confusion:
    same_count(predicted=predicted, gold=gold)
    labels = sorted({*predicted, *gold})
    number = {label: i for i, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)), dtype=np.int64)
    for ours, theirs in zip(predicted, gold, strict=True):
        counts[number[theirs], number[ours]] += 1
    return Confusion(tuple(labels), tuple(map(tuple, counts.tolist())), unit)


def _flat(sequences: Iterable[Sequence[str]]) -> list[str]:
    return [one for sequence in sequences for one in sequence]
