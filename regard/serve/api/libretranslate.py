"""LibreTranslate's API, so that its clients can use this server.

https://docs.libretranslate.com: `POST /translate`, `POST /detect`, `GET /languages`; requests are
JSON or forms, and the token may be in the body.
"""

from typing import Any

from regard.serve.http.problems import Problem
from regard.serve.limits import Limits
from regard.serve.served_models import ServedModel, ServedModels
from regard.serve.worker import Failure
from regard.tasks.shared.json_schema import Schema, array, either, integer, number, record, text

LANGUAGE_NAMES = {
    "ar": "Arabic", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek",
    "en": "English", "es": "Spanish", "fa": "Persian", "fi": "Finnish", "fr": "French",
    "he": "Hebrew", "hi": "Hindi", "hu": "Hungarian", "id": "Indonesian", "it": "Italian",
    "ja": "Japanese", "ko": "Korean", "la": "Latin", "nl": "Dutch", "no": "Norwegian",
    "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sv": "Swedish",
    "tr": "Turkish", "uk": "Ukrainian", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip

LANGUAGE = record({"code": text(), "name": text(), "targets": array(text())})
LANGUAGES = array(LANGUAGE)
DETECTED = array(record({"language": text(), "confidence": number(0, 100)}))
TRANSLATED = record(
    {"translatedText": either(text(), array(either(text(), {"type": "null"})))},
    {"detectedLanguage": {"type": "object"}, "errors": array({"type": "object"})},
)


def translate_schema(models: ServedModels, limits: Limits, *, form: bool = False) -> Schema:
    """A request for a translation; several texts at once only in JSON."""
    query = text(limits.text_characters, title="text")
    pairs = [language_pair(model) for model in translators(models)]
    sources = dict.fromkeys(["auto", *(source for source, _ in pairs)])
    targets = dict.fromkeys(target for _, target in pairs)
    return record(
        {
            "q": query if form else either(query, array(query, most=limits.texts_per_request)),
            "source": text(enum=list(sources)),
            "target": text(enum=list(targets)),
        },
        {
            "format": text(enum=["text"]),
            "alternatives": text(enum=["0"]) if form else integer(0, 0),
            "api_key": text(1000),
        },
    )


def detect_schema(limits: Limits) -> Schema:
    """A request for the language of a text."""
    return record({"q": text(limits.text_characters, title="text")}, {"api_key": text(1000)})


def translators(models: ServedModels) -> list[ServedModel]:
    """The models that translate."""
    return models.select(lambda model: model.languages is not None)


def language_pair(translator: ServedModel) -> tuple[str, str]:
    """The languages that a translator translates from and to."""
    assert translator.languages is not None
    return translator.languages


def supported_languages(models: ServedModels) -> list[dict[str, Any]]:
    """Each language, with the languages that it is translated into."""
    targets: dict[str, list[str]] = {}
    for model in translators(models):
        source, target = language_pair(model)
        targets.setdefault(target, [])
        source_targets = targets.setdefault(source, [])
        if target not in source_targets:
            source_targets.append(target)
    return [
        {"code": code, "name": LANGUAGE_NAMES.get(code, code), "targets": code_targets}
        for code, code_targets in targets.items()
    ]


def choose_translator(
    models: ServedModels, source: str, target: str, texts: list[str]
) -> tuple[ServedModel, float | None]:
    """The first model for two languages; with `auto`, for the most likely source language.

    The second value is the confidence of the detection, None if the source was given.
    """
    candidates = [
        model for model in translators(models) if language_pair(model)[1] == target and model.ready
    ]
    if source == "auto" and candidates:
        guesses = detect_language(candidates, " ".join(texts))
        if not guesses:
            return candidates[0], 0.0
        best = guesses[0]
        return _with_source(candidates, best["language"])[0], best["confidence"]
    matching = _with_source(candidates, source)
    if not matching:
        pairs = ", ".join(" to ".join(language_pair(model)) for model in translators(models))
        detail = f"no model translates {source} to {target} now; served: {pairs or 'none'}"
        raise Problem(409, detail)
    return matching[0], None


def _with_source(candidates: list[ServedModel], source: str) -> list[ServedModel]:
    return [model for model in candidates if language_pair(model)[0] == source]


def detect_language(models: list[ServedModel], text: str) -> list[dict[str, Any]]:
    """The languages that the models translate from, the most likely language of a text first.

    A tokenizer trained on a language splits its words into few long tokens, so the language is
    that of the tokenizer with the most characters per token (unknown tokens count once per
    character). The confidence is a language's share of these ratios, in percent.
    """
    characters = max(1, len(text))
    ratios: dict[str, float] = {}
    for model in models:
        if model.run is None:
            continue
        service = model.spec.translation
        assert service is not None  # it translates
        cost = service.detection_cost(model.run.task, text)
        language = language_pair(model)[0]
        ratios[language] = max(ratios.get(language, 0.0), characters / max(1, cost))
    total = sum(ratios.values())
    ranked = sorted(ratios.items(), key=lambda item: -item[1])
    return [
        {"language": language, "confidence": round(100 * ratio / total, 1)}
        for language, ratio in ranked
    ]


def translate_response(query: str | list[str], predictions: list[Any]) -> dict[str, Any]:
    """Translations in order; one of several that failed is null, with its reason in `errors`."""
    if isinstance(query, str):
        if isinstance(predictions[0], Failure):
            raise Problem(422, predictions[0].reason)
        return {"translatedText": predictions[0].output}
    response: dict[str, Any] = {
        "translatedText": [
            None if isinstance(prediction, Failure) else prediction.output
            for prediction in predictions
        ]
    }
    errors = [
        {"index": i, "detail": prediction.reason}
        for i, prediction in enumerate(predictions)
        if isinstance(prediction, Failure)
    ]
    return response | ({"errors": errors} if errors else {})
