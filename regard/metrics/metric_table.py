"""Metrics by name, and what each of them compares.

A task knows what its predictions are: texts, labels, label sets, tag sequences, symbol sequences or
word alignments. `METRICS` has one row per name, a `Metric`, which has a function
``(predicted, gold) -> Tally`` for each kind of thing that it compares. Another package adds rows
with entry points in the group "regard.metrics"::

    # my_package/metrics.py
    def same_length(predicted: list[str], gold: list[str]) -> Tally:
        equal = [len(ours) == len(theirs) for ours, theirs in zip(predicted, gold, strict=True)]
        columns = rows([equal, np.ones(len(equal))])
        return Tally("same length", columns, lambda sums: sums[:, 0] / sums[:, 1])

    SAME_LENGTH = Metric({"texts": same_length})

    # pyproject.toml
    [project.entry-points."regard.metrics"]
    same_length = "my_package.metrics:SAME_LENGTH"
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from regard.errors import RegardError
from regard.metrics.accuracy import accuracy, exact_match, symbol_accuracy, token_accuracy
from regard.metrics.alignment import alignment_metrics
from regard.metrics.bleu import bleu, chrf
from regard.metrics.entities import entity_metrics
from regard.metrics.f1 import macro_f1, multilabel_macro_f1, multilabel_micro_f1
from regard.metrics.tally import Tally
from regard.plugins import Table, import_reference, is_reference

Count = Callable[..., Tally]


@dataclass(frozen=True)
class Metric:
    """One metric: how it counts each kind of thing that it compares.

    >>> METRICS["macro_f1"].compares
    ('labels', 'label sets')
    >>> METRICS["bleu"].options("texts")
    ('lowercase', 'tokenize')
    """

    counts: Mapping[str, Count]
    """By what is compared ("texts", "labels", …) the function ``(predicted, gold) -> Tally``. Its
    keyword-only parameters are options of the metric."""
    lower_is_better: bool = False
    """Whether a smaller value is the better one, as with error rates."""

    @property
    def compares(self) -> tuple[str, ...]:
        """The kinds of things that it can compare."""
        return tuple(self.counts)

    def options(self, kind: str) -> tuple[str, ...]:
        """Names of the options that it takes where it compares such things."""
        parameters = inspect.signature(self.counts[kind]).parameters.values()
        return tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)

    def tally(
        self, kind: str, predicted: Sequence[Any], gold: Sequence[Any], **options: Any
    ) -> Tally:
        """Count what the metric needs of each pair of a prediction and its gold answer."""
        if kind not in self.counts:
            raise ValueError(f"this metric compares {' or '.join(self.compares)}, not {kind}")
        tally = self.counts[kind](predicted, gold, **options)
        if not isinstance(tally, Tally) or len(tally) != len(gold):
            got = f"{len(tally)} rows" if isinstance(tally, Tally) else type(tally).__name__
            raise ValueError(f"a metric must return a Tally of {len(gold)} rows here; got {got}")
        return tally


def _one_of(metrics: Callable[..., dict[str, Tally]], name: str) -> Count:
    def count(predicted: Sequence[Any], gold: Sequence[Any]) -> Tally:
        return metrics(predicted, gold)[name]

    return count


def _set_accuracy(predicted: Sequence[Any], gold: Sequence[Any]) -> Tally:
    return accuracy([frozenset(labels) for labels in predicted], [frozenset(g) for g in gold])


METRICS: Table[Metric] = Table(
    "metric",
    "regard.metrics",
    {
        "bleu": Metric({"texts": bleu}),
        "chrf": Metric({"texts": chrf}),
        "exact_match": Metric({"texts": exact_match, "symbol sequences": exact_match}),
        "accuracy": Metric(
            {"labels": accuracy, "label sets": _set_accuracy, "tag sequences": token_accuracy}
        ),
        "symbol_accuracy": Metric({"symbol sequences": symbol_accuracy}),
        "micro_f1": Metric({"label sets": multilabel_micro_f1}),
        "macro_f1": Metric({"labels": macro_f1, "label sets": multilabel_macro_f1}),
        "f1": Metric({"tag sequences": _one_of(entity_metrics, "f1")}),
        "precision": Metric(
            {
                "tag sequences": _one_of(entity_metrics, "precision"),
                "word alignments": _one_of(alignment_metrics, "precision"),
            }
        ),
        "recall": Metric(
            {
                "tag sequences": _one_of(entity_metrics, "recall"),
                "word alignments": _one_of(alignment_metrics, "recall"),
            }
        ),
        "aer": Metric({"word alignments": _one_of(alignment_metrics, "aer")}, lower_is_better=True),
    },
)
"""Metrics by name; other packages add rows in the group `regard.metrics`."""


def metric_names(kind: str) -> list[str]:
    """Names of the metrics that compare such things, those of plug-ins included.

    >>> metric_names("label sets")
    ['accuracy', 'micro_f1', 'macro_f1']
    """
    names = []
    for name in METRICS:
        row = METRICS.get(name)  # None where its plug-in is broken, after a warning
        if isinstance(row, Metric) and kind in row.counts:
            names.append(name)
    return names


def metric_by_name(name: str, kind: str) -> Metric:
    """The metric of a name or reference "package.module:METRIC", after a check of its kind."""
    metric = import_reference(name) if is_reference(name) else METRICS.row(name)
    if not isinstance(metric, Metric):
        raise RegardError(f"metric {name!r}: expected a regard.metrics.Metric, got {metric!r}")
    if kind not in metric.counts:
        raise RegardError(
            f"metric {name!r} compares {' or '.join(metric.compares)}, not {kind}: choose from "
            + ", ".join(metric_names(kind))
        )
    return metric
