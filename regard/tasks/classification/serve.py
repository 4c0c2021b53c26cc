"""Requests and responses of classifiers over HTTP."""

from typing import Any

from regard.tasks.prediction import Prediction
from regard.tasks.shared.http_shapes import TRUNCATED, HttpShapes, Item
from regard.tasks.shared.json_schema import integer, number, record, text


def _labels(text: str, prediction: Prediction, parameters: dict[str, Any]) -> list[Item]:
    probabilities = prediction.details.get("probabilities", {})
    if not probabilities:
        return [{"error": "an empty text has no label"}]
    best = sorted(probabilities.items(), key=lambda item: -item[1])
    return [{"label": label, "score": p} for label, p in best[: int(parameters.get("top_k", 1))]]


SHAPES = HttpShapes(
    item=record({"label": text(), "score": number(0, 1)}, TRUNCATED),
    items=_labels,
    nested_by="top_k",
    parameters=lambda limits: {"top_k": integer(1, 1000)},
    predict_options=lambda parameters: {},
)
