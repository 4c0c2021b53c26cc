"""Requests and responses of translators over HTTP, and what translation clients ask for."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.tasks.prediction import Prediction
from regard.tasks.registry import TranslationService
from regard.tasks.shared.http_shapes import (
    TRUNCATED,
    HttpShapes,
    Item,
    RequestLimits,
    as_integers,
)
from regard.tasks.shared.json_schema import Schema, array, integer, record, text

BUILT_IN_LANGUAGES = ("en", "fr")
"""The languages of the built-in pairs."""


def _translation(text: str, prediction: Prediction, parameters: dict[str, Any]) -> list[Item]:
    return [{"translation_text": prediction.output}]


def _trace_parameters(limits: RequestLimits) -> dict[str, Schema]:
    return {
        "target": text(
            limits.traced_characters, title="target", description="a translation to force"
        ),
        "pins": {
            "type": "object",
            "description": "source tokens that a position of the target may attend to",
            "propertyNames": text(pattern="^[0-9]{1,3}$"),
            "additionalProperties": array(integer(0, 9999), least=1, most=200),
            "maxProperties": 400,
        },
        "beam": integer(1, limits.beam),
        "nbest": integer(1, 8, description="at most the beam width"),
    }


def _trace_options(parameters: dict[str, Any]) -> dict[str, Any]:
    options = as_integers(parameters, "beam", "nbest")
    if "pins" in options:
        pins = options["pins"].items()
        options["pins"] = {int(position): [int(key) for key in keys] for position, keys in pins}
    return options


def languages(data: Mapping[str, Any]) -> tuple[str, str]:
    """The source and target language, by the names of columns or the extensions of files.

    Files whose extensions name no language are called source and target.
    """
    files = data.get("data")
    extensions = [Path(file).suffix[1:].lower() for file in files or []]
    pair = BUILT_IN_LANGUAGES if files is None else ("source", "target")
    if len(set(extensions)) == 2 and len(extensions) == 2:
        pair = (extensions[0], extensions[1])
    source, target = data.get("source"), data.get("target")
    if source == pair[1] or target == pair[0]:
        pair = pair[::-1]
    return str(source or pair[0]), str(target or pair[1])


def detection_cost(task: Any, text: str) -> int:
    """The number of source tokens of a text; unknown ones count once per character.

    A tokenizer trained on a language needs few tokens for a text in it.
    """
    from regard.data.tokenizers.tokenizer import UNK

    encoded = task.source.encode(text)
    return sum(
        max(1, end - start) if token == UNK else 1
        for token, (start, end) in zip(encoded.ids, encoded.offsets, strict=True)
    )


SHAPES = HttpShapes(
    item=record({"translation_text": text()}, TRUNCATED),
    items=_translation,
    parameters=lambda limits: {"beam": integer(1, limits.beam)},
    predict_options=lambda parameters: as_integers(parameters, "beam"),
    trace_parameters=_trace_parameters,
    trace_options=_trace_options,
)
SERVICE = TranslationService(languages, detection_cost)
