"""Attention step by step over HTTP: for an example sentence, and for any row of a model's looks.

Without a model, words have vectors of four numbers, and score, normalizer, temperature, mask and
position can be chosen: one row step by step, or the whole matrices of scores and weights.
"""

from typing import Any

from torch import Tensor

from regard.attention import worked_attention
from regard.attention.worked_attention import Choices
from regard.attention.worked_example import Example, early_bird, made_up
from regard.errors import RegardError
from regard.inference.explain.attention_projections import Projection, Projections
from regard.inference.explain.attention_steps import EXAMPLES, Stages, example, run_stages
from regard.serve.api.traces import MAX_ATTRIBUTED_CHARACTERS
from regard.serve.http.problems import Problem
from regard.serve.served_models import ServedModel
from regard.tasks.shared.json_schema import (
    Schema,
    array,
    integer,
    nullable,
    number,
    record,
    text,
)

DIGITS = 6
MAX_WORDS = 60
"""Words of a text whose whole matrices are computed."""
NUMBERS = array({"type": "number"})
STEP_FIELDS: dict[str, Schema] = {
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
    "temperature": {"type": "number"},
}
STEPS: Schema = record(STEP_FIELDS)
PROJECTIONS = record({name: array(NUMBERS) for name in ("query", "key", "value")})
PROJECTION = record({"weight": nullable(array(NUMBERS)), "bias": nullable(NUMBERS)})
MODEL_STEPS: Schema = record(
    STEP_FIELDS
    | {
        "projected": nullable(
            record(
                {
                    "query_input": NUMBERS,
                    "key_inputs": array(NUMBERS),
                    "rotated": {"type": "boolean"},
                }
                | {name: nullable(PROJECTION) for name in ("query", "key", "value")}
            )
        )
    }
)
"""The steps of a model begin with the vectors x that its projections make q, k and v of."""
MAX_PROJECTED = 2**15
"""Numbers of a projection; larger ones are named without their numbers."""
EXAMPLE: Schema = record(
    {
        "words": array(text()),
        "vectors": array(NUMBERS),
        "projections": PROJECTIONS,
        "steps": array(STEPS),
    }
)
MATRICES: Schema = record(
    {
        "words": array(text()),
        "vectors": array(NUMBERS),
        "scores": array(NUMBERS),
        "allowed": array(array({"type": "boolean"})),
        "weights": array(NUMBERS),
    }
)
CHOICES: Schema = record(
    {name: array(text()) for name in ("scores", "normalizers", "masks", "sized_masks", "positions")}
)

QUERY_WORDS: Schema = record(
    {"queries": array(array(record({"word": text(), "degrees": {"type": "number"}})))}
)
NEAREST_WORDS = 8


def request_schema() -> Schema:
    """A row of a look, named as in a trace; without layer or head if the look has none."""
    position = {"layer": integer(0, 9999), "head": integer(0, 9999)}
    checkpoint = {"checkpoint": text(100, description="use the weights of this checkpoint")}
    row = integer(0, 99_999, description="the query token, counted from 0")
    return record(
        {"text": text(MAX_ATTRIBUTED_CHARACTERS, title="text"), "look": text(200), "row": row},
        position | checkpoint,
    )


def choices_schema() -> dict[str, Schema]:
    """What attention without a model can be computed with."""
    size = "size of a window or prefix, or step of a dilated mask"
    return {
        "score": text(enum=list(worked_attention.score_names())),
        "normalize": text(enum=list(worked_attention.normalizer_names())),
        "temperature": number(0.01, 100, description="scores are divided by it"),
        "mask": text(enum=list(worked_attention.MASKS)),
        "size": integer(1, worked_attention.LARGEST_SIZE, description=size),
        "position": text(enum=list(worked_attention.POSITIONS)),
    }


def text_schema() -> Schema:
    """A row of any text, whose words get pseudo-random vectors."""
    row = integer(0, 999, description="the query word, counted from 0")
    words = text(MAX_ATTRIBUTED_CHARACTERS, minLength=1, title="text")
    return record({"text": words, "row": row}, choices_schema())


def matrices_schema() -> Schema:
    """All rows of any text."""
    words = text(MAX_ATTRIBUTED_CHARACTERS, minLength=1, title="text")
    return record({"text": words}, choices_schema())


