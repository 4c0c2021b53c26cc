"""The HTTP requests and responses of a task.

Predictions have the shapes of Hugging Face's pipelines,
https://huggingface.co/docs/transformers/main_classes/pipelines
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from regard.tasks.prediction import Prediction
from regard.tasks.shared.json_schema import Schema, record, text

Item = dict[str, Any]
TRUNCATED = {"truncated": {"type": "boolean", "description": "only a part of the text was read"}}
GENERATED = record({"generated_text": text()}, TRUNCATED)


@runtime_checkable
class RequestLimits(Protocol):
    """Limits of the server that the parameters of a request depend on."""

    @property
    def traced_characters(self) -> int:
        """Maximum number of characters of a text whose attention is returned."""
        ...

    @property
    def beam(self) -> int:
        """Maximum beam width."""
        ...

    @property
    def generated_tokens(self) -> int:
        """Maximum number of generated tokens."""
        ...


def generated_item(text: str, prediction: Prediction, parameters: dict[str, Any]) -> list[Item]:
    """The output as generated text."""
    return [{"generated_text": prediction.output}]


def _no_parameters(limits: RequestLimits) -> dict[str, Schema]:
    return {}


def _same(options: dict[str, Any]) -> dict[str, Any]:
    return options


@dataclass(frozen=True)
class HttpShapes:
    """The requests that a task accepts over HTTP, and its responses."""

    item: Schema = field(default_factory=lambda: GENERATED)
    """The schema of one item of a response."""
    items: Callable[[str, Prediction, dict[str, Any]], list[Item]] = generated_item
    """(text, prediction, parameters of the request): the items of one text."""
    flat: bool = True
    """Whether several texts give one list of items rather than one list per text."""
    nested_by: str | None = None
    """A parameter whose presence makes a flat response one list per text."""
    parameters: Callable[[RequestLimits], dict[str, Schema]] = _no_parameters
    """The schema of each parameter of a prediction."""
    predict_options: Callable[[dict[str, Any]], dict[str, Any]] = _same
    """From the parameters of a request to options of `Run.predict`."""
    trace_parameters: Callable[[RequestLimits], dict[str, Schema]] = _no_parameters
    """The schema of each further member of a request for a trace."""
    trace_options: Callable[[dict[str, Any]], dict[str, Any]] = _same
    """From these members to options of `Run.trace`."""


def as_integers(options: dict[str, Any], *names: str) -> dict[str, Any]:
    """The options with these names as integers: JSON has only one type of number."""
    return {
        name: int(value) if name in names and value is not None else value
        for name, value in options.items()
    }
