"""The table of routes, and what each of them does."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.to_thread
from starlette.responses import Response, StreamingResponse

from regard.inference import reports
from regard.serve import completions, explaining, history, libretranslate, predictions, stepping
from regard.serve.counting import MEDIA as PROMETHEUS
from regard.serve.desk import Call, Route, answered, done
from regard.serve.plain import dumps
from regard.serve.problems import Problem, busy
from regard.serve.schemas import Schema, array, record, text
from regard.serve.shelf import Served

EVENTS = "text/event-stream"
OPEN: Schema = {"type": "object"}
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
        "parameters": {"type": ["integer", "null"]},
        "config": OPEN,
    }
)


def listed(items: Schema) -> Schema:
    """A list as OpenAI's clients know it."""
    return record({"object": text(enum=["list"]), "data": array(items)})


def a_list(data: list[Any]) -> Response:
    """A list as an answer."""
    return answered({"object": "list", "data": data})


async def health(call: Call) -> Response:
    """Whether the server is alive."""
    return answered({"status": "ok"})


async def readiness(call: Call) -> Response:
    """Whether the server takes requests."""
    if call.desk.stopping:
        raise Problem(503, "the server is stopping")
    return answered({"status": "ready"})


async def metrics_text(call: Call) -> Response:
    """Counters for Prometheus."""
    return Response(call.desk.counts.text(call.desk.shelf), media_type=PROMETHEUS)


async def models(call: Call) -> Response:
    """All models."""
    return a_list([one.card() for one in call.desk.shelf.served.values()])


async def model(call: Call) -> Response:
    """One model."""
    return answered(call.served.card())


async def predict(call: Call) -> Response:
    """Predictions; texts of several requests are read together."""
    served, inputs = call.served, call.body["inputs"]
    given = call.body.get("parameters", {})
    texts = [inputs] if isinstance(inputs, str) else inputs
    _require(served)
    options = predictions.options(served.task, given)
    found = await done(served.worker.submit(texts, options)) if texts else []
    return answered(predictions.answer(served.task, inputs, found, given))


async def explain(call: Call) -> Response:
    """A trace."""
    served, body = call.served, call.body
    _require(served)
    found = await done(served.worker.call(lambda: explaining.trace(served, body)))
    return Response(found, media_type="application/json")


async def steps(call: Call) -> Response:
    """One row of a look, taken apart."""
    served, body = call.served, call.body
    _require(served)
    return answered(await done(served.worker.call(lambda: stepping.model_steps(served, body))))


async def example_steps(call: Call) -> Response:
    """The lectures' sentence, which needs no model."""
    return answered(await anyio.to_thread.run_sync(stepping.worked_example))


async def text_steps(call: Call) -> Response:
    """Any sentence, with vectors that are made up."""
    return answered(await anyio.to_thread.run_sync(stepping.worked_text, call.body))


def _require(served: Served) -> None:
    """It has weights, and takes texts."""
    if not served.ready:
        raise Problem(409, f"{served.id} holds no weights yet: it is still being trained")
    if not served.reads_texts:
        raise Problem(409, f"{served.id} reads vectors from files: it takes no texts")


async def translate(call: Call) -> Response:
    """Translations for LibreTranslate's clients."""
    body = call.body
    texts = [body["q"]] if isinstance(body["q"], str) else body["q"]
    chosen, confidence = libretranslate.choose(
        call.desk.shelf, body["source"], body["target"], texts
    )
    found = await done(chosen.worker.submit(texts, {})) if texts else []
    made = libretranslate.answer(body["q"], found)
    if confidence is not None:
        told = {"language": chosen.languages[0], "confidence": confidence}
        made["detectedLanguage"] = told
    return answered(made)


async def detect(call: Call) -> Response:
    """The likeliest of the languages that are translated here."""
    known = libretranslate.translators(call.desk.shelf)
    return answered(libretranslate.detect(known, call.body["q"]))


async def languages(call: Call) -> Response:
    """What is translated into what."""
    return answered(libretranslate.languages(call.desk.shelf))


