"""Traces over HTTP: what a model makes of one text, and where it looked."""

from typing import Any

from regard.errors import RegardError
from regard.inference.explanations import explain
from regard.serve.limits import Limits
from regard.serve.predictions import as_number
from regard.serve.problems import Problem
from regard.serve.schemas import Schema, array, either, integer, number, record, text
from regard.serve.shelf import Served
from regard.trace import SCHEMA

ATTRIBUTED = 1_000
"""Characters of a text whose every token is left out in turn."""

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


def request_schema(task: str, limits: Limits) -> Schema:
    """A request for a trace; attributions are of what the model does by itself."""
    one = text(limits.explained)
    always = {"checkpoint": text(100, description="its weights at an earlier step")}
    attributions: Schema = {"type": "boolean", "description": "what mattered, by every method"}
    own: dict[str, Schema] = {}
    if task == "translation":
        own = {
            "target": text(limits.explained, description="the translation that it is to write"),
            "pins": {
                "type": "object",
                "description": "tokens of the source that a position of the target may look at",
                "propertyNames": text(pattern="^[0-9]{1,3}$"),
                "additionalProperties": array(integer(0, 9999), least=1, most=200),
                "maxProperties": 400,
            },
            "beam": integer(1, limits.beam),
            "nbest": integer(1, 8, description="at most as many as the beam is wide"),
        }
    if task == "language":
        own = {
            "tokens": integer(0, 200, description="tokens that it writes on"),
            "temperature": number(0, 10),
            "seed": integer(0, 2**31 - 1),
        }
    short = record({"text": text(ATTRIBUTED), "attributions": attributions}, always)
    return either(record({"text": one}, own | always), short)


def trace(served: Served, body: dict[str, Any]) -> bytes:
    """The trace as JSON; for the model's own thread."""
    run = served.model(body.get("checkpoint"))
    options = {
        name: as_number(name, value)
        for name, value in body.items()
        if name not in ("text", "checkpoint", "attributions", "pins")
    }
    if "pins" in body:
        pins = body["pins"].items()
        options["pins"] = {int(place): [int(k) for k in keys] for place, keys in pins}
    if served.task == "language" and not options.get("tokens"):
        options = {}  # nothing is drawn
    try:
        if body.get("attributions") and body["text"].strip():
            found = explain(run, body["text"])
        else:
            found = run.trace(body["text"], **options)
    except (ValueError, IndexError, RegardError) as error:
        raise Problem(422, f"this text cannot be explained so: {error}") from error
    return found.to_json().encode("utf-8", "replace")
