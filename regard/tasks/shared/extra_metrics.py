"""Metrics of an evaluation that are asked for by name, beside those of the task."""

from collections.abc import Sequence
from typing import Any

from regard.metrics import Tally, metric_by_name


def extra_metrics(
    kind: str, names: Sequence[str], predicted: Sequence[Any], gold: Sequence[Any]
) -> dict[str, Tally]:
    """The tallies of metrics that compare this kind of prediction, by name."""
    return {name: metric_by_name(name, kind).tally(kind, predicted, gold) for name in names}
