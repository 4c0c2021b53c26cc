"""Requests and responses of language models over HTTP."""

from typing import Any

from regard.tasks.shared.http_shapes import HttpShapes, RequestLimits, as_integers
from regard.tasks.shared.json_schema import Schema, integer, nullable, number


def _parameters(limits: RequestLimits) -> dict[str, Schema]:
    return {
        "max_new_tokens": integer(1, limits.generated_tokens),
        "temperature": number(0, 10),
        "top_k": nullable(integer(1, 1_000_000)),
        "top_p": number(0.01, 1),
        "repetition_penalty": number(0.1, 10),
        "seed": integer(0, 2**31 - 1),
    }


def _options(parameters: dict[str, Any]) -> dict[str, Any]:
    """JSON has only one type of number: a temperature of 1 means 1.0."""
    floats = ("temperature", "top_p", "repetition_penalty")
    options = {
        name: float(value) if name in floats else value for name, value in parameters.items()
    }
    options = as_integers(options, "max_new_tokens", "tokens", "top_k", "seed")
    if "max_new_tokens" in options:
        options["tokens"] = options.pop("max_new_tokens")
    return options


def _trace_parameters(limits: RequestLimits) -> dict[str, Schema]:
    return {
        "tokens": integer(0, 200, description="number of tokens to generate"),
        "temperature": number(0, 10),
        "seed": integer(0, 2**31 - 1),
    }


def _trace_options(parameters: dict[str, Any]) -> dict[str, Any]:
    options = _options(parameters)
    return options if options.get("tokens") else {}  # nothing is sampled


SHAPES = HttpShapes(
    flat=False,
    parameters=_parameters,
    predict_options=_options,
    trace_parameters=_trace_parameters,
    trace_options=_trace_options,
)