async def complete(call: Call) -> Response:
    """Continuations for OpenAI's clients."""
    wanted = completions.Wanted.of(call.body)
    served = call.desk.shelf[wanted.model]
    _require(served)
    end = anyio.current_time() + call.desk.limits.seconds
    if call.body.get("stream"):
        return StreamingResponse(_stream(served, wanted, end), media_type=EVENTS)
    gone: list[bool] = []
    try:
        made = await done(
            served.worker.call(lambda: wanted.write(served.model(), lambda: bool(gone)))
        )
    finally:
        gone.append(True)
    return answered(completions.whole(wanted, made))


def _stream(served: Served, wanted: completions.Wanted, end: float) -> AsyncIterator[bytes]:
    """Pieces as they are written; who hangs up ends the writing."""
    answer = completions.Answer.begin(wanted.model)
    loop, gone = asyncio.get_running_loop(), list[bool]()
    pieces: asyncio.Queue[bytes | None] = asyncio.Queue()

    def put(piece: bytes | None) -> None:
        loop.call_soon_threadsafe(pieces.put_nowait, piece)

    def piece_of(index: int, piece: str, reason: str | None) -> None:
        put(answer.event([completions.choice(index, piece, reason)]))

    future = served.worker.call(
        lambda: wanted.write(
            served.model(),
            lambda: bool(gone) or loop.time() > end,
            lambda index, piece: piece_of(index, piece, None),
            lambda index, reason: piece_of(index, "", reason),
        )
    )
    future.add_done_callback(lambda _: put(None))

    async def parts() -> AsyncIterator[bytes]:
        try:
            while (piece := await pieces.get()) is not None:
                yield piece
            if future.exception() is not None:
                failed = Problem(500, "the model could not go on").document("openai")
                yield b"data: %s\n\n" % dumps(failed)
                return
            if wanted.usage:
                yield answer.event([], wanted.usage_of(future.result()))
            yield b"data: [DONE]\n\n"
        finally:
            gone.append(True)
            future.cancel()

    return parts()


async def run_metrics(call: Call) -> Response:
    """The lines of a run's metrics."""
    path = call.served.folder.metrics
    return a_list(await anyio.to_thread.run_sync(history.json_lines, path))


async def run_events(call: Call) -> Response:
    """The same lines as events, those to come too."""
    counts, most, folder = call.desk.counts, call.desk.limits.followers, call.served.folder
    if counts.following >= most:
        raise busy(f"{most} event streams are open, which is the most at once")
    last = call.request.headers.get("last-event-id", "")
    after = int(last) if last.isascii() and last.isdecimal() and len(last) < 10 else 0

    async def follow() -> AsyncIterator[bytes]:
        counts.following += 1
        try:
            async for event in history.events(folder, after, lambda: call.desk.stopping):
                yield event
        finally:
            counts.following -= 1

    return StreamingResponse(follow(), media_type=EVENTS)


async def run_evaluations(call: Call) -> Response:
    """Evaluations of a run, with their figures by length."""
    return a_list(await anyio.to_thread.run_sync(history.evaluations, call.served.folder))


async def run_sentences(call: Call) -> Response:
    """The sentences of an evaluation."""
    name = call.request.path_params["name"]
    found = await anyio.to_thread.run_sync(history.sentences, call.served.folder, name)
    if found is None:
        raise Problem(404, "no evaluation of that name")
    return a_list(found)


async def run_faithfulness(call: Call) -> Response:
    """Reports on whether a run's attention names the words that matter."""
    return a_list(await anyio.to_thread.run_sync(reports.kept, call.served.folder))


async def run_checkpoints(call: Call) -> Response:
    """The checkpoints that a run has kept."""
    found = [{"id": name, "step": history.step_of(name)} for name in call.served.checkpoints()]
    return a_list(found)


