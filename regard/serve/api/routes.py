"""The table of routes, and their handlers."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.to_thread
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from regard.serve.api import (
    completions,
    evidence,
    libretranslate,
    measurements,
    model_cards,
    predictions,
    run_history,
    steps,
    traces,
)
from regard.serve.http.problems import Problem, too_many_requests
from regard.serve.http.prometheus import TEXT_FORMAT
from regard.serve.http.routing import JSON, AppState, Call, Route, json_response
from regard.serve.http.strict_json import dumps
from regard.serve.served_models import ServedModel
from regard.tasks.registry import TaskSpec
from regard.tasks.shared.json_schema import Schema, array, record, text

EVENT_STREAM = "text/event-stream"
ANY_OBJECT: Schema = {"type": "object"}
STATUS = record({"status": text()})
MODEL = record(
    {
        "id": text(),
        "object": text(enum=["model"]),
        "created": {"type": "integer"},
        "owned_by": text(),
        "task": text(),
        "ready": {"type": "boolean"},
        "languages": {"type": ["array", "null"], "items": text()},
        "labels": {"type": ["array", "null"], "items": text()},
        "screens": array(text()),
        "looks": array(text()),
        "examples": array(text()),
        "parameters": {"type": ["integer", "null"]},
        "data": text(),
        "metric": text(),
        "written": {"type": "number"},
        "argument": text(),
        "config": ANY_OBJECT,
    }
)
CHECKPOINT = record({"id": text(), "step": {"type": "integer"}})


def list_schema(items: Schema) -> Schema:
    """A list in the form that OpenAI's clients expect."""
    return record({"object": text(enum=["list"]), "data": array(items)})


def list_response(data: list[Any]) -> Response:
    """Such a list as a response."""
    return json_response({"object": "list", "data": data})


async def get_health(call: Call) -> Response:
    """Whether the server is alive."""
    return json_response({"status": "ok"})


async def get_readiness(call: Call) -> Response:
    """Whether the server accepts requests."""
    if call.state.stopping:
        raise Problem(503, "the server is stopping")
    return json_response({"status": "ready"})


async def get_server_metrics(call: Call) -> Response:
    """Metrics for Prometheus."""
    return Response(call.state.metrics.text(), media_type=TEXT_FORMAT)


async def get_models(call: Call) -> Response:
    """All models."""
    models = list(call.state.models)
    descriptions = await anyio.to_thread.run_sync(lambda: [one.description() for one in models])
    return list_response(descriptions)


async def get_model(call: Call) -> Response:
    """One model."""
    return json_response(await anyio.to_thread.run_sync(call.model.description))


async def predict(call: Call) -> Response:
    """Predictions; texts of several requests are predicted in one batch."""
    model, inputs = call.model, call.body["inputs"]
    parameters = call.body.get("parameters", {})
    texts = [inputs] if isinstance(inputs, str) else inputs
    model.require_texts()
    options = model.spec.http.predict_options(parameters)
    results = await _predict_texts(model, texts, options)
    return json_response(predictions.response(model.spec, inputs, results, parameters))


async def _predict_texts(
    model: ServedModel, texts: list[str], options: dict[str, Any]
) -> list[Any]:
    """A prediction or a failure for each text."""
    return list(await model.worker.submit(texts, options).result()) if texts else []


async def explain(call: Call) -> Response:
    """A trace."""
    model, body = call.model, call.body
    model.require_texts()
    content = await model.worker.call(lambda: traces.trace(model, body)).result()
    return Response(content, media_type=JSON)


async def model_steps(call: Call) -> Response:
    """One row of a look, step by step."""
    model, body = call.model, call.body
    model.require_texts()
    return json_response(await model.worker.call(lambda: steps.model_steps(model, body)).result())


async def query_words(call: Call) -> Response:
    """The words nearest to each learned query."""
    model = call.model
    model.require_texts()
    return json_response(await model.worker.call(lambda: steps.query_words(model)).result())


async def example_steps(call: Call) -> Response:
    """An example sentence, which needs no model."""
    return json_response(await anyio.to_thread.run_sync(steps.example_steps))


