"""Attention step by step over HTTP: for an example sentence, and for any row of a model's looks."""

from typing import Any

from torch import Tensor

from regard.attention.worked_example import early_bird, made_up
from regard.errors import RegardError
from regard.inference.explain.attention_steps import EXAMPLES, Stages, example, run_stages
from regard.serve.api.traces import MAX_ATTRIBUTED_CHARACTERS
from regard.serve.http.problems import Problem
from regard.serve.served_models import ServedModel
from regard.tasks.shared.json_schema import Schema, array, integer, nullable, record, text

DIGITS = 6
NUMBERS = array({"type": "number"})
STEPS: Schema = record(
    {
        "score": text(),
        "query_token": text(),
        "key_tokens": array(text()),
        "row": {"type": "integer"},
        "query": NUMBERS,
        "keys": array(NUMBERS),
        "outer": nullable(NUMBERS),
        "products": nullable(NUMBERS),
        "scale": {"type": ["number", "null"]},
        "scores": NUMBERS,
        "biased": NUMBERS,
        "allowed": array({"type": "boolean"}),
        "normalize": text(),
        "weights": NUMBERS,
        "values": array(NUMBERS),
        "output": NUMBERS,
    }
)
EXAMPLE: Schema = record({"words": array(text()), "steps": array(STEPS)})


def request_schema() -> Schema:
    """A row of a look, named as in a trace; without layer or head if the look has none."""
    position = {"layer": integer(0, 9999), "head": integer(0, 9999)}
    checkpoint = {"checkpoint": text(100, description="use the weights of this checkpoint")}
    row = integer(0, 99_999, description="the query token, counted from 0")
    return record(
        {"text": text(MAX_ATTRIBUTED_CHARACTERS, title="text"), "look": text(200), "row": row},
        position | checkpoint,
    )


def text_schema() -> Schema:
    """A row of any text, whose words get pseudo-random vectors."""
    row = integer(0, 999, description="the query word, counted from 0")
    score = text(enum=list(EXAMPLES))
    words = text(MAX_ATTRIBUTED_CHARACTERS, minLength=1, title="text")
    return record({"text": words, "row": row}, {"score": score})


def text_steps(body: dict[str, Any]) -> dict[str, Any]:
    """One row of a text with one score, without a model; the example sentence keeps its vectors."""
    words, row = body["text"].split(), int(body["row"])
    if row >= len(words):
        raise Problem(422, f"row {row} of a text with {len(words)} words")
    sentence = early_bird()
    if tuple(words) != sentence.words:
        sentence = made_up(words)
    stages = example(row, body.get("score", EXAMPLES[0]), sentence)
    return {"words": words, "steps": [_steps_record(stages, words[row], words, row)]}


def example_steps() -> dict[str, Any]:
    """“The early bird catches the worm”: each word as the query, with each score."""
    words = early_bird().words
    steps = [
        _steps_record(example(row, score), word, words, row)
        for score in EXAMPLES
        for row, word in enumerate(words)
    ]
    return {"words": list(words), "steps": steps}


def model_steps(model: ServedModel, body: dict[str, Any]) -> dict[str, Any]:
    """The steps of one row; to be called in the model's own thread."""
    run = model.load_run(body.get("checkpoint"))
    layer, head = (int(body[name]) if name in body else None for name in ("layer", "head"))
    row = int(body["row"])
    try:
        _, look, stages = run_stages(run, body["text"], body["look"], layer, head, row)
    except (ValueError, IndexError, RegardError) as error:
        raise Problem(422, f"the steps of this row cannot be computed: {error}") from error
    keys = look.keys[: len(stages.weights)]
    return _steps_record(_without_padding(stages, len(keys)), look.queries[row], keys, row)


def _without_padding(stages: Stages, keys: int) -> Stages:
    """The steps for the first keys; the padding after them is left out."""
    return stages._replace(
        keys=stages.keys[:keys],
        products=None if stages.products is None else stages.products[:keys],
        scores=stages.scores[:keys],
        biased=stages.biased[:keys],
        allowed=stages.allowed[:keys],
        weights=stages.weights[:keys],
        values=stages.values[:keys],
    )


def _steps_record(stages: Stages, query: str, keys: Any, row: int) -> dict[str, Any]:
    stage_values = {
        name: _numbers(part) if isinstance(part, Tensor) else part
        for name, part in stages._asdict().items()
    }
    return {"query_token": query, "key_tokens": list(keys), "row": row, **stage_values}


def _numbers(tensor: Tensor) -> Any:
    tensor = tensor.detach().cpu()
    if not tensor.is_floating_point():
        return tensor.tolist()
    return tensor.double().round(decimals=DIGITS).tolist()