def available_choices() -> dict[str, Any]:
    """The names of all choices."""
    return {
        "scores": list(worked_attention.score_names()),
        "normalizers": list(worked_attention.normalizer_names()),
        "masks": list(worked_attention.MASKS),
        "sized_masks": list(worked_attention.SIZED_MASKS),
        "positions": list(worked_attention.POSITIONS),
    }


def matrices(body: dict[str, Any]) -> dict[str, Any]:
    """Scores and weights of all words of a text, without a model."""
    words = body["text"].split()
    if not 1 <= len(words) <= MAX_WORDS:
        raise Problem(422, f"the text has {len(words)} words; expected 1 to {MAX_WORDS}")
    try:
        worked = worked_attention.worked_attention(_sentence(words), _choices(body))
    except ValueError as error:
        raise Problem(422, f"attention cannot be computed: {error}") from error
    return {
        "words": words,
        "vectors": _numbers(worked.vectors),
        "scores": _numbers(worked.stages.biased),
        "allowed": worked.allowed.tolist(),
        "weights": _numbers(worked.stages.weights),
    }


def text_steps(body: dict[str, Any]) -> dict[str, Any]:
    """One row of a text, without a model; the example sentence keeps its vectors."""
    words, row = body["text"].split(), int(body["row"])
    if row >= len(words):
        raise Problem(422, f"row {row} of a text with {len(words)} words")
    sentence = _sentence(words)
    try:
        stages = example(row, _choices(body), sentence)
    except ValueError as error:
        raise Problem(422, f"attention cannot be computed: {error}") from error
    return _example_record(sentence, [_steps_record(stages, words[row], words, row)])


def example_steps() -> dict[str, Any]:
    """“The early bird catches the worm”: each word as the query, with each score."""
    words = early_bird().words
    steps = [
        _steps_record(example(row, score), word, words, row)
        for score in EXAMPLES
        for row, word in enumerate(words)
    ]
    return _example_record(early_bird(), steps)


def _sentence(words: list[str]) -> Example:
    """The words with vectors: those of the example sentence, or pseudo-random ones."""
    sentence = early_bird()
    return sentence if tuple(words) == sentence.words else made_up(words)


def _choices(body: dict[str, Any]) -> Choices:
    chosen = {name: body[name] for name in choices_schema() if name in body}
    for name, convert in (("temperature", float), ("size", int)):
        if name in chosen:
            chosen[name] = convert(chosen[name])
    return Choices(**chosen)


def _example_record(sentence: Example, steps: list[dict[str, Any]]) -> dict[str, Any]:
    projections = {
        "query": _numbers(sentence.to_query),
        "key": _numbers(sentence.to_key),
        "value": _numbers(sentence.to_value),
    }
    return {
        "words": list(sentence.words),
        "vectors": _numbers(sentence.vectors),
        "projections": projections,
        "steps": steps,
    }


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
    steps = _steps_record(_without_padding(stages, len(keys)), look.queries[row], keys, row)
    return steps | {"projected": _projected_record(stages.projections, len(keys))}


def _projected_record(made: Projections | None, keys: int) -> dict[str, Any] | None:
    """How query, keys and values came about; None where the model does not project them."""
    if made is None:
        return None

    def plain(projection: Projection | None) -> dict[str, Any] | None:
        if projection is None:
            return None
        weight, bias = projection
        small = weight.numel() <= MAX_PROJECTED
        return {
            "weight": _numbers(weight) if small else None,
            "bias": None if bias is None else _numbers(bias),
        }

    return {
        "query_input": _numbers(made.query_input),
        "key_inputs": _numbers(made.key_inputs[:keys]),
        "rotated": made.rotated,
        **{name: plain(getattr(made, name)) for name in ("query", "key", "value")},
    }


def query_words(model: ServedModel) -> dict[str, Any]:
    """For each learned query, the nearest words; to be called in the model's own thread."""
    run, report = model.load_run(), model.spec.words
    try:
        described = None if report is None else report(run.task, run.model, NEAREST_WORDS)
    except RegardError:  # a pretrained encoder has no learned queries
        described = None
    nearest = getattr(described, "nearest", [])
    return {
        "queries": [
            [{"word": near.word, "degrees": round(near.degrees, 1)} for near in words]
            for words in nearest
        ]
    }


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
        if name != "projections"
    }
    return {"query_token": query, "key_tokens": list(keys), "row": row, **stage_values}


def _numbers(tensor: Tensor) -> Any:
    tensor = tensor.detach().cpu()
    if not tensor.is_floating_point():
        return tensor.tolist()
    return tensor.double().round(decimals=DIGITS).tolist()