async def text_steps(call: Call) -> Response:
    """Any text, with pseudo-random vectors."""
    return json_response(await anyio.to_thread.run_sync(steps.text_steps, call.body))


async def get_attention_choices(call: Call) -> Response:
    """What attention without a model can be computed with."""
    return json_response(await anyio.to_thread.run_sync(steps.available_choices))


async def attention_matrices(call: Call) -> Response:
    """Scores and weights of any text, which needs no model."""
    return json_response(await anyio.to_thread.run_sync(steps.matrices, call.body))


async def translate(call: Call) -> Response:
    """Translations for LibreTranslate's clients."""
    query = call.body["q"]
    texts = [query] if isinstance(query, str) else query
    model, confidence = libretranslate.choose_translator(
        call.state.models, call.body["source"], call.body["target"], texts
    )
    response = libretranslate.translate_response(query, await _predict_texts(model, texts, {}))
    if confidence is not None:
        language = libretranslate.language_pair(model)[0]
        response["detectedLanguage"] = {"language": language, "confidence": confidence}
    return json_response(response)


async def detect(call: Call) -> Response:
    """The most likely of the languages that are translated here."""
    translators = libretranslate.translators(call.state.models)
    return json_response(libretranslate.detect_language(translators, call.body["q"]))


async def get_languages(call: Call) -> Response:
    """Each language, with the languages that it is translated into."""
    return json_response(libretranslate.supported_languages(call.state.models))


async def complete(call: Call) -> Response:
    """Completions for OpenAI's clients."""
    request = completions.CompletionRequest.from_body(call.body)
    model = call.state.models[request.model]
    model.require_texts()
    deadline = anyio.current_time() + call.state.limits.request_seconds
    if call.body.get("stream"):
        content = _completion_events(model, request, deadline)
        return StreamingResponse(content, media_type=EVENT_STREAM)
    job = model.worker.call(lambda: request.generate(model.load_run(), lambda: False))
    return json_response(request.document(await job.result()))


def _completion_events(
    model: ServedModel, request: completions.CompletionRequest, deadline: float
) -> AsyncIterator[bytes]:
    """Pieces of text as server-sent events while the model's thread generates them.

    The model's thread puts events into a queue of the event loop, and None when it is done. When
    the client disconnects, starlette closes the generator, whose `finally` cancels the job.
    """
    header = completions.ResponseHeader.create(request.model)
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[bytes | None] = asyncio.Queue()

    def put(event: bytes | None) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, event)

    def put_choice(index: int, piece: str, reason: str | None) -> None:
        put(header.event([completions.choice(index, piece, reason)]))

    job = model.worker.call(
        lambda: request.generate(
            model.load_run(),
            lambda: loop.time() > deadline,
            lambda index, piece: put_choice(index, piece, None),
            lambda index, reason: put_choice(index, "", reason),
        )
    )
    job.future.add_done_callback(lambda _: put(None))

    async def events() -> AsyncIterator[bytes]:
        try:
            while (event := await queue.get()) is not None:
                yield event
            if job.future.exception() is not None:
                problem = Problem(500, "the model failed while it generated text")
                yield b"data: %s\n\n" % dumps(problem.document("openai"))
                return
            if request.include_usage:
                yield header.event([], request.usage(job.future.result()))
            yield b"data: [DONE]\n\n"
        finally:
            job.abandon()

    return events()


async def get_run_metrics(call: Call) -> Response:
    """The metrics of a run."""
    folder = call.model.folder
    lines = await anyio.to_thread.run_sync(run_history.json_lines, folder, folder.metrics)
    return list_response(lines)


async def get_run_events(call: Call) -> Response:
    """The metrics of a run as events, including those still to be written."""
    folder = call.model.folder
    last_id = call.request.headers.get("last-event-id", "")
    is_number = last_id.isascii() and last_id.isdecimal() and len(last_id) < 10
    after = int(last_id) if is_number else 0
    events = run_history.events(folder, after, lambda: call.state.stopping)
    return CountedStream(events, call.state)


