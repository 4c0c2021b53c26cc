"""Faithfulness over HTTP: saved reports, and measuring a model in the background."""

from random import Random
from typing import Any

import anyio.to_thread
from starlette.responses import Response

from regard.inference.explain.faithfulness_reports import saved_reports
from regard.serve.api import run_history
from regard.serve.http.problems import Problem
from regard.serve.http.routing import Call, json_response
from regard.serve.served_models import ServedModel
from regard.tasks.shared.json_schema import record, text

MAX_TEXTS, MAX_WORDS = 24, 40
"""Texts of a measurement, and words of a text: half a minute for small models."""
STATUS = record(
    {
        "status": text(enum=["idle", "running", "done", "failed"]),
        "model": text(),
        "done": {"type": "integer"},
        "total": {"type": "integer"},
        "detail": text(),
    }
)


def reports(model: ServedModel) -> list[dict[str, Any]]:
    """All reports on a model."""
    return [*saved_reports(model.folder), *model.reports]


def texts_to_measure(model: ServedModel) -> list[str]:
    """A sample of texts that the model was not trained on.

    These are the test texts of a built-in corpus, or the texts of saved evaluations and of the last
    validation.
    """
    spec = model.spec
    if spec.explain is None or spec.example_text is None or not model.looks:
        raise Problem(409, f"{model.id} has no attention whose faithfulness could be measured")
    texts = _built_in_texts(model) or run_history.known_texts(model.folder)
    texts = list(dict.fromkeys(" ".join(one.split()[:MAX_WORDS]) for one in texts if one.strip()))
    if len(texts) < 2:
        raise Problem(
            409,
            f"the server knows no texts to measure {model.id} on: evaluate it, or use the command",
        )
    return Random(0).sample(texts, min(MAX_TEXTS, len(texts)))


def _built_in_texts(model: ServedModel) -> list[str]:
    from regard.corpora import make_corpus

    spec = model.spec
    if spec.corpus is None or spec.example_text is None or model.data.get("data") is not None:
        return []
    return [spec.example_text(example) for example in make_corpus(spec.corpus, 2_000).test]


async def start_measurement(call: Call) -> Response:
    """Begin to measure a model."""
    model = call.model
    model.require_texts()
    texts = await anyio.to_thread.run_sync(texts_to_measure, model)
    call.state.measurements.start(model, texts)
    return json_response(call.state.measurements.document())


async def get_measurement(call: Call) -> Response:
    """How far the measurement is."""
    return json_response(call.state.measurements.document())
