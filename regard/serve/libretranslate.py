"""Translation in LibreTranslate's shape, so that its clients work here.

https://docs.libretranslate.com: `POST /translate`, `POST /detect`, `GET /languages`, as JSON or as
a form, the key perhaps in the body.
"""

from typing import Any

from regard.serve.batching import Failure
from regard.serve.limits import Limits
from regard.serve.problems import Problem
from regard.serve.schemas import Schema, array, either, integer, number, record, text
from regard.serve.shelf import Served, Shelf

NAMES = {
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


def translate_schema(shelf: Shelf, limits: Limits, *, form: bool = False) -> Schema:
    """A request for a translation; several texts at once only in JSON."""
    one = text(limits.text)
    pairs = [one.languages for one in translators(shelf)]
    sources = dict.fromkeys(["auto", *(source for source, _ in pairs)])
    targets = dict.fromkeys(target for _, target in pairs)
    return record(
        {
            "q": one if form else either(one, array(one, most=limits.batch)),
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
    return record({"q": text(limits.text)}, {"api_key": text(1000)})


def translators(shelf: Shelf) -> list[Served]:
    """The runs that translate."""
    return shelf.where(lambda one: one.task == "translation")


def languages(shelf: Shelf) -> list[dict[str, Any]]:
    """What is translated into what."""
    targets: dict[str, list[str]] = {}
    for one in translators(shelf):
        source, target = one.languages
        targets.setdefault(target, [])
        known = targets.setdefault(source, [])
        if target not in known:
            known.append(target)
    return [
        {"code": code, "name": NAMES.get(code, code), "targets": into}
        for code, into in targets.items()
    ]


def choose(shelf: Shelf, source: str, target: str, words: list[str]) -> tuple[Served, float | None]:
    """The first model between two languages; with `auto`, that of the likeliest source."""
    into = [one for one in translators(shelf) if one.languages[1] == target and one.ready]
    if source == "auto" and into:
        guesses = detect(into, " ".join(words))
        if not guesses:
            return into[0], 0.0
        best = guesses[0]
        found = next(one for one in into if one.languages[0] == best["language"])
        return found, best["confidence"]
    found_all = [one for one in into if one.languages[0] == source]
    if not found_all:
        known = ", ".join(" to ".join(one.languages) for one in translators(shelf)) or "none"
        raise Problem(409, f"no model translates {source} to {target} now; served: {known}")
    return found_all[0], None


def detect(models: list[Served], text: str) -> list[dict[str, Any]]:
    """A guess among the languages that models read: whose tokenizer needs the fewest tokens.

    A tokenizer learnt from a language has its words as few long pieces; unknown pieces count as
    one a character. The confidence is the share of a language in characters per token.
    """
    letters = max(1, len(text))
    fit: dict[str, float] = {}
    for one in models:
        if one.run is None:
            continue
        tokenizer = one.run.task.source  # type: ignore[attr-defined]
        encoded = tokenizer.encode(text)
        cost = sum(
            max(1, end - start) if token == 1 else 1
            for token, (start, end) in zip(encoded.ids, encoded.offsets, strict=True)
        )
        language = one.languages[0]
        fit[language] = max(fit.get(language, 0.0), letters / max(1, cost))
    total = sum(fit.values())
    ranked = sorted(fit.items(), key=lambda item: -item[1])
    return [
        {"language": name, "confidence": round(100 * value / total, 1)} for name, value in ranked
    ]


def answer(q: str | list[str], found: list[Any]) -> dict[str, Any]:
    """Translations in order; one of several that failed is null, with its reason beside."""
    if isinstance(q, str):
        if isinstance(found[0], Failure):
            raise Problem(422, found[0].reason)
        return {"translatedText": found[0].output}
    made: dict[str, Any] = {
        "translatedText": [None if isinstance(one, Failure) else one.output for one in found]
    }
    wrong = [
        {"index": i, "detail": one.reason}
        for i, one in enumerate(found)
        if isinstance(one, Failure)
    ]
    return made | ({"errors": wrong} if wrong else {})