class CountedStream(StreamingResponse):
    """An event stream, which is counted while it is sent; refused if too many are open."""

    def __init__(self, events: AsyncIterator[bytes], state: AppState) -> None:
        super().__init__(events, media_type=EVENT_STREAM)
        self.state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream. Nothing is awaited between the check and the count, so that streams
        that open at the same time are counted one by one."""
        metrics, most = self.state.metrics, self.state.limits.event_streams
        if metrics.event_streams >= most:
            problem = too_many_requests(f"{most} event streams are open, which is the maximum")
            await problem.response()(scope, receive, send)
            return
        metrics.event_streams += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            metrics.event_streams -= 1


async def get_evaluations(call: Call) -> Response:
    """Evaluations of a run, with metrics by length."""
    return list_response(await anyio.to_thread.run_sync(run_history.evaluations, call.model.folder))


async def get_evaluation_sentences(call: Call) -> Response:
    """The sentences of an evaluation."""
    name = call.request.path_params["name"]
    sentences = await anyio.to_thread.run_sync(run_history.sentences, call.model.folder, name)
    if sentences is None:
        raise Problem(404, "no evaluation of that name")
    return list_response(sentences)


async def get_faithfulness(call: Call) -> Response:
    """Reports on whether a run's attention is faithful."""
    return list_response(await anyio.to_thread.run_sync(measurements.reports, call.model))


async def get_checkpoints(call: Call) -> Response:
    """The checkpoints of a run."""
    return list_response(
        [{"id": name, "step": run_history.step_of(name)} for name in call.model.checkpoints()]
    )


def _spec(model: ServedModel | None) -> TaskSpec:
    """The task of the model that a request is for."""
    assert model is not None  # these routes are documented once per model
    return model.spec