ROUTES = (
    Route("GET", "/healthz", "Alive", health, lambda d, s: STATUS, public=True),
    Route(
        "GET", "/readyz", "Taking requests", readiness, lambda d, s: STATUS, public=True,
        problems=(503,),
    ),
    Route("GET", "/metrics", "Counters for Prometheus", metrics_text, media=PROMETHEUS),
    Route("GET", "/v1/models", "All models", models, lambda d, s: listed(MODEL)),
    Route("GET", "/v1/models/{id}", "One model", model, lambda d, s: MODEL),
    Route(
        "POST", "/v1/models/{id}/predict", "Predictions, in the shapes of Hugging Face’s pipelines",
        predict,
        lambda d, s: predictions.answer_schema(s.task if s else ""),
        body=lambda d, s: predictions.request_schema(s.task if s else "", d.limits),
        by_model=True, problems=(409, 429, 504),
    ),
    Route(
        "POST", "/v1/models/{id}/explain", "A trace: where the model looked", explain,
        lambda d, s: explaining.TRACE,
        body=lambda d, s: explaining.request_schema(s.task if s else "", d.limits),
        by_model=True, problems=(409, 429, 504),
    ),
    Route(
        "POST", "/v1/models/{id}/steps", "One row of a look: score, mask, weights, sum", steps,
        lambda d, s: stepping.STEPS, body=lambda d, s: stepping.request_schema(),
        by_model=True, problems=(409, 429, 504),
    ),
    Route(
        "GET", "/v1/steps", "The same of a sentence of six words, without a model", example_steps,
        lambda d, s: stepping.EXAMPLE,
    ),
    Route(
        "POST", "/v1/steps", "One row of any text, whose words get made-up vectors", text_steps,
        lambda d, s: stepping.EXAMPLE, body=lambda d, s: stepping.text_schema(),
    ),
    Route(
        "POST", "/v1/completions", "Continuations, in OpenAI’s shape", complete,
        lambda d, s: completions.COMPLETION,
        body=lambda d, s: completions.request_schema(d.shelf, d.limits),
        streams=True, dialect="openai", problems=(409, 429, 504),
    ),
    Route(
        "POST", "/translate", "A translation, in LibreTranslate’s shape", translate,
        lambda d, s: libretranslate.TRANSLATED,
        body=lambda d, s: libretranslate.translate_schema(d.shelf, d.limits),
        form=lambda d: libretranslate.translate_schema(d.shelf, d.limits, form=True),
        dialect="libretranslate", problems=(409, 429, 504),
    ),
    Route(
        "POST", "/detect", "The language of a text, in LibreTranslate’s shape", detect,
        lambda d, s: libretranslate.DETECTED,
        body=lambda d, s: libretranslate.detect_schema(d.limits),
        form=lambda d: libretranslate.detect_schema(d.limits),
        dialect="libretranslate", problems=(429,),
    ),
    Route(
        "GET", "/languages", "Languages, in LibreTranslate’s shape", languages,
        lambda d, s: libretranslate.LANGUAGES, dialect="libretranslate",
    ),
    Route(
        "GET", "/v1/runs/{id}/metrics", "The curves of a run", run_metrics,
        lambda d, s: listed(OPEN),
    ),
    Route(
        "GET", "/v1/runs/{id}/events", "The curves of a run as they grow", run_events,
        media=EVENTS, problems=(429,),
    ),
    Route(
        "GET", "/v1/runs/{id}/evaluations", "Evaluations, by length too", run_evaluations,
        lambda d, s: listed(OPEN),
    ),
    Route(
        "GET", "/v1/runs/{id}/evaluations/{name}", "The sentences of an evaluation",
        run_sentences, lambda d, s: listed(OPEN),
    ),
    Route(
        "GET", "/v1/runs/{id}/faithfulness", "Whether attention names the words that matter",
        run_faithfulness, lambda d, s: listed(OPEN),
    ),
    Route(
        "GET", "/v1/runs/{id}/checkpoints", "Weights kept along the way", run_checkpoints,
        lambda d, s: listed(record({"id": text(), "step": {"type": "integer"}})),
    ),
)  # fmt: skip
