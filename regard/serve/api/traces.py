"""Traces over HTTP: the prediction of one text and its attention maps."""

from typing import Any

from regard.errors import RegardError
from regard.inference.explain.explanations import explain
from regard.serve.http.problems import Problem
from regard.serve.limits import Limits
from regard.serve.served_models import ServedModel
from regard.tasks.registry import TaskSpec
from regard.tasks.shared.json_schema import Schema, array, either, record, text
from regard.trace import SCHEMA

MAX_ATTRIBUTED_CHARACTERS = 1_000
"""Maximum length of a text to attribute: leave-one-out predicts it once per token."""

TRACE: Schema = {
    "type": "object",
    "properties": {
        "schema": text(enum=[SCHEMA]),
        "version": text(),
        "task": text(),
        "sides": {"type": "object"},
        "looks": array({"type": "object"}),
        "output": text(),
        "prediction": {"type": "object"},
        "alternatives": array(array({"type": "object"})),
        "attributions": array({"type": "object"}),
        "alignment": {"type": ["array", "null"]},
        "card": {"type": "object"},
    },
    "required": ["schema", "version", "task", "sides", "looks", "output"],
}


def request_schema(spec: TaskSpec, limits: Limits) -> Schema:
    """A request for a trace; attributions are of the model's own output."""
    checkpoint = {"checkpoint": text(100, description="use the weights of this checkpoint")}
    attributions: Schema = {"type": "boolean", "description": "add attributions by every method"}
    plain = record(
        {"text": text(limits.traced_characters, title="text")},
        spec.http.trace_parameters(limits) | checkpoint,
    )
    explained = record(
        {"text": text(MAX_ATTRIBUTED_CHARACTERS, title="text"), "attributions": attributions},
        checkpoint,
    )
    return either(plain, explained)


def trace(model: ServedModel, body: dict[str, Any]) -> bytes:
    """The trace as JSON; to be called in the model's own thread."""
    run = model.load_run(body.get("checkpoint"))
    parameters = {
        name: value
        for name, value in body.items()
        if name not in ("text", "checkpoint", "attributions")
    }
    try:
        if body.get("attributions") and body["text"].strip():
            result = explain(run, body["text"])
        else:
            result = run.trace(body["text"], **model.spec.http.trace_options(parameters))
    except (ValueError, IndexError, RegardError) as error:
        raise Problem(422, f"this text cannot be explained: {error}") from error
    return result.to_json().encode("utf-8", "replace")