ROUTES = (
    Route("GET", "/healthz", "Liveness", get_health, lambda state, model: STATUS, public=True),
    Route(
        "GET", "/readyz", "Readiness", get_readiness, lambda state, model: STATUS, public=True,
        problems=(503,),
    ),
    Route("GET", "/metrics", "Metrics for Prometheus", get_server_metrics, media_type=TEXT_FORMAT),
    Route(
        "GET", "/v1/models", "All models", get_models, lambda state, model: list_schema(MODEL)
    ),
    Route("GET", "/v1/models/{id}", "One model", get_model, lambda state, model: MODEL),
    Route(
        "GET", "/v1/models/{id}/card", "Model card: data, options, metrics, sizes",
        model_cards.get_card, lambda state, model: model_cards.CARD,
    ),
    Route(
        "POST", "/v1/models/{id}/predict",
        "Predictions, in the format of Hugging Face’s pipelines", predict,
        lambda state, model: predictions.response_schema(_spec(model)),
        body=lambda state, model: predictions.request_schema(_spec(model), state.limits),
        per_model=True, problems=(409, 429, 504),
    ),
    Route(
        "POST", "/v1/models/{id}/explain", "Trace: prediction, attention maps, attributions",
        explain,
        lambda state, model: traces.TRACE,
        body=lambda state, model: traces.request_schema(_spec(model), state.limits),
        per_model=True, problems=(409, 429, 504),
    ),
    Route(
        "POST", "/v1/models/{id}/steps",
        "One row of an attention map, step by step: scores, mask, weights, output", model_steps,
        lambda state, model: steps.MODEL_STEPS, body=lambda state, model: steps.request_schema(),
        per_model=True, problems=(409, 429, 504),
    ),
    Route(
        "GET", "/v1/models/{id}/words", "Words nearest to the learned queries of a model",
        query_words, lambda state, model: steps.QUERY_WORDS, problems=(409, 429, 504),
    ),
    Route(
        "GET", "/v1/steps", "Attention step by step for an example sentence, without a model",
        example_steps, lambda state, model: steps.EXAMPLE,
    ),
    Route(
        "POST", "/v1/steps",
        "Attention step by step for one word of any text, with pseudo-random vectors", text_steps,
        lambda state, model: steps.EXAMPLE, body=lambda state, model: steps.text_schema(),
    ),
    Route(
        "GET", "/v1/attention", "Scores, normalizers, masks and positions to choose from",
        get_attention_choices, lambda state, model: steps.CHOICES,
    ),
    Route(
        "POST", "/v1/attention",
        "Scores and weights of any text, with a score, normalizer, mask and position of choice",
        attention_matrices, lambda state, model: steps.MATRICES,
        body=lambda state, model: steps.matrices_schema(),
    ),
    Route(
        "POST", "/v1/completions", "Completions, in the format of OpenAI’s API", complete,
        lambda state, model: completions.COMPLETION,
        body=lambda state, model: completions.request_schema(state.models, state.limits),
        may_stream=True, dialect="openai", problems=(409, 429, 504),
    ),
    Route(
        "POST", "/translate", "Translation, in the format of LibreTranslate’s API", translate,
        lambda state, model: libretranslate.TRANSLATED,
        body=lambda state, model: libretranslate.translate_schema(state.models, state.limits),
        form=lambda state: libretranslate.translate_schema(state.models, state.limits, form=True),
        dialect="libretranslate", problems=(409, 429, 504),
    ),
    Route(
        "POST", "/detect", "Language detection, in the format of LibreTranslate’s API", detect,
        lambda state, model: libretranslate.DETECTED,
        body=lambda state, model: libretranslate.detect_schema(state.limits),
        form=lambda state: libretranslate.detect_schema(state.limits),
        dialect="libretranslate", problems=(429,),
    ),
    Route(
        "GET", "/languages", "Languages, in the format of LibreTranslate’s API", get_languages,
        lambda state, model: libretranslate.LANGUAGES, dialect="libretranslate",
    ),
    Route(
        "GET", "/v1/runs/{id}/metrics", "Training metrics of a run", get_run_metrics,
        lambda state, model: list_schema(ANY_OBJECT),
    ),
    Route(
        "GET", "/v1/runs/{id}/events", "Training metrics of a run as an event stream",
        get_run_events, media_type=EVENT_STREAM, problems=(429,),
    ),
    Route(
        "GET", "/v1/runs/{id}/evaluations", "Evaluations, with metrics by length",
        get_evaluations, lambda state, model: list_schema(ANY_OBJECT),
    ),
    Route(
        "GET", "/v1/runs/{id}/evaluations/{name}", "Sentences of an evaluation",
        get_evaluation_sentences, lambda state, model: list_schema(ANY_OBJECT),
    ),
    Route(
        "GET", "/v1/runs/{id}/faithfulness", "Reports on the faithfulness of attention",
        get_faithfulness, lambda state, model: list_schema(ANY_OBJECT),
    ),
    Route(
        "POST", "/v1/runs/{id}/faithfulness",
        "Measure the faithfulness of attention on a sample of texts, in the background",
        measurements.start_measurement, lambda state, model: measurements.STATUS,
        body=lambda state, model: record({}), problems=(409,),
    ),
    Route(
        "GET", "/v1/faithfulness", "Progress of the measurement",
        measurements.get_measurement, lambda state, model: measurements.STATUS,
    ),
    Route(
        "GET", "/v1/experiments", "All experiments, with the results that were saved",
        evidence.get_experiments, lambda state, model: list_schema(ANY_OBJECT),
    ),
    Route(
        "GET", "/v1/experiments/{name}", "A saved result of an experiment, with pictures",
        evidence.get_experiment, lambda state, model: ANY_OBJECT,
    ),
    Route(
        "GET", "/v1/comparisons", "Comparisons, with their verdicts",
        evidence.get_comparisons, lambda state, model: list_schema(ANY_OBJECT),
    ),
    Route(
        "GET", "/v1/comparisons/{name}", "The report of a comparison",
        evidence.get_comparison, lambda state, model: ANY_OBJECT,
    ),
    Route(
        "GET", "/v1/runs/{id}/checkpoints", "Checkpoints of a run", get_checkpoints,
        lambda state, model: list_schema(CHECKPOINT),
    ),
)  # fmt: skip
