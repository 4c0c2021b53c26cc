"""Attention step by step over HTTP: the lectures' sentence, and any row of a model's looks."""

from typing import Any

from torch import Tensor

from regard.attention.example import early_bird, made_up
from regard.errors import RegardError
from regard.inference.stages import EXAMPLES, Stages, example, run_stages
from regard.serve.explaining import ATTRIBUTED
from regard.serve.problems import Problem
from regard.serve.schemas import Schema, array, integer, nullable, record, text
from regard.serve.shelf import Served

DIGITS = 6
NUMBERS = array({"type": "number"})
STEPS: Schema = record(
    {
        "score": text(),
        "asking": text(),
        "asked": array(text()),
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
    """A row of a look, named as in a trace; without layer or head where the look has none."""
    place = {"layer": integer(0, 9999), "head": integer(0, 9999)}
    more = {"checkpoint": text(100, description="its weights at an earlier step")}
    row = integer(0, 99_999, description="the token that looks, from 0")
    return record({"text": text(ATTRIBUTED), "look": text(200), "row": row}, place | more)


def text_schema() -> Schema:
    """A row of any text, whose words get vectors that are made up."""
    row = integer(0, 999, description="the word that looks, from 0")
    score = text(enum=list(EXAMPLES))
    return record({"text": text(ATTRIBUTED, minLength=1), "row": row}, {"score": score})


def worked_text(body: dict[str, Any]) -> dict[str, Any]:
    """One row of a text by one score, without a model; the lectures' sentence keeps its vectors."""
    words, row = body["text"].split(), int(body["row"])
    if row >= len(words):
        raise Problem(422, f"row {row} of a text with {len(words)} words")
    bird = early_bird()
    made = bird if tuple(words) == bird.words else made_up(words)
    stages = example(row, body.get("score", EXAMPLES[0]), made)
    return {"words": words, "steps": [_told(stages, words[row], words, row)]}


def worked_example() -> dict[str, Any]:
    """The early bird catches the worm: every word, by every score."""
    words = early_bird().words
    made = [
        _told(example(row, score), word, words, row)
        for score in EXAMPLES
        for row, word in enumerate(words)
    ]
    return {"words": list(words), "steps": made}


def model_steps(served: Served, body: dict[str, Any]) -> dict[str, Any]:
    """The stages of one row; for the model's own thread."""
    run = served.model(body.get("checkpoint"))
    layer, head = (int(body[name]) if name in body else None for name in ("layer", "head"))
    row = int(body["row"])
    try:
        _, look, stages = run_stages(run, body["text"], body["look"], layer, head, row)
    except (ValueError, IndexError, RegardError) as error:
        raise Problem(422, f"this row cannot be taken apart: {error}") from error
    keys = look.keys[: len(stages.weights)]
    return _told(_shorter(stages, len(keys)), look.queries[row], keys, row)


def _shorter(stages: Stages, keys: int) -> Stages:
    """Without the padding behind the words."""
    return stages._replace(
        keys=stages.keys[:keys],
        products=None if stages.products is None else stages.products[:keys],
        scores=stages.scores[:keys],
        biased=stages.biased[:keys],
        allowed=stages.allowed[:keys],
        weights=stages.weights[:keys],
        values=stages.values[:keys],
    )


def _told(stages: Stages, asking: str, asked: Any, row: int) -> dict[str, Any]:
    plain = {
        name: _numbers(part) if isinstance(part, Tensor) else part
        for name, part in stages._asdict().items()
    }
    return {"asking": asking, "asked": list(asked), "row": row, **plain}


def _numbers(tensor: Tensor) -> Any:
    found = tensor.detach().cpu()
    if not found.is_floating_point():
        return found.tolist()
    return found.double().round(decimals=DIGITS).tolist()
