"""Predictions over HTTP, in the shapes that the task declares."""

from collections.abc import Sequence
from typing import Any

from regard.serve.http.problems import Problem
from regard.serve.limits import Limits
from regard.serve.worker import Failure
from regard.tasks.prediction import Prediction
from regard.tasks.registry import TaskSpec
from regard.tasks.shared.http_shapes import HttpShapes, Item
from regard.tasks.shared.json_schema import Schema, array, either, record, text

ERROR = record({"error": text()})


def request_schema(spec: TaskSpec, limits: Limits) -> Schema:
    """A request for predictions."""
    input_text = text(limits.text_characters, title="text")
    inputs = either(input_text, array(input_text, most=limits.texts_per_request))
    return record({"inputs": inputs}, {"parameters": record({}, spec.http.parameters(limits))})


def response_schema(spec: TaskSpec) -> Schema:
    """Its response: items, or one list of items per text."""
    shapes = spec.http
    items = array(either(shapes.item, ERROR))
    return either(items, array(items)) if not shapes.flat or shapes.nested_by else items


def response(
    spec: TaskSpec,
    inputs: str | list[str],
    predictions: Sequence[Prediction | Failure],
    parameters: dict[str, Any],
) -> list[Any]:
    """Items for each text, in order; a text that failed has its error."""
    shapes = spec.http
    if isinstance(inputs, str):
        if isinstance(predictions[0], Failure):
            raise Problem(422, predictions[0].reason)
        return _items(shapes, inputs, predictions[0], parameters)
    lists = [
        _items(shapes, text, prediction, parameters)
        for text, prediction in zip(inputs, predictions, strict=True)
    ]
    if shapes.flat and shapes.nested_by not in parameters:
        return [item for items in lists for item in items]
    return lists


def _items(
    shapes: HttpShapes, text: str, prediction: Prediction | Failure, parameters: dict[str, Any]
) -> list[Item]:
    if isinstance(prediction, Failure):
        return [{"error": prediction.reason}]
    items = shapes.items(text, prediction, parameters)
    return [item | {"truncated": True} for item in items] if prediction.truncated else items
