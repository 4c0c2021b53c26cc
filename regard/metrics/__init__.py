"""How well it does: metrics over a corpus, by length, with bootstrap intervals.

A metric is a function that counts, for each sentence, what its score needs, and returns a `Tally`;
`score`, `measure` (with an interval), `by_length` and `compare` work on any tally.

>>> print(measure(accuracy(["yes", "no", "no", "no"], ["yes", "no", "no", "yes"]), resamples=100))
accuracy 0.75 [0.25, 1] (n = 4)
"""

from regard.metrics.accuracy import accuracy, exact_match, token_accuracy
from regard.metrics.alignment import (
    GoldLinks,
    Link,
    alignment_error_rate,
    alignment_scores,
    parse_pharaoh,
)
from regard.metrics.bleu import bleu, chrf
from regard.metrics.bootstrap import Compared, Measured, compare, interval, measure
from regard.metrics.buckets import Bucket, by_length, even_edges
from regard.metrics.entities import Entity, entities, entity_f1, entity_scores, entity_types
from regard.metrics.f1 import macro_f1, multilabel_macro_f1, multilabel_micro_f1
from regard.metrics.perplexity import perplexity
from regard.metrics.tally import Tally, joined, score

__all__ = [
    "Bucket",
    "Compared",
    "Entity",
    "GoldLinks",
    "Link",
    "Measured",
    "Tally",
    "accuracy",
    "alignment_error_rate",
    "alignment_scores",
    "bleu",
    "by_length",
    "chrf",
    "compare",
    "entities",
    "entity_f1",
    "entity_scores",
    "entity_types",
    "even_edges",
    "exact_match",
    "interval",
    "joined",
    "macro_f1",
    "measure",
    "multilabel_macro_f1",
    "multilabel_micro_f1",
    "parse_pharaoh",
    "perplexity",
    "score",
    "token_accuracy",
]
