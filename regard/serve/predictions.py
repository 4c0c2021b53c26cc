"""Predictions in the shapes of Hugging Face's pipelines.

https://huggingface.co/docs/transformers/main_classes/pipelines
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from regard.data.tags import marks_spans, spans
from regard.serve.batching import Failure
from regard.serve.limits import Limits
from regard.serve.problems import Problem
from regard.serve.schemas import (
    Schema,
    array,
    either,
    integer,
    nullable,
    number,
    record,
    text,
)
from regard.tasks.task import Prediction

Item = dict[str, Any]
Shape = Callable[[str, Prediction, dict[str, Any]], list[Item]]

ERROR = record({"error": text()})
CUT = {"truncated": {"type": "boolean", "description": "only a part of the text was read"}}


@dataclass(frozen=True)
class Pipeline:
    """How a task is asked and how it answers."""

    item: Schema
    parameters: Callable[[Limits], dict[str, Schema]]
    shape: Shape
    flat: bool = True
    """Whether several texts give one list of items rather than a list for each."""
    names: tuple[tuple[str, str], ...] = ()
    """Our names of parameters that are called otherwise in a request."""


def _translated(text: str, found: Prediction, given: dict[str, Any]) -> list[Item]:
    return [{"translation_text": found.output}]


def _labelled(text: str, found: Prediction, given: dict[str, Any]) -> list[Item]:
    chances = found.details.get("probabilities", {})
    if not chances:
        return [{"error": "an empty text has no label"}]
    best = sorted(chances.items(), key=lambda item: -item[1])[: given.get("top_k", 1)]
    return [{"label": label, "score": score} for label, score in best]


def _entities(text: str, found: Prediction, given: dict[str, Any]) -> list[Item]:
    """Spans of words; a span is as sure as the least sure of its tags."""
    words, tags = found.details.get("words", []), found.details.get("tags", [])
    chances = found.details.get("probabilities", [])
    places, end = [], 0
    for word in words:
        start = text.index(word, end)
        end = start + len(word)
        places.append((start, end))
    groups = [(kind, first, last) for kind, first, last in spans(tags)] if _marks(tags) else []
    if not groups:
        groups = [(tag, i, i + 1) for i, tag in enumerate(tags) if tag != "O"]
    return [
        {
            "entity_group": kind,
            "score": min(chances[first:last]),
            "word": text[places[first][0] : places[last - 1][1]],
            "start": places[first][0],
            "end": places[last - 1][1],
        }
        for kind, first, last in groups
    ]


def _marks(tags: Sequence[str]) -> bool:
    return all(tag == "O" or marks_spans(tag) for tag in tags)


def _written(text: str, found: Prediction, given: dict[str, Any]) -> list[Item]:
    return [{"generated_text": found.output}]


WRITTEN = record({"generated_text": text()}, CUT)
PIPELINES: dict[str, Pipeline] = {
    "translation": Pipeline(
        record({"translation_text": text()}, CUT),
        lambda limits: {"beam": integer(1, limits.beam)},
        _translated,
    ),
    "classify": Pipeline(
        record({"label": text(), "score": number(0, 1)}, CUT),
        lambda limits: {"top_k": integer(1, 1000)},
        _labelled,
    ),
    "tag": Pipeline(
        record(
            {
                "entity_group": text(),
                "score": number(0, 1),
                "word": text(),
                "start": {"type": "integer"},
                "end": {"type": "integer"},
            },
            CUT,
        ),
        lambda limits: {},
        _entities,
        flat=False,
    ),
    "language": Pipeline(
        WRITTEN,
        lambda limits: {
            "max_new_tokens": integer(1, limits.written),
            "temperature": number(0, 10),
            "top_k": nullable(integer(1, 1_000_000)),
            "top_p": number(0.01, 1),
            "repetition_penalty": number(0.1, 10),
            "seed": integer(0, 2**31 - 1),
        },
        _written,
        flat=False,
        names=(("max_new_tokens", "limit"),),
    ),
}
OTHER = Pipeline(WRITTEN, lambda limits: {}, _written)


def pipeline(task: str) -> Pipeline:
    """The shapes of a task."""
    return PIPELINES.get(task, OTHER)


def request_schema(task: str, limits: Limits) -> Schema:
    """What a request for predictions looks like."""
    one = text(limits.text)
    parameters = record({}, pipeline(task).parameters(limits))
    return record(
        {"inputs": either(one, array(one, most=limits.batch))}, {"parameters": parameters}
    )


def answer_schema(task: str) -> Schema:
    """What its answer looks like: items, or a list of items for each text."""
    shape = pipeline(task)
    item = either(shape.item, ERROR)
    nested = array(array(item))
    return either(array(item), nested) if not shape.flat or task == "classify" else array(item)


def options(task: str, given: dict[str, Any]) -> dict[str, Any]:
    """Options of a run from the parameters of a request."""
    shape = pipeline(task)
    names = dict(shape.names)
    own = {} if task == "classify" else given
    return {names.get(name, name): as_number(name, value) for name, value in own.items()}


def as_number(name: str, value: Any) -> Any:
    """A number of the kind that an option has: JSON knows one kind only."""
    if name in ("beam", "nbest", "max_new_tokens", "tokens", "top_k", "seed"):
        return None if value is None else int(value)
    return float(value) if name in ("temperature", "top_p", "repetition_penalty") else value


def answer(
    task: str,
    inputs: str | list[str],
    found: Sequence[Prediction | Failure],
    given: dict[str, Any],
) -> list[Any]:
    """Items for each text, in order, where one that failed has its error."""
    shape = pipeline(task)
    if "top_k" in given and task == "classify":
        given = given | {"top_k": int(given["top_k"])}
    if isinstance(inputs, str):
        if isinstance(found[0], Failure):
            raise Problem(422, found[0].reason)
        return _items(shape, inputs, found[0], given)
    lists = [_items(shape, one, got, given) for one, got in zip(inputs, found, strict=True)]
    if shape.flat and not (task == "classify" and "top_k" in given):
        return [item for items in lists for item in items]
    return lists


def _items(
    shape: Pipeline, text: str, found: Prediction | Failure, given: dict[str, Any]
) -> list[Item]:
    if isinstance(found, Failure):
        return [{"error": found.reason}]
    items = shape.shape(text, found, given)
    return [item | {"truncated": True} for item in items] if found.cut else items
