"""What commands write for each input line: predictions, log-probabilities, alignments."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from regard.errors import RegardError
from regard.inference.run import Run

BLOCK_LINES = 2000
"""Lines that are read, processed and written together."""


def as_json_line(record: Mapping[str, Any]) -> str:
    """A record as one line of JSON, also for readers that end lines at other separators."""
    text = json.dumps(record, ensure_ascii=False)
    for mark in ("\x85", "\u2028", "\u2029"):
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def prediction_record(text: str, prediction: Any) -> dict[str, Any]:
    """All details of a prediction."""
    common = {"input": text, "output": prediction.output, "truncated": prediction.truncated}
    return {**common, **prediction.details}


def prediction_lines(number: int, prediction: Any, nbest: int) -> list[str]:
    """One line; of several candidates one each: number of the input, score, output."""
    if nbest == 1:
        return [prediction.output]
    candidates = prediction.details.get("nbest") or [{"output": "", "score": None}]
    scores = ["" if c["score"] is None else f"{c['score']:.4f}" for c in candidates]
    outputs = (" ".join(c["output"].split()) for c in candidates)
    return [f"{number}\t{score}\t{output}" for score, output in zip(scores, outputs, strict=True)]


def score_records(
    run: Run, some: list[tuple[str, str | None]], options: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """One record per line; an empty source has no log-probability, nor an empty line of a text.

    `options` are those of `Run.log_probabilities`.
    """
    with_targets = bool(some) and some[0][1] is not None
    skip_empty = with_targets or options.get("running", False)
    filled = [(text, target) for text, target in some if text.strip() or not skip_empty]
    texts, targets = [text for text, _ in filled], [str(target) for _, target in filled]
    try:
        given = targets if with_targets else None
        results = run.log_probabilities(texts, given, **options) if filled else []
    except ValueError as error:
        raise RegardError(f"{run.folder.path}: {error}") from error
    scored = iter(results)
    for text, target in some:
        record: dict[str, Any] = {"input": text} | ({"target": target} if with_targets else {})
        if not text.strip() and skip_empty:
            yield {**record, "log_probability": None, "tokens": [], "truncated": False}
            continue
        result = next(scored)
        yield {
            **record,
            "log_probability": result.log_probability,
            "tokens": result.tokens,
            "token_log_probabilities": result.token_log_probabilities,
            "truncated": result.truncated,
        }


def score_text(value: float | None) -> str:
    """A log-probability as a line of text; that of an empty line is empty."""
    return "" if value is None else f"{value:.6f}"


def alignment_record(alignment: Any) -> dict[str, Any]:
    """An alignment with its words and weights."""
    return {
        "source": alignment.source,
        "target": alignment.target,
        "links": alignment.links,
        "weights": [[round(float(w), 6) for w in row] for row in alignment.weights],
    }
