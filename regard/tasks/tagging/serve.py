"""Requests and responses of taggers over HTTP."""

from collections.abc import Sequence
from typing import Any

from regard.data.tags import marks_spans, spans
from regard.tasks.prediction import Prediction
from regard.tasks.shared.http_shapes import TRUNCATED, HttpShapes, Item
from regard.tasks.shared.json_schema import number, record, text


def _entities(text: str, prediction: Prediction, parameters: dict[str, Any]) -> list[Item]:
    """Spans of words; the score of a span is that of its least probable tag."""
    details = prediction.details
    words, tags = details.get("words", []), details.get("tags", [])
    probabilities = details.get("probabilities", [])
    offsets, end = [], 0
    for word in words:
        start = text.index(word, end)
        end = start + len(word)
        offsets.append((start, end))
    groups: list[tuple[str, int, int]] = []
    if _all_mark_spans(tags):
        groups = [(kind, first, last) for kind, first, last in spans(tags)]
    if not groups:
        groups = [(tag, i, i + 1) for i, tag in enumerate(tags) if tag != "O"]
    return [
        {
            "entity_group": kind,
            "score": min(probabilities[first:last]),
            "word": text[offsets[first][0] : offsets[last - 1][1]],
            "start": offsets[first][0],
            "end": offsets[last - 1][1],
        }
        for kind, first, last in groups
    ]


def _all_mark_spans(tags: Sequence[str]) -> bool:
    return all(tag == "O" or marks_spans(tag) for tag in tags)


SHAPES = HttpShapes(
    item=record(
        {
            "entity_group": text(),
            "score": number(0, 1),
            "word": text(),
            "start": {"type": "integer"},
            "end": {"type": "integer"},
        },
        TRUNCATED,
    ),
    items=_entities,
    flat=False,
)
