"""Metrics over a corpus, by length, with intervals.

A metric is a function that counts, for each sentence, what its value depends on, and returns a
`Tally`; `metric_value`, `measure` (with an interval), `by_length` and `compare` work on any tally.
`METRICS` is the table of metrics by name, and is open to other packages.

>>> print(measure(accuracy(["yes", "no", "no", "no"], ["yes", "no", "no", "yes"])))
accuracy 75.0 % [19.4, 99.4] (n = 4)
"""

from regard.metrics.accuracy import accuracy, exact_match, symbol_accuracy, token_accuracy
from regard.metrics.alignment import (
    GoldLinks,
    Link,
    alignment_error_rate,
    alignment_metrics,
    parse_pharaoh,
)
from regard.metrics.bleu import bleu, chrf
from regard.metrics.bootstrap import Comparison, compare
from regard.metrics.buckets import Bucket, by_length, even_edges
from regard.metrics.class_report import (
    ClassMetrics,
    ClassReport,
    Confusion,
    entity_report,
    label_report,
    label_set_report,
    tag_report,
)
from regard.metrics.entities import Entity, entities, entity_f1, entity_metrics, entity_types
from regard.metrics.f1 import macro_f1, multilabel_macro_f1, multilabel_micro_f1
from regard.metrics.intervals import Interval, exact_binomial, interval
from regard.metrics.measurement import Measurement, measure
from regard.metrics.metric_table import METRICS, Metric, metric_by_name, metric_names
from regard.metrics.perplexity import perplexity
from regard.metrics.tally import Tally, join_tallies, metric_value

__all__ = [
    "METRICS",
    "Bucket",
    "ClassMetrics",
    "ClassReport",
    "Comparison",
    "Confusion",
    "Entity",
    "GoldLinks",
    "Interval",
    "Link",
    "Measurement",
    "Metric",
    "Tally",
    "accuracy",
    "alignment_error_rate",
    "alignment_metrics",
    "bleu",
    "by_length",
    "chrf",
    "compare",
    "entities",
    "entity_f1",
    "entity_metrics",
    "entity_report",
    "entity_types",
    "even_edges",
    "exact_binomial",
    "exact_match",
    "interval",
    "join_tallies",
    "label_report",
    "label_set_report",
    "macro_f1",
    "measure",
    "metric_by_name",
    "metric_names",
    "metric_value",
    "multilabel_macro_f1",
    "multilabel_micro_f1",
    "parse_pharaoh",
    "perplexity",
    "symbol_accuracy",
    "tag_report",
    "token_accuracy",
]
